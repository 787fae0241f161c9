/*
 * The modules that are loaded when the program starts, and their sites: numbered as rb_site.h says, patched where the
 * engine wants them. control.dir/modules lists them, `base path` a line, base in hexadecimal.
 */
#ifndef RB_MODULES_H
#define RB_MODULES_H

#include "rb_runtime.h"
#include "rb_site.h"

/* The sites and objects of one module, as loaded. */
struct rb_module {
    const char *path;
    uintptr_t base;      /* what is added to the file's addresses */
    uintptr_t low, high; /* its loaded part */
    uintptr_t code_low, code_high;
    const struct rb_site *sites;
    size_t nsites;
    struct rb_object *objects;
    size_t nobjects;
};

/* Does all of it, once, before main; also fills in rb_state.quiet. */
RB_HIDDEN void rb_modules_init(void);

#endif
