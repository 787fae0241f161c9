/*
 * How a hook goes about its call: RB_ENTER, then begin, the real call or none, end.
 *
 *     struct rb_thread *self = RB_ENTER();
 *     if (!self)
 *         return rb_state.real.f(object);
 *     struct rb_call call = RB_CALL(KIND, object);
 *     if (rb_call_begin(self, &call) == RB_CALL_REAL)
 *         call.event.value = RB_RESULT(rb_state.real.f(object));
 *     return rb_call_end(self, &call);
 */
#ifndef RB_CALL_H
#define RB_CALL_H

#include "rb_runtime.h"

#define RB_CALL(kind_, object_)                                                                                        \
    {                                                                                                                  \
        .event = {.object = (uint64_t)(object_), .kind = RB_EVENT_KIND_##kind_ }                                       \
    }
#define RB_RESULT(result) ((uint64_t)(int64_t)(result))

static inline enum rb_decision rb_call_begin(struct rb_thread *self, struct rb_call *call)
{
    return rb_state.engine->call_begin(self, call);
}

/* Returns the result, as an int. */
static inline int rb_call_end(struct rb_thread *self, struct rb_call *call)
{
    rb_state.engine->call_end(self, call);
    rb_leave(self);
    return (int)call->event.value;
}

/* A clean-up handler around real calls in which a thread can be cancelled: ends the call with ECANCELED. */
RB_HIDDEN void rb_call_cancelled(void *call);

#endif
