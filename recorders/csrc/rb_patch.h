/*
 * Turns the nops of sites into calls of a thunk each (rb_site.h, rb_trampoline.c).
 */
#ifndef RB_PATCH_H
#define RB_PATCH_H

#include "rb_modules.h"

/*
 * Patches the wanted sites of a module; site n of its objects[i] has the number first[i] + n. Counts what it did in the
 * control page: a nop that is none any more (a debugger's breakpoint) and code that may not be written are counted as
 * unpatched. The program must not run meanwhile.
 */
RB_HIDDEN void rb_patch_module(const struct rb_module *module, const uint32_t *first);

#endif
