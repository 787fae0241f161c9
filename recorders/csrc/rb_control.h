/*
 * The page that the driver (recorders/control.py) and the runtime share: what this run is to do, and what its threads
 * are doing. $RECBULC_CONTROL names the file; without it the preloaded runtime does nothing at all.
 *
 * The driver writes everything above `threads` before it starts the program; from there on the runtime writes, and the
 * driver only looks. Little-endian, fixed size; recorders/control.py lays it out as a NumPy dtype, and a test compares.
 */
#ifndef RB_CONTROL_H
#define RB_CONTROL_H

#include <stdint.h>

#define RB_CONTROL_ENV     "RECBULC_CONTROL"
#define RB_CONTROL_MAGIC   0x6c75626365727031ULL
#define RB_CONTROL_THREADS 1024
#define RB_CONTROL_CORES   256
#define RB_CONTROL_PATH    1024

enum rb_mode { RB_MODE_RECORD = 1, RB_MODE_REPLAY = 2 };
enum rb_level { RB_LEVEL_SYNC = 1, RB_LEVEL_FUNC = 2, RB_LEVEL_FUNCLOOP = 3, RB_LEVEL_RW = 4 };

/*
 * A thread's state word. BLOCKED: inside a call that waits for another thread, with no time limit. TIMED: one that ends
 * by itself. DELAYED: we delay it (provoking). PARKED: we hold it (replay).
 */
enum rb_thread_state {
    RB_THREAD_NONE = 0,
    RB_THREAD_RUNNING = 1,
    RB_THREAD_BLOCKED = 2,
    RB_THREAD_TIMED = 3,
    RB_THREAD_DELAYED = 4,
    RB_THREAD_PARKED = 5,
    RB_THREAD_ENDED = 6,
};

struct rb_control_thread {       /* one cache line */
    _Alignas(64) uint32_t state; /* enum rb_thread_state */
    uint32_t tid;                /* the kernel's */
    uint32_t parent;             /* number of the creating thread; its own number for the first */
    uint32_t nth;                /* of the parent's creations, from 1: names are made of these */
    uint32_t kind;               /* of the event it is blocked at, enum rb_event_kind */
    uint32_t call;               /* where: the last CALL site */
    uint64_t object;             /* and at what object */
    uint64_t events;             /* appended so far: grows while the thread gets anywhere */
    uint32_t position;           /* replay: operations of its schedule that are complete */
    uint32_t lost;               /* 1 when the log of this thread could not grow */
    uint64_t pthread;            /* its pthread_t */
};
_Static_assert(sizeof(struct rb_control_thread) == 64, "recorders/control.py");

/* The first divergence of a replay; `set` goes from 0 to 1 once, by the thread that wrote the rest. */
struct rb_divergence {
    uint32_t set;
    uint32_t reason; /* enum rb_divergence_reason in replay/csrc/rb_replay.h */
    uint32_t thread;
    uint32_t position;   /* in that thread's schedule */
    uint32_t found_kind; /* enum rb_event_kind */
    uint32_t found_site;
    uint32_t found_count;
    uint32_t found_call;
    uint32_t awaited_thread; /* for a wait that did not end */
    uint32_t awaited_position;
};

struct rb_control {
    uint64_t magic;
    uint32_t mode;  /* enum rb_mode */
    uint32_t level; /* enum rb_level; what a recording stamps */
    uint32_t stamp; /* index in RB_CLOCK_SEQUENCES */
    uint32_t pin;   /* 1: every thread stays on one core of `cores` */
    uint32_t ncores;
    uint16_t cores[RB_CONTROL_CORES];
    uint32_t pad;
    uint64_t chunk_bytes;           /* by which a log grows; a multiple of the page size */
    uint64_t seed;                  /* of the delays */
    uint32_t access_delay_ppm;      /* how often, per million, there is a delay before or behind an access */
    uint32_t sync_delay_ppm;        /* ... a synchronisation call */
    uint32_t delay_us;              /* the longest such delay; each is drawn from 0 to this */
    uint32_t start_us;              /* the longest delay at a thread's start */
    char dir[RB_CONTROL_PATH];      /* where <thread>.events and `modules` go (recording) */
    char schedule[RB_CONTROL_PATH]; /* the compiled schedule (replay) */

    uint32_t nthreads; /* numbers given out so far */
    uint32_t ready;    /* 1 when sites are patched and main is about to run */
    uint32_t sites_patched;
    uint32_t sites_unpatched; /* that should have been (no longer a nop, or memory that may not be written) */
    struct rb_divergence divergence;
    _Alignas(64) struct rb_control_thread threads[RB_CONTROL_THREADS];
};

#endif
