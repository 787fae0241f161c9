/*
 * A compiled schedule: what replay/compile.py writes, and the replay engine maps and enforces.
 *
 * Everything is in one file: a header, then four arrays at the places the header names, each aligned to 8 bytes.
 * Little-endian, fixed sizes; replay/compile.py has the same structs as NumPy dtypes, and a test compares the two.
 *
 * What is enforced: operation i of a thread begins only when every thread of its waits has completed so many of its own
 * operations. Anything the program does that is in no list runs free. Threads are found by their names (parent, and
 * the how-manieth child of it), so that the numbers which a run happens to give out do not matter.
 */
#ifndef RB_REPLAY_H
#define RB_REPLAY_H

#include <stdint.h>

#define RB_SCHEDULE_MAGIC    0x6c75626373636831ULL
#define RB_SCHEDULE_VERSION  1
#define RB_SCHEDULE_NONE     UINT32_MAX
#define RB_DIVERGED_EXIT     253 /* of a process that left its schedule: nothing random may pass for a failure */
#define RB_REPLAY_SLICE_NS   20000000
#define RB_REPLAY_STILL_MOST 100 /* slices in which no thread got anywhere: the schedule cannot go on */

/* Part of src/recbulc/schedule.py. */
enum rb_part { RB_PART_WHOLE = 0, RB_PART_BEGIN = 1, RB_PART_END = 2, RB_PART_BLOCKED = 3 };

/*
 * X(name, number): rb_divergence.reason. `thread` and `awaited_thread` are indices of the schedule; what was expected
 * is always the operation at `position` of `thread`. All but the last two end the process at once; after those the
 * schedule has been followed to where the recorded run failed, and the program goes on without it.
 */
#define RB_DIVERGENCES(X)                                                                                              \
    X(ACCESS, 1)    /* found a listed access that is not the next operation */                                         \
    X(CALL, 2)      /* found a listed call that is not the next operation */                                           \
    X(PLACE, 3)     /* found the right kind of call, made from another place */                                        \
    X(RESULT, 4)    /* the call had another result than was recorded */                                                \
    X(STILL, 5)     /* waited for awaited_thread to complete awaited_position operations; nothing moved any more */    \
    X(ENDED, 6)     /* the thread, or the process, ended with operations left */                                       \
    X(SIGNAL, 7)    /* the thread got a fatal signal before its list was done */                                       \
    X(UNBLOCKED, 8) /* what never completed in the recorded run has completed */                                       \
    X(MISSED, 9)    /* the thread that ended the recorded run has gone on instead */

enum rb_divergence_reason {
#define X(name, number) RB_DIVERGED_##name = number,
    RB_DIVERGENCES(X)
#undef X
};

struct rb_schedule_header {
    uint64_t magic;
    uint32_t version;
    uint32_t nsites;
    uint32_t nthreads;
    uint32_t nops;
    uint32_t nwaits;
    uint32_t last; /* the thread that ended the recorded run: goes on when all lists are done; or RB_SCHEDULE_NONE */
    uint32_t by_place; /* 1: calls are counted by CALL site (a rebuilt program may make more of them); 0: by kind */
    uint32_t pad;
    uint64_t sites_at;
    uint64_t threads_at;
    uint64_t ops_at;
    uint64_t waits_at;
    uint64_t bytes; /* of the whole file */
};
_Static_assert(sizeof(struct rb_schedule_header) == 80, "replay/compile.py");

/* The sites are global numbers (uint32_t), sorted: of the gated accesses, and of the CALLs that count by place. */

struct rb_schedule_thread {
    uint32_t parent; /* index of the creating thread; its own for the first */
    uint32_t nth;    /* of the parent's creations, from 1 */
    uint32_t first;  /* of its operations */
    uint32_t nops;
};
_Static_assert(sizeof(struct rb_schedule_thread) == 16, "replay/compile.py");

struct rb_schedule_op {
    uint8_t kind;   /* enum rb_event_kind */
    uint8_t part;   /* enum rb_part */
    uint16_t flags; /* RB_EVENT_* */
    uint32_t site;  /* global number of the access's site, or of the CALL site that led here; 0: none */
    uint32_t key;   /* what its instances are counted by: index of a site in the sites, or nsites + kind */
    uint32_t count; /* which of the instances with this key, by this thread; from 0 */
    uint32_t next;  /* which of this thread's has the next listed instance, plus 1; 0: none */
    uint32_t first_wait;
    uint32_t nwaits;
    uint32_t pad;
    int64_t value; /* the result to return, or to expect */
};
_Static_assert(sizeof(struct rb_schedule_op) == 40, "replay/compile.py");

struct rb_schedule_wait {
    uint32_t thread;
    uint32_t count; /* operations of it that must be complete */
};
_Static_assert(sizeof(struct rb_schedule_wait) == 8, "replay/compile.py");

#endif
