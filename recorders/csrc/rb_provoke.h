/*
 * Provoking: delays at random places, which give up the CPU (spinning provokes next to nothing where cores are few).
 *
 * Drawn from the thread's own generator, 0 to control.delay_us, at the rates of the control page; taken before the
 * event's `before` stamp, or behind an access, after its `after` stamp. The thread's state word says DELAYED meanwhile.
 */
#ifndef RB_PROVOKE_H
#define RB_PROVOKE_H

#include "rb_runtime.h"

/* Below this a sleep takes longer than was asked for: yield instead. */
#define RB_SHORTEST_SLEEP_US 3

/* Seeds the thread's generator and lets its sleeps end on time. */
RB_HIDDEN void rb_provoke_init(struct rb_thread *self);
/* A delay drawn from 0 to longest_us. */
RB_HIDDEN void rb_delay(struct rb_thread *self, uint32_t longest_us);

/* A delay in `ppm` of a million cases. */
static inline void rb_provoke(struct rb_thread *self, uint32_t ppm)
{
    if (RB_UNLIKELY(ppm) && rb_random(self) % 1000000 < ppm)
        rb_delay(self, rb_state.control->delay_us);
}

#endif
