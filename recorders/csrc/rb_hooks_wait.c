/*
 * Hooks of what waits to be told: condition, semaphore, barrier, once. A thread may be cancelled in most of them.
 *
 * Prohibitions: no malloc, no stdio; takes no lock but the one the program asks for.
 */
#include <errno.h>

#include "rb_call.h"
#include "rb_real.h"

void rb_call_cancelled(void *call)
{
    struct rb_call *ended = call;

    ended->event.value = ECANCELED;
    rb_call_end(rb_self(), ended);
}

/* The engine may carry out the whole wait; else the real call, in which the thread may be cancelled. */
#define WAIT(name, flags_, parameters, arguments)                                                                      \
    RB_EXPORT int name parameters                                                                                      \
    {                                                                                                                  \
        struct rb_thread *self = RB_ENTER();                                                                           \
        struct rb_call call = RB_CALL(COND_WAIT, condition);                                                           \
                                                                                                                       \
        if (!self)                                                                                                     \
            return rb_real()->name arguments;                                                                          \
        call.event.old = (uint64_t)mutex;                                                                              \
        call.event.flags = flags_;                                                                                     \
        if (rb_state.engine->wait(self, &call)) {                                                                      \
            rb_leave(self);                                                                                            \
            return (int)call.event.value;                                                                              \
        }                                                                                                              \
        if (rb_call_begin(self, &call) == RB_CALL_REAL) {                                                              \
            pthread_cleanup_push(rb_call_cancelled, &call);                                                            \
            call.event.value = RB_RESULT(rb_state.real.name arguments);                                                \
            pthread_cleanup_pop(0);                                                                                    \
        }                                                                                                              \
        return rb_call_end(self, &call);                                                                               \
    }

WAIT(pthread_cond_wait, 0, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex))
WAIT(pthread_cond_timedwait, RB_EVENT_TIMED,
     (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until), (condition, mutex, until))
WAIT(pthread_cond_clockwait, RB_EVENT_TIMED,
     (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
     (condition, mutex, clock, until))

#define WAKE(name, kind_)                                                                                              \
    RB_EXPORT int name(pthread_cond_t *condition)                                                                      \
    {                                                                                                                  \
        struct rb_thread *self = RB_ENTER();                                                                           \
        struct rb_call call = RB_CALL(kind_, condition);                                                               \
                                                                                                                       \
        if (!self)                                                                                                     \
            return rb_real()->name(condition);                                                                         \
        if (rb_call_begin(self, &call) == RB_CALL_REAL)                                                                \
            call.event.value = RB_RESULT(rb_state.real.name(condition));                                               \
        return rb_call_end(self, &call);                                                                               \
    }

WAKE(pthread_cond_signal, COND_SIGNAL)
WAKE(pthread_cond_broadcast, COND_BROADCAST)

/* Semaphores report by errno: the event has the error number itself. */
#define SEMAPHORE(name, kind_, flags_, parameters, arguments)                                                          \
    RB_EXPORT int name parameters                                                                                      \
    {                                                                                                                  \
        struct rb_thread *self = RB_ENTER();                                                                           \
        struct rb_call call = RB_CALL(kind_, semaphore);                                                               \
        int error;                                                                                                     \
                                                                                                                       \
        if (!self)                                                                                                     \
            return rb_real()->name arguments;                                                                          \
        call.event.flags = flags_;                                                                                     \
        if (rb_call_begin(self, &call) == RB_CALL_REAL) {                                                              \
            pthread_cleanup_push(rb_call_cancelled, &call);                                                            \
            call.event.value = rb_state.real.name arguments ? (uint64_t)errno : 0;                                     \
            pthread_cleanup_pop(0);                                                                                    \
        }                                                                                                              \
        error = rb_call_end(self, &call);                                                                              \
        if (!error)                                                                                                    \
            return 0;                                                                                                  \
        errno = error;                                                                                                 \
        return -1;                                                                                                     \
    }

SEMAPHORE(sem_wait, SEM_WAIT, 0, (sem_t * semaphore), (semaphore))
SEMAPHORE(sem_trywait, SEM_TRYWAIT, 0, (sem_t * semaphore), (semaphore))
SEMAPHORE(sem_timedwait, SEM_WAIT, RB_EVENT_TIMED, (sem_t * semaphore, const struct timespec *until),
          (semaphore, until))
SEMAPHORE(sem_clockwait, SEM_WAIT, RB_EVENT_TIMED, (sem_t * semaphore, clockid_t clock, const struct timespec *until),
          (semaphore, clock, until))
SEMAPHORE(sem_post, SEM_POST, 0, (sem_t * semaphore), (semaphore))

RB_EXPORT int sem_init(sem_t *semaphore, int shared, unsigned value)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = RB_CALL(SEM_INIT, semaphore);
    int result;

    if (!self)
        return rb_real()->sem_init(semaphore, shared, value);
    call.event.value = value;
    rb_call_begin(self, &call);
    result = rb_state.real.sem_init(semaphore, shared, value);
    rb_call_end(self, &call);
    return result;
}

RB_EXPORT int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = RB_CALL(BARRIER_INIT, barrier);
    int result;

    if (!self)
        return rb_real()->pthread_barrier_init(barrier, attributes, count);
    call.event.value = count;
    rb_call_begin(self, &call);
    result = rb_state.real.pthread_barrier_init(barrier, attributes, count);
    rb_call_end(self, &call);
    return result;
}

RB_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = RB_CALL(BARRIER_WAIT, barrier);

    if (!self)
        return rb_real()->pthread_barrier_wait(barrier);
    if (rb_state.engine->wait(self, &call)) {
        rb_leave(self);
        return (int)call.event.value;
    }
    if (rb_call_begin(self, &call) == RB_CALL_REAL)
        call.event.value = RB_RESULT(rb_state.real.pthread_barrier_wait(barrier));
    return rb_call_end(self, &call);
}

/*
 * What pthread_once is to run gets no argument: the call under way is found through the thread. `routine` is the
 * program's own code, so the thread is not inside while it runs, and may come here again for another control. It may
 * also be left by an exception or cancellation, which leaves the thread in order and the event without an end.
 */
static void once_routine(void)
{
    struct rb_thread *self = rb_self();
    struct rb_once *once = self->once;

    once->call.event.flags |= RB_EVENT_RAN;
    self->once = once->outer;
    __atomic_store_n(&self->control->state, RB_THREAD_RUNNING, __ATOMIC_RELEASE);
    rb_leave(self);
    once->routine();
    self->inside = 1;
}

RB_EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    struct rb_thread *self = RB_ENTER();
    struct rb_once once = {.call = RB_CALL(ONCE, control), .routine = routine};

    if (!self)
        return rb_real()->pthread_once(control, routine);
    once.outer = self->once;
    if (rb_call_begin(self, &once.call) == RB_CALL_REAL) {
        self->once = &once;
        once.call.event.value = RB_RESULT(rb_state.real.pthread_once(control, once_routine));
        self->once = once.outer;
    }
    return rb_call_end(self, &once.call);
}
