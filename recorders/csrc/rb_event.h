/*
 * What a thread writes into its log: TRACE/<thread>.events, an array of these, in program order of `before`.
 *
 * A record is appended when the event begins and completed when it ends, so that what a crash interrupts is there
 * without an end: `after` is 0. The event happened between its two stamps. recorders/events.py says the same as a NumPy
 * dtype, and a test compares the two.
 */
#ifndef RB_EVENT_H
#define RB_EVENT_H

#include <stdint.h>

struct rb_event {
    uint64_t before;     /* stamp; 0 only in a slot that was never used, which ends the log */
    uint64_t after;      /* stamp; 0: did not end */
    uint64_t object;     /* address: of the access, the synchronisation object, the block */
    uint64_t value;      /* see RB_EVENT_KINDS */
    uint64_t old;        /* see RB_EVENT_KINDS */
    uint32_t site;       /* global number of the site (rb_site.h); 0 for none, as with calls */
    uint32_t call;       /* global number of the last CALL site this thread passed; 0 for none */
    uint16_t core;       /* which took `before` */
    uint16_t core_after; /* which took `after` */
    uint8_t kind;        /* enum rb_event_kind */
    uint8_t size;        /* bytes accessed, 1 to 8; 0 for other kinds */
    uint16_t flags;      /* RB_EVENT_* below */
};
_Static_assert(sizeof(struct rb_event) == 56, "recorders/events.py");

#define RB_EVENT_ATOMIC 1 /* an atomic access */
#define RB_EVENT_RAN    2 /* ONCE: this thread ran the routine. MUTEX_UNLOCK etc.: none */
#define RB_EVENT_ZERO   4 /* MALLOC: the block was zeroed (calloc) */
#define RB_EVENT_TIMED  8 /* a blocking call that ends by itself after some time */

/*
 * X(name, number): object; value; old. `result` is what the call returned (an error number or 0), sign-extended.
 * Calls that block have `after` = 0 while they do.
 */
#define RB_EVENT_KINDS(X)                                                                                              \
    X(THREAD_START, 1)    /* -; number of the parent thread; - */                                                      \
    X(THREAD_END, 2)      /* -; -; - */                                                                                \
    X(READ, 3)            /* address; value read; - */                                                                 \
    X(WRITE, 4)           /* address; value written; - */                                                              \
    X(RMW, 5)             /* address; value then in memory; value read */                                              \
    X(FUNC_ENTRY, 8)      /* -; -; - */                                                                                \
    X(FUNC_EXIT, 9)       /* */                                                                                        \
    X(LOOP_ENTRY, 10)     /* */                                                                                        \
    X(LOOP_BACK, 11)      /* */                                                                                        \
    X(LOOP_EXIT, 12)      /* */                                                                                        \
    X(MALLOC, 16)         /* block; bytes; - */                                                                        \
    X(FREE, 17)           /* block; bytes poisoned with RB_POISON; - */                                                \
    X(CREATE, 20)         /* -; number of the new thread (-1: failed); result */                                       \
    X(JOIN, 21)           /* -; number of the thread joined; result */                                                 \
    X(DETACH, 22)         /* -; number of the thread; result */                                                        \
    X(MUTEX_LOCK, 24)     /* mutex; result; - (also timedlock, clocklock) */                                           \
    X(MUTEX_TRYLOCK, 25)  /* mutex; result; - */                                                                       \
    X(MUTEX_UNLOCK, 26)   /* mutex; result; - */                                                                       \
    X(COND_WAIT, 28)      /* condition; result; mutex (also timedwait, clockwait): release, wake, reacquire */         \
    X(COND_SIGNAL, 29)    /* condition; result; - */                                                                   \
    X(COND_BROADCAST, 30) /* condition; result; - */                                                                   \
    X(RW_RDLOCK, 32)      /* rwlock; result; - (also timed) */                                                         \
    X(RW_WRLOCK, 33)      /* rwlock; result; - (also timed) */                                                         \
    X(RW_TRYRDLOCK, 34)   /* rwlock; result; - */                                                                      \
    X(RW_TRYWRLOCK, 35)   /* rwlock; result; - */                                                                      \
    X(RW_UNLOCK, 36)      /* rwlock; result; - */                                                                      \
    X(SPIN_LOCK, 40)      /* lock; result; - */                                                                        \
    X(SPIN_TRYLOCK, 41)   /* lock; result; - */                                                                        \
    X(SPIN_UNLOCK, 42)    /* lock; result; - */                                                                        \
    X(SEM_WAIT, 44)       /* semaphore; result, or errno where that is -1; - (also timedwait) */                       \
    X(SEM_TRYWAIT, 45)    /* semaphore; as SEM_WAIT; - */                                                              \
    X(SEM_POST, 46)       /* semaphore; as SEM_WAIT; - */                                                              \
    X(BARRIER_WAIT, 48)   /* barrier; result (-1: serial thread); - */                                                 \
    X(ONCE, 49)           /* control; result; - */                                                                     \
    X(MUTEX_INIT, 52)     /* mutex; kind (pthread_mutexattr_gettype; 0 without attributes); - */                       \
    X(MUTEX_DESTROY, 53)  /* mutex; result; - */                                                                       \
    X(SEM_INIT, 54)       /* semaphore; initial value; - */                                                            \
    X(BARRIER_INIT, 55)   /* barrier; count; - */                                                                      \
    X(INPUT, 60)          /* which (enum rb_input); result; - */                                                       \
    X(EXIT, 64)           /* -; exit code; -: the process begins to end by exit, _exit or main's return */             \
    X(SIGNAL, 65)         /* faulting address; signal number; -: this thread got a fatal signal */                     \
    X(LOST, 66)           /* -; errno; -: nothing of this thread was recorded from here on */

enum rb_event_kind {
#define X(name, number) RB_EVENT_KIND_##name = number,
    RB_EVENT_KINDS(X)
#undef X
};

/* What INPUT's object says. X(name, number) */
#define RB_INPUTS(X)                                                                                                   \
    X(TIME, 1)          /* time: seconds */                                                                            \
    X(GETTIMEOFDAY, 2)  /* microseconds since the epoch */                                                             \
    X(CLOCK_GETTIME, 3) /* nanoseconds; old: the clock */                                                              \
    X(RAND, 4)                                                                                                         \
    X(RANDOM, 5)                                                                                                       \
    X(GETPID, 6)

enum rb_input {
#define X(name, number) RB_INPUT_##name = number,
    RB_INPUTS(X)
#undef X
};

#define RB_POISON 0xdb /* every byte of a freed block, in recordings and replays alike */

#endif
