/*
 * Prohibitions: reached from sites. No libc, no vector registers, no locks; system calls by rb_sys.h only.
 */
#include "rb_provoke.h"

#include <linux/prctl.h>

void rb_provoke_init(struct rb_thread *self)
{
    const struct rb_control *control = rb_state.control;
    uint64_t mixed = control->seed + (self->number + 1) * 0x9e3779b97f4a7c15ULL; /* splitmix64 */

    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
    self->random = (mixed ^ mixed >> 31) | 1;
    if (control->access_delay_ppm || control->sync_delay_ppm || control->start_us)
        rb_sys(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0, 0); /* the usual 50 us exceed most delays */
}

void rb_delay(struct rb_thread *self, uint32_t longest_us)
{
    uint32_t us = (uint32_t)(rb_random(self) % (longest_us + 1ULL));
    uint32_t state = self->control->state;

    __atomic_store_n(&self->control->state, RB_THREAD_DELAYED, __ATOMIC_RELEASE);
    if (us < RB_SHORTEST_SLEEP_US)
        rb_sys_yield();
    else
        rb_sys_sleep_ns(us * 1000ULL);
    __atomic_store_n(&self->control->state, state, __ATOMIC_RELEASE);
}
