/*
 * What the parts of the preload runtime share: its one state struct and its one block of thread-local storage.
 *
 * A thread is *known* from its start (rb_thread_begin) until its last destructor has run (rb_thread_over). A hook or a
 * site on a thread that is not known, or that is *inside* the runtime already, does nothing but what the program asked
 * for. That one test also makes a preloaded library without a control page inert: then no thread is ever known.
 *
 * Who may call what: code reached from a site (rb_probe.c, rb_log.c, rb_provoke.c, the engines' access_*, mark and
 * thread functions) has only rb_sys.h; code reached from a hook alone may also call rb_state.real and other libc
 * functions that take no lock of the program's.
 */
#ifndef RB_RUNTIME_H
#define RB_RUNTIME_H

#include <stdint.h>

#include "rb_clock.h"
#include "rb_control.h"
#include "rb_engine.h"
#include "rb_event.h"
#include "rb_hooks.h"
#include "rb_sys.h"

#define RB_HIDDEN          __attribute__((visibility("hidden")))
#define RB_EXPORT          __attribute__((visibility("default")))
#define RB_LIKELY(x)       __builtin_expect(!!(x), 1)
#define RB_UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define RB_CORE_UNKNOWN    UINT16_MAX
#define RB_NO_THREAD       UINT32_MAX
#define RB_BOOTSTRAP_BYTES 65536
#define RB_QUIET_MOST      4

/* rb_log.h. One contiguous reservation, of which the part up to `limit` is backed by the thread's file. */
struct rb_log {
    struct rb_event *first;
    struct rb_event *next;  /* where the next record goes; only ever moved by one xadd */
    struct rb_event *limit; /* records below it may be written; one more is kept for LOST */
    uint64_t mapped_bytes;
    uint32_t lost; /* 1: the log could not grow; appends go to `spill` */
    struct rb_event spill;
};

/* rb_quarantine.h. Freed blocks that the allocator has not got back yet, oldest first. */
struct rb_quarantine {
    struct rb_freed *ring;
    uint64_t head, tail; /* counted, not wrapped */
    uint64_t bytes;
};

/* rb_hooks_wait.c. A pthread_once under way on this thread. */
struct rb_once {
    struct rb_call call;
    void (*routine)(void);
    struct rb_once *outer;
};

struct rb_thread {
    struct rb_scratch scratch; /* for stamps */

    uint32_t known;            /* 1: hooks and sites of this thread count */
    uint32_t inside;           /* 1: our own code is running (or what it calls) */
    uint32_t number;           /* index in rb_control.threads; assigned by the creating thread */
    uint32_t call;             /* global number of the last CALL site passed; written by its thunk */
    uint32_t creations;        /* threads it has created */
    uint32_t finished;         /* 1: it has told the engine that the process ends */
    uint32_t destructor_round; /* rb_thread.c: how often our key's destructor was put off */
    uint16_t core;             /* where it is pinned, or RB_CORE_UNKNOWN */
    uint64_t random;           /* state of its generator, see rb_random */
    struct rb_control_thread *control;
    void *engine;         /* the engine's own */
    struct rb_once *once; /* the innermost */
    void *signal_stack;   /* rb_signals.c */

    struct rb_log log;
    struct rb_event *open; /* recording: the access that has begun last */
    struct rb_quarantine quarantine;
};

/* What the creating thread leaves for the new one. */
struct rb_start {
    void *(*routine)(void *);
    void *argument;
    uint32_t number;
};

/* Code from low up to high. */
struct rb_range {
    uintptr_t low, high;
};

struct rb_state {
    struct rb_control *control; /* NULL: do nothing */
    const struct rb_engine *engine;
    uint32_t pid;             /* a process with another number is not ours to record (vfork) */
    pid_t told_pid;           /* what a replay has told the program that its number is; 0: nothing yet */
    uint32_t key;             /* pthread_key_t whose destructor ends a thread */
    uint32_t exit_registered; /* on_exit has been called at the first pthread_create */
    uint32_t resolved;        /* `real` is filled in: 1; being filled in: 2 */
    struct rb_real real;
    struct rb_range quiet[RB_QUIET_MOST]; /* code of libc, the loader and the unwinder: their calls are no events */
    uint32_t nquiet;
    struct rb_start starts[RB_CONTROL_THREADS];
    size_t bootstrap_used;
    _Alignas(16) char bootstrap[RB_BOOTSTRAP_BYTES]; /* rb_real.c: allocations while dlsym runs */
};

extern RB_HIDDEN struct rb_state rb_state;
extern RB_HIDDEN _Thread_local struct rb_thread rb_thread_block __attribute__((tls_model("initial-exec")));

static inline struct rb_thread *rb_self(void) { return &rb_thread_block; }

/* The thread, now inside; or NULL: pass straight through. Undone by rb_leave. */
static inline struct rb_thread *rb_enter(void)
{
    struct rb_thread *self = rb_self();

    if (!self->known || self->inside)
        return NULL;
    self->inside = 1;
    return self;
}

/*
 * rb_enter for a hook called from `caller`. What libc does for itself (it allocates a stream's buffer, loads the
 * unwinder) depends on which thread comes first, on ways that no event shows: it is not the program's doing.
 */
static inline struct rb_thread *rb_enter_from(void *caller)
{
    for (uint32_t i = 0; i < rb_state.nquiet; i++)
        if ((uintptr_t)caller - rb_state.quiet[i].low < rb_state.quiet[i].high - rb_state.quiet[i].low)
            return NULL;
    return rb_enter();
}

#define RB_ENTER() rb_enter_from(__builtin_return_address(0))

static inline void rb_leave(struct rb_thread *self)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->inside = 0;
}

/* xorshift64*; seeded from control.seed and the thread's number, so that a run's delays are drawn alike each time. */
static inline uint64_t rb_random(struct rb_thread *self)
{
    self->random ^= self->random >> 12;
    self->random ^= self->random << 25;
    self->random ^= self->random >> 27;
    return self->random * 0x2545f4914f6cdd1dULL;
}

/*
 * The stamp of this run (control.stamp: the index in RB_CLOCK_SEQUENCES); *core: where it was taken, as far as the
 * sequence or the pinning tells.
 */
static inline uint64_t rb_stamp(struct rb_thread *self, uint16_t *core)
{
    uint32_t aux = RB_AUX_NONE;
    uint64_t tsc;

    switch (rb_state.control->stamp) {
    case 0:
        tsc = rb_clock_rdtsc(&self->scratch, &aux);
        break;
    case 1:
        tsc = rb_clock_rdtscp(&self->scratch, &aux);
        break;
    case 2:
        tsc = rb_clock_2c(&self->scratch, &aux);
        break;
    case 3:
        tsc = rb_clock_2d(&self->scratch, &aux);
        break;
    case 5:
        tsc = rb_clock_card(&self->scratch, &aux);
        break;
    default:
        tsc = rb_clock_2e(&self->scratch, &aux);
    }
    *core = aux == RB_AUX_NONE ? self->core : (uint16_t)RB_AUX_CORE(aux);
    return tsc;
}

/*
 * rb_thread.c. Begin makes the calling thread known under `number`; over ends that, after engine->thread_end. The
 * number must have been given out by rb_thread_number (or be 0, the main thread's).
 */
RB_HIDDEN void rb_thread_begin(uint32_t number);
RB_HIDDEN void rb_thread_over(struct rb_thread *self);
/* Of rb_state.key: calls rb_thread_over in the last round of destructors. */
RB_HIDDEN void rb_thread_destructor(void *value);
/* A number for a thread that `self` creates; RB_NO_THREAD: there are no more. */
RB_HIDDEN uint32_t rb_thread_number(struct rb_thread *self);
/* The number of the newest thread with this pthread_t, or RB_NO_THREAD. */
RB_HIDDEN uint32_t rb_thread_find(uint64_t pthread);

/* Ends the program before it began: a line on stderr and exit code 125. */
RB_HIDDEN __attribute__((noreturn)) void rb_die(const char *what, int error);

#endif
