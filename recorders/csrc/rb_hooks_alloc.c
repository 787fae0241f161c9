/*
 * Hooks of the allocator. C++'s new and delete come through here too.
 *
 * Every block that the program allocates and frees is an event; what libc allocates for itself is not (RB_ENTER).
 *
 * Prohibitions: allocates nothing of its own. May run before the constructor, and within dlsym (rb_real.h).
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "rb_call.h"
#include "rb_quarantine.h"
#include "rb_real.h"

/* An allocation as an event; `allocate` is the expression that makes it. */
#define ALLOCATE(self, bytes_, flags_, allocate)                                                                       \
    ({                                                                                                                 \
        struct rb_call call = RB_CALL(MALLOC, 0);                                                                      \
                                                                                                                       \
        call.event.value = bytes_;                                                                                     \
        call.event.flags = flags_;                                                                                     \
        rb_call_begin(self, &call);                                                                                    \
        void *made = allocate;                                                                                         \
        call.event.object = (uint64_t)made;                                                                            \
        rb_call_end(self, &call);                                                                                      \
        made;                                                                                                          \
    })

RB_EXPORT void *malloc(size_t bytes)
{
    struct rb_thread *self = RB_ENTER();
    const struct rb_real *real;

    if (self)
        return ALLOCATE(self, bytes, 0, rb_state.real.malloc(bytes));
    real = rb_real();
    return real ? real->malloc(bytes) : rb_bootstrap_alloc(16, bytes);
}

RB_EXPORT void *calloc(size_t count, size_t bytes)
{
    struct rb_thread *self = RB_ENTER();
    const struct rb_real *real;

    if (self)
        return ALLOCATE(self, count * bytes, RB_EVENT_ZERO, rb_state.real.calloc(count, bytes));
    real = rb_real();
    return real ? real->calloc(count, bytes) : rb_bootstrap_alloc(16, count * bytes);
}

static void *aligned(struct rb_thread *self, size_t alignment, size_t bytes)
{
    return ALLOCATE(self, bytes, 0, rb_state.real.memalign(alignment, bytes));
}

RB_EXPORT void *memalign(size_t alignment, size_t bytes)
{
    struct rb_thread *self = RB_ENTER();
    const struct rb_real *real;

    if (self)
        return aligned(self, alignment, bytes);
    real = rb_real();
    return real ? real->memalign(alignment, bytes) : rb_bootstrap_alloc(alignment, bytes);
}

RB_EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    struct rb_thread *self = RB_ENTER();

    return self ? aligned(self, alignment, bytes) : rb_real()->aligned_alloc(alignment, bytes);
}

RB_EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    struct rb_thread *self = RB_ENTER();
    int result = 0;

    if (!self)
        return rb_real()->posix_memalign(block, alignment, bytes);
    ALLOCATE(self, bytes, 0, (result = rb_state.real.posix_memalign(block, alignment, bytes)) ? NULL : *block);
    return result;
}

/* Stamped before the poisoning begins and after it has ended; the block itself is given back later. */
static void release(struct rb_thread *self, void *block)
{
    struct rb_call call = RB_CALL(FREE, block);
    int error = errno;

    call.event.value = rb_quarantine_bytes(self, block);
    rb_call_begin(self, &call);
    rb_quarantine_take(self, block, call.event.value);
    rb_call_end(self, &call);
    errno = error;
}

RB_EXPORT void free(void *block)
{
    struct rb_thread *self;

    if (!block || rb_is_bootstrap(block))
        return;
    self = RB_ENTER();
    if (self)
        release(self, block);
    else
        rb_real()->free(block);
}

/* A new block, a copy and a free: what still uses the old one finds poison there. */
static void *moved(struct rb_thread *self, void *block, size_t bytes)
{
    size_t had = malloc_usable_size(block);
    void *made = ALLOCATE(self, bytes, 0, rb_state.real.malloc(bytes));

    if (!made)
        return NULL;
    memcpy(made, block, had < bytes ? had : bytes);
    self->inside = 1;
    release(self, block);
    return made;
}

static void *reallocate(struct rb_thread *self, void *block, size_t bytes)
{
    const struct rb_real *real;
    size_t left;
    void *made;

    if (self && block && bytes && !rb_is_bootstrap(block))
        return moved(self, block, bytes);
    if (self && !block)
        return ALLOCATE(self, bytes, 0, rb_state.real.malloc(bytes));
    if (self && !rb_is_bootstrap(block)) { /* of no bytes: glibc frees */
        release(self, block);
        return NULL;
    }
    if (self)
        rb_leave(self);
    real = rb_real();
    if (real && !rb_is_bootstrap(block))
        return real->realloc(block, bytes);
    made = real ? real->malloc(bytes) : rb_bootstrap_alloc(16, bytes);
    if (made && block) { /* how long it was nobody knows */
        left = (size_t)(rb_state.bootstrap + sizeof(rb_state.bootstrap) - (char *)block);
        memcpy(made, block, left < bytes ? left : bytes);
    }
    return made;
}

RB_EXPORT void *realloc(void *block, size_t bytes) { return reallocate(RB_ENTER(), block, bytes); }

RB_EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t product;

    if (__builtin_mul_overflow(count, bytes, &product)) {
        errno = ENOMEM;
        return NULL;
    }
    return reallocate(RB_ENTER(), block, product);
}
