/* Sites as rb_site.h says, by hand: what `recbulc cc` writes into a program. */
#ifndef SITES_H
#define SITES_H

#include <stdint.h>

#include "rb_site.h"

/* One object with this many sites; `test_pieces` is its byte. Once per program. */
#define OBJECT(sites)                                                                                                  \
    uint8_t test_pieces;                                                                                               \
    __asm__(".pushsection recbulc_objects, \"a\", @progbits\n"                                                         \
            "test_object:\n"                                                                                           \
            ".ascii \"test object.\"\n"                                                                                \
            ".long " #sites "\n"                                                                                       \
            ".long test_pieces - .\n"                                                                                  \
            ".long 0\n"                                                                                                \
            ".popsection")

/* Text of a site; kind, size and flags are numbers, code the instructions that fetch the operands. */
#define SITE_TEXT(number, kind, size, flags, code)                                                                     \
    "771: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                                                        \
    ".pushsection recbulc_sites, \"a\", @progbits\n"                                                                   \
    ".long 771b - .\n"                                                                                                 \
    ".long test_object - .\n"                                                                                          \
    ".long " #number "\n"                                                                                              \
    ".byte " #kind ", " #size ", " #flags ", 774f - 773f\n"                                                            \
    "773: " code "\n"                                                                                                  \
    "774: .skip 20 - (774b - 773b), 0xcc\n"                                                                            \
    ".popsection\n"

#define SITE(number, kind, size, flags, code) SITE_TEXT(number, kind, size, flags, code)

#define FUNC_ENTRY   1
#define FUNC_EXIT    2
#define LOOP_BACK    4
#define CALL         6
#define BEFORE_READ  8
#define BEFORE_WRITE 9
#define BEFORE_RMW   10
#define AFTER_READ   12
#define AFTER_WRITE  13
#define AFTER_RMW    14

/* An int read or written at an lvalue, with both sites. */
#define READ(number, from)                                                                                             \
    ({                                                                                                                 \
        int value_;                                                                                                    \
        __asm__ volatile(SITE(number, BEFORE_READ, 4, 0, "leaq %1, %%rdi") "movl %1, %0\n" SITE(number, AFTER_READ, 4, \
                                                                                                0, "movl %0, %%edi")   \
                         : "=&r"(value_)                                                                               \
                         : "m"(from)                                                                                   \
                         : "memory", "cc");                                                                            \
        value_;                                                                                                        \
    })
#define WRITE(number, to, value)                                                                                       \
    __asm__ volatile(SITE(number, BEFORE_WRITE, 4, 0, "leaq %0, %%rdi") "movl %1, %0\n" SITE(number, AFTER_WRITE, 4,   \
                                                                                             0, "movl %1, %%edi")      \
                     : "=m"(to)                                                                                        \
                     : "r"(value)                                                                                      \
                     : "memory", "cc")
#endif
