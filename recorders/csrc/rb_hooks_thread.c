/*
 * Hooks of create, join and detach. That a thread ends is seen by rb_thread_destructor, however it does.
 *
 * Prohibitions: no malloc, no stdio. What libc itself does inside a real call (it allocates) is no event.
 */
#include <errno.h>

#include "rb_call.h"
#include "rb_end.h"
#include "rb_real.h"

static void *start(void *argument)
{
    const struct rb_start *start = argument;

    rb_thread_begin(start->number);
    return start->routine(start->argument);
}

/* The new thread's number is given out here, in the creating thread; names are counted per creator. */
RB_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                             void *argument)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = RB_CALL(CREATE, 0);
    struct rb_control_thread *created;
    uint32_t number;
    int result;

    if (!self)
        return rb_real()->pthread_create(thread, attributes, routine, argument);
    rb_end_register();
    call.event.value = UINT64_MAX;
    rb_call_begin(self, &call);
    number = rb_thread_number(self);
    if (number == RB_NO_THREAD) { /* it runs, unseen */
        self->control->lost = 1;
        result = rb_state.real.pthread_create(thread, attributes, routine, argument);
    } else {
        created = &rb_state.control->threads[number];
        rb_state.starts[number] = (struct rb_start){routine, argument, number};
        result = rb_state.real.pthread_create(thread, attributes, start, &rb_state.starts[number]);
        if (!result && !created->pthread) /* the thread itself writes the same */
            created->pthread = (uint64_t)*thread;
    }
    call.event.value = result || number == RB_NO_THREAD ? UINT64_MAX : number;
    call.event.old = RB_RESULT(result);
    rb_call_end(self, &call);
    return result;
}

static int joined(struct rb_thread *self, struct rb_call *call, int result)
{
    if (!result && call->event.value != UINT64_MAX)
        rb_state.control->threads[call->event.value].pthread = 0; /* libc may give it out again */
    call->event.old = RB_RESULT(result);
    rb_call_end(self, call);
    return result;
}

static void join_cancelled(void *call)
{
    struct rb_call *ended = call;

    ended->event.old = ECANCELED;
    rb_call_end(rb_self(), ended);
}

static uint64_t number_of(pthread_t thread)
{
    uint32_t number = rb_thread_find((uint64_t)thread);

    return number == RB_NO_THREAD ? UINT64_MAX : number;
}

#define JOIN(name, flags_, parameters, arguments)                                                                      \
    RB_EXPORT int name parameters                                                                                      \
    {                                                                                                                  \
        struct rb_thread *self = RB_ENTER();                                                                           \
        struct rb_call call = RB_CALL(JOIN, 0);                                                                        \
        int result;                                                                                                    \
                                                                                                                       \
        if (!self)                                                                                                     \
            return rb_real()->name arguments;                                                                          \
        call.event.value = number_of(thread);                                                                          \
        call.event.flags = flags_;                                                                                     \
        rb_call_begin(self, &call);                                                                                    \
        pthread_cleanup_push(join_cancelled, &call);                                                                   \
        result = rb_state.real.name arguments;                                                                         \
        pthread_cleanup_pop(0);                                                                                        \
        return joined(self, &call, result);                                                                            \
    }

JOIN(pthread_join, 0, (pthread_t thread, void **returned), (thread, returned))
JOIN(pthread_tryjoin_np, RB_EVENT_TIMED, (pthread_t thread, void **returned), (thread, returned))
JOIN(pthread_timedjoin_np, RB_EVENT_TIMED, (pthread_t thread, void **returned, const struct timespec *until),
     (thread, returned, until))

RB_EXPORT int pthread_detach(pthread_t thread)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = RB_CALL(DETACH, 0);
    int result;

    if (!self)
        return rb_real()->pthread_detach(thread);
    call.event.value = number_of(thread);
    rb_call_begin(self, &call);
    result = rb_state.real.pthread_detach(thread);
    call.event.old = RB_RESULT(result);
    rb_call_end(self, &call);
    return result;
}
