/*
 * A thread's log: control.dir/<number>.events, an array of rb_event.
 *
 * The file grows by chunks that are allocated on disk before they are mapped (a hole on a full disk would be a SIGBUS),
 * shared and pre-faulted: what has been written is the kernel's, whatever becomes of the process. Where no chunk is to
 * be had the log ends with a LOST record, the thread's `lost` is set and the program goes on.
 *
 * Only the thread itself writes its log. A signal handler on it may append in the middle of an append: every record
 * has its own slot.
 */
#ifndef RB_LOG_H
#define RB_LOG_H

#include "rb_runtime.h"

/* Address space of one log; the recording of a thread ends there at the latest. */
#define RB_LOG_RESERVE (16ULL << 30)
/* The first chunk; they double from there up to control.chunk_bytes, so that short threads stay cheap. */
#define RB_LOG_SMALLEST (64ULL << 10)

/* Opens the log of self->number. What does not work is seen at the first append. */
RB_HIDDEN void rb_log_init(struct rb_thread *self);
/* Cuts the file to what was written and forgets it. */
RB_HIDDEN void rb_log_deinit(struct rb_thread *self);
/* Makes room for `slot`, or ends the log: returns slot, or the thread's spill record. */
RB_HIDDEN struct rb_event *rb_log_grow(struct rb_thread *self, struct rb_event *slot);

/* A slot for one more record, all zero; becomes part of the log when its `before` is set. Never NULL. */
static inline struct rb_event *rb_log_append(struct rb_thread *self)
{
    uint64_t slot = sizeof(struct rb_event);

    /* One instruction, so that no signal handler gets the same slot; not locked: no other thread is concerned. */
    __asm__ volatile("xaddq %0, %1" : "+r"(slot), "+m"(self->log.next) : : "cc");
    if (RB_UNLIKELY((struct rb_event *)slot >= self->log.limit))
        return rb_log_grow(self, (struct rb_event *)slot);
    self->control->events++;
    return (struct rb_event *)slot;
}

#endif
