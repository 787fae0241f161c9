/*
 * Prohibitions: runs inside free. Allocates nothing; calls the real free only.
 */
#include "rb_quarantine.h"

#include <malloc.h>
#include <string.h>

void rb_quarantine_init(struct rb_thread *self)
{
    size_t bytes = RB_QUARANTINE_BLOCKS * sizeof(struct rb_freed);
    void *ring = rb_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    self->quarantine = (struct rb_quarantine){.ring = rb_sys_failed(ring) ? NULL : ring};
}

uint64_t rb_quarantine_bytes(const struct rb_thread *self, void *block)
{
    uint64_t bytes = malloc_usable_size(block);

    return self->quarantine.ring && bytes <= RB_QUARANTINE_LARGEST ? bytes : 0;
}

void rb_quarantine_take(struct rb_thread *self, void *block, uint64_t bytes)
{
    struct rb_quarantine *queue = &self->quarantine;

    if (!bytes) {
        rb_state.real.free(block);
        return;
    }
    memset(block, RB_POISON, bytes);
    queue->ring[queue->tail++ % RB_QUARANTINE_BLOCKS] = (struct rb_freed){block, bytes};
    queue->bytes += bytes;
    while (queue->bytes > RB_QUARANTINE_BYTES || queue->tail - queue->head == RB_QUARANTINE_BLOCKS) {
        struct rb_freed *oldest = &queue->ring[queue->head++ % RB_QUARANTINE_BLOCKS];

        queue->bytes -= oldest->bytes;
        rb_state.real.free(oldest->block);
    }
}
