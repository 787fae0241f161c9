/*
 * The way from a patched site to C and back. A site's nop has become `call thunk`; the thunk (rb_patch.c) is
 *
 *     push %rdi; push %rsi
 *     the site's code                   leaves operands in rdi, rsi
 *     push $site; movl $what, 4(%rsp)   what: kind | size << 8 | flags << 16
 *     jmp *trampoline
 *
 * and rb_trampoline returns to the program with every general register as it was.
 */
#ifndef RB_TRAMPOLINE_H
#define RB_TRAMPOLINE_H

#include <stdint.h>

#include "rb_runtime.h"

#define RB_WHAT(kind, size, flags) ((uint32_t)(kind) | (uint32_t)(size) << 8 | (uint32_t)(flags) << 16)
#define RB_WHAT_KIND(what)         ((what) & 0xff)
#define RB_WHAT_SIZE(what)         ((what) >> 8 & 0xff)
#define RB_WHAT_FLAGS(what)        ((what) >> 16)

RB_HIDDEN void rb_trampoline(void); /* not to be called from C */

/* rb_probe.c: what the trampoline calls. */
RB_HIDDEN void rb_probe(uint64_t first, uint64_t second, uint32_t site, uint32_t what);

#endif
