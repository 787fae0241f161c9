/*
 * Prohibitions: the handler may have interrupted anything, our own code included. No malloc, no stdio, no locks.
 */
#include "rb_signals.h"

#include <string.h>

#define FATAL(X) X(SIGSEGV) X(SIGBUS) X(SIGFPE) X(SIGILL) X(SIGABRT) X(SIGTRAP)

/* Will the signal come again by itself when the handler returns? Not if it was sent, nor after a trap. */
static int comes_again(int signal, const siginfo_t *info) { return info->si_code > 0 && signal != SIGTRAP; }

static void fatal(int signal, siginfo_t *info, void *context)
{
    struct rb_thread *self = rb_self();
    struct sigaction restored = {.sa_handler = SIG_DFL};
    struct rb_event event = {.kind = RB_EVENT_KIND_SIGNAL, .value = (uint64_t)signal};
    uint32_t inside = self->inside;

    (void)context;
    if (comes_again(signal, info))
        event.object = (uint64_t)info->si_addr;
    if (self->known && !self->finished && rb_sys_getpid() == rb_state.pid) {
        self->inside = 1;
        self->finished = 1;
        rb_state.engine->finish(self, &event);
        self->inside = inside;
    }
    sigaction(signal, &restored, NULL);
    if (!comes_again(signal, info))
        rb_sys_tgkill(rb_sys_getpid(), rb_sys_gettid(), signal);
}

void rb_signals_init(void)
{
    struct sigaction ours = {.sa_sigaction = fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction found;

    sigemptyset(&ours.sa_mask);
#define X(signal)                                                                                                      \
    if (!sigaction(signal, NULL, &found) && !(found.sa_flags & SA_SIGINFO) && found.sa_handler == SIG_DFL)             \
        sigaction(signal, &ours, NULL);
    FATAL(X)
#undef X
}

void rb_signals_stack_init(struct rb_thread *self)
{
    void *stack = rb_sys_mmap(NULL, RB_SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stack_t ours = {.ss_sp = stack, .ss_size = RB_SIGNAL_STACK_BYTES};

    if (!rb_sys_failed(stack) && !rb_sys(SYS_sigaltstack, (long)&ours, 0, 0, 0, 0, 0))
        self->signal_stack = stack;
}

void rb_signals_stack_deinit(struct rb_thread *self)
{
    stack_t current;

    if (!self->signal_stack)
        return;
    rb_sys(SYS_sigaltstack, 0, (long)&current, 0, 0, 0, 0);
    if (current.ss_sp == self->signal_stack) { /* else the program has put its own in its place */
        current.ss_flags = SS_DISABLE;
        if (rb_sys(SYS_sigaltstack, (long)&current, 0, 0, 0, 0, 0))
            return;
    }
    rb_sys_munmap(self->signal_stack, RB_SIGNAL_STACK_BYTES);
    self->signal_stack = NULL;
}
