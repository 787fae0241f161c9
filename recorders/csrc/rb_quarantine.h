/*
 * Freed blocks are filled with RB_POISON and kept from the allocator for a while, in recordings and replays alike: a
 * use after free then reads the poison, the same in every run, instead of what the allocator or another thread put
 * there.
 *
 * A queue per thread, first in first out, so that no lock is needed and a thread's frees alone decide what it gives
 * back. What a thread leaves behind when it ends stays where it is.
 */
#ifndef RB_QUARANTINE_H
#define RB_QUARANTINE_H

#include "rb_runtime.h"

#define RB_QUARANTINE_BYTES   (16ULL << 20) /* per thread */
#define RB_QUARANTINE_BLOCKS  65536         /* per thread; a power of two */
#define RB_QUARANTINE_LARGEST (1ULL << 20)  /* larger blocks go back to the allocator at once, as they are */

struct rb_freed {
    void *block;
    uint64_t bytes;
};

RB_HIDDEN void rb_quarantine_init(struct rb_thread *self);
/* How many bytes of this block rb_quarantine_take would poison. */
RB_HIDDEN uint64_t rb_quarantine_bytes(const struct rb_thread *self, void *block);
/* Poisons `bytes` of a block and keeps it, and gives back what is over the bounds; with 0 bytes gives it back itself.
 */
RB_HIDDEN void rb_quarantine_take(struct rb_thread *self, void *block, uint64_t bytes);

#endif
