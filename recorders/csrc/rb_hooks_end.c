/*
 * Hooks of what ends the process, and of nothing else.
 *
 * Prohibitions: no malloc, no stdio. In a vfork child these run on the parent's memory: look at the pid first.
 */
#include <stdlib.h>
#include <unistd.h>

#include "rb_end.h"
#include "rb_real.h"

static void finish(int code)
{
    struct rb_event event = {.kind = RB_EVENT_KIND_EXIT, .value = (uint64_t)(int64_t)code};
    struct rb_thread *self = rb_self();

    if (!self->known || self->finished || rb_sys_getpid() != rb_state.pid || !rb_enter())
        return;
    self->finished = 1;
    rb_state.engine->finish(self, &event);
    rb_leave(self);
}

static void main_returned(int code, void *unused)
{
    (void)unused;
    finish(code);
}

void rb_end_register(void)
{
    if (rb_state.exit_registered == 2 || (rb_state.exit_registered && !rb_state.control->ready))
        return;
    rb_state.exit_registered++;
    on_exit(main_returned, NULL);
}

#define HOOK(name)                                                                                                     \
    RB_EXPORT void name(int code)                                                                                      \
    {                                                                                                                  \
        finish(code);                                                                                                  \
        rb_real()->name(code);                                                                                         \
        __builtin_unreachable();                                                                                       \
    }

HOOK(exit)
HOOK(_exit)
HOOK(_Exit)
HOOK(quick_exit)
