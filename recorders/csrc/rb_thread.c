/*
 * The life of a thread: number, pinning, state word.
 *
 * Prohibitions: rb_thread_begin and rb_thread_over run where libc is half set up or half torn down. No malloc, no
 * stdio; system calls by rb_sys.h, and of libc only what works on the thread's own descriptor.
 */
#include <errno.h>
#include <limits.h>

#include "rb_quarantine.h"
#include "rb_runtime.h"
#include "rb_signals.h"

static void pin(struct rb_thread *self)
{
    const struct rb_control *control = rb_state.control;
    uint64_t mask[CPU_SETSIZE / 64] = {0};

    self->core = RB_CORE_UNKNOWN;
    if (!control->pin || !control->ncores)
        return;
    uint16_t core = control->cores[self->number % control->ncores];
    if (core >= CPU_SETSIZE)
        return;
    mask[core / 64] = 1ULL << core % 64;
    if (!rb_sys(SYS_sched_setaffinity, 0, sizeof(mask), (long)mask, 0, 0, 0))
        self->core = core;
}

void rb_thread_begin(uint32_t number)
{
    struct rb_thread *self = rb_self();

    self->inside = 1;
    self->number = number;
    self->control = &rb_state.control->threads[number];
    self->control->tid = rb_sys_gettid();
    self->control->pthread = (uint64_t)pthread_self();
    pin(self);
    rb_signals_stack_init(self);
    rb_quarantine_init(self);
    pthread_setspecific(rb_state.key, self);
    __atomic_store_n(&self->control->state, RB_THREAD_RUNNING, __ATOMIC_RELEASE);
    rb_state.engine->thread_start(self);
    self->known = 1;
    rb_leave(self);
}

/*
 * The destructor of our key. Destructors of the program's keys (and of its thread_local objects) are still its own
 * code: put the end off until the last round.
 */
void rb_thread_destructor(void *value)
{
    struct rb_thread *self = value;

    if (++self->destructor_round < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(rb_state.key, self);
    else
        rb_thread_over(self);
}

void rb_thread_over(struct rb_thread *self)
{
    if (!self->known)
        return;
    self->inside = 1;
    rb_state.engine->thread_end(self);
    self->known = 0;
    rb_signals_stack_deinit(self);
    __atomic_store_n(&self->control->state, RB_THREAD_ENDED, __ATOMIC_RELEASE);
}

uint32_t rb_thread_number(struct rb_thread *self)
{
    struct rb_control *control = rb_state.control;
    struct rb_control_thread *created;
    uint32_t number = __atomic_fetch_add(&control->nthreads, 1, __ATOMIC_ACQ_REL);

    if (number >= RB_CONTROL_THREADS)
        return RB_NO_THREAD;
    created = &control->threads[number];
    created->parent = self->number;
    created->nth = ++self->creations;
    return number;
}

uint32_t rb_thread_find(uint64_t pthread)
{
    struct rb_control *control = rb_state.control;
    uint32_t number = __atomic_load_n(&control->nthreads, __ATOMIC_ACQUIRE);

    if (number > RB_CONTROL_THREADS)
        number = RB_CONTROL_THREADS;
    while (number--) /* newest first: libc gives a pthread_t out again */
        if (control->threads[number].pthread == pthread)
            return number;
    return RB_NO_THREAD;
}
