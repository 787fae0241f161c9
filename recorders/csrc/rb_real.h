/*
 * The functions behind the hooks, and memory for those who ask for some while they are being looked up.
 */
#ifndef RB_REAL_H
#define RB_REAL_H

#include "rb_runtime.h"

/* Fills in rb_state.real. Idempotent; the first caller is alone in the process (a constructor, or what runs before). */
RB_HIDDEN void rb_real_resolve(void);

/* dlsym may allocate; there is no allocator before it has answered. Never freed. NULL when used up. */
RB_HIDDEN void *rb_bootstrap_alloc(size_t alignment, size_t bytes);

static inline int rb_is_bootstrap(const void *block)
{
    return (uintptr_t)block - (uintptr_t)rb_state.bootstrap < sizeof(rb_state.bootstrap);
}

/* For hooks that may run before the constructor has: the real functions, or NULL while they are being looked up. */
static inline const struct rb_real *rb_real(void)
{
    if (RB_UNLIKELY(rb_state.resolved != 1)) {
        if (rb_state.resolved == 2)
            return NULL;
        rb_real_resolve();
    }
    return &rb_state.real;
}

#endif
