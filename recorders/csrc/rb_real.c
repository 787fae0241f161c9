/*
 * Prohibitions: may run before any constructor, and from within malloc. Calls nothing but dlsym and dlvsym.
 */
#include "rb_real.h"

#include <dlfcn.h>

void rb_real_resolve(void)
{
    if (rb_state.resolved)
        return;
    rb_state.resolved = 2;
#define X(returns, name, parameters, version)                                                                          \
    {                                                                                                                  \
        void *found = NULL;                                                                                            \
        const char *wanted = version;                                                                                  \
                                                                                                                       \
        if (wanted)                                                                                                    \
            found = dlvsym(RTLD_NEXT, #name, wanted);                                                                  \
        if (!found)                                                                                                    \
            found = dlsym(RTLD_NEXT, #name);                                                                           \
        rb_state.real.name = (returns(*) parameters)found;                                                             \
    }
    RB_HOOKS(X)
#undef X
    rb_state.resolved = 1;
}

void *rb_bootstrap_alloc(size_t alignment, size_t bytes)
{
    size_t from = (rb_state.bootstrap_used + alignment - 1) & ~(alignment - 1);

    if (bytes > sizeof(rb_state.bootstrap) || from > sizeof(rb_state.bootstrap) - bytes)
        return NULL;
    rb_state.bootstrap_used = from + bytes;
    return rb_state.bootstrap + from;
}
