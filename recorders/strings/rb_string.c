/*
 * Memory and string functions in pieces of at most eight bytes, each an access with a site of its own, so that a torn
 * copy can be recorded and enforced. `recbulc cc` sends the calls of instrumented code here, compiles this file with
 * the same sites, and adds it to every link.
 *
 * In runs that record or gate no accesses rb_pieces is 0 (rb_object.pieces points at it), and libc does the work.
 * Nothing here may be recognised as a library function by the compiler: built with -fno-builtin. What a function
 * returns is what libc's does; the sign of a comparison is that of the first difference.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RB_HIDDEN __attribute__((visibility("hidden")))

RB_HIDDEN volatile unsigned char rb_pieces;

typedef uint64_t __attribute__((may_alias, aligned(1))) rb_u64;

RB_HIDDEN void *__rb_memcpy(void *to, const void *from, size_t size)
{
    if (!rb_pieces)
        return memcpy(to, from, size);
    unsigned char *t = to;
    const unsigned char *f = from;
    for (; size >= 8; size -= 8, t += 8, f += 8)
        *(rb_u64 *)t = *(const rb_u64 *)f;
    while (size--)
        *t++ = *f++;
    return to;
}

RB_HIDDEN void *__rb_mempcpy(void *to, const void *from, size_t size)
{
    return (char *)__rb_memcpy(to, from, size) + size;
}

RB_HIDDEN void *__rb_memmove(void *to, const void *from, size_t size)
{
    if (!rb_pieces)
        return memmove(to, from, size);
    unsigned char *t = to;
    const unsigned char *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= size)
        return __rb_memcpy(to, from, size);
    t += size;
    f += size;
    for (; size >= 8; size -= 8) {
        t -= 8;
        f -= 8;
        *(rb_u64 *)t = *(const rb_u64 *)f;
    }
    while (size--)
        *--t = *--f;
    return to;
}

RB_HIDDEN void *__rb_memset(void *to, int byte, size_t size)
{
    if (!rb_pieces)
        return memset(to, byte, size);
    unsigned char *t = to;
    uint64_t word = (unsigned char)byte * UINT64_C(0x0101010101010101);
    for (; size >= 8; size -= 8, t += 8)
        *(rb_u64 *)t = word;
    while (size--)
        *t++ = (unsigned char)byte;
    return to;
}

RB_HIDDEN int __rb_memcmp(const void *a, const void *b, size_t size)
{
    if (!rb_pieces)
        return memcmp(a, b, size);
    const unsigned char *x = a, *y = b;
    for (; size >= 8; size -= 8, x += 8, y += 8) {
        uint64_t p = *(const rb_u64 *)x, q = *(const rb_u64 *)y;
        if (p != q)
            return __builtin_bswap64(p) < __builtin_bswap64(q) ? -1 : 1;
    }
    for (; size; size--, x++, y++) {
        int p = *x, q = *y;
        if (p != q)
            return p - q;
    }
    return 0;
}

RB_HIDDEN int __rb_bcmp(const void *a, const void *b, size_t size) { return __rb_memcmp(a, b, size); }

RB_HIDDEN void *__rb_memchr(const void *in, int byte, size_t size)
{
    if (!rb_pieces)
        return memchr(in, byte, size);
    for (const unsigned char *p = in; size; size--, p++)
        if (*p == (unsigned char)byte)
            return (void *)p;
    return NULL;
}

RB_HIDDEN size_t __rb_strlen(const char *s)
{
    if (!rb_pieces)
        return strlen(s);
    const char *p = s;
    while (*p)
        p++;
    return (size_t)(p - s);
}

RB_HIDDEN size_t __rb_strnlen(const char *s, size_t most)
{
    if (!rb_pieces)
        return strnlen(s, most);
    size_t n = 0;
    while (n < most && s[n])
        n++;
    return n;
}

RB_HIDDEN char *__rb_stpcpy(char *to, const char *from)
{
    if (!rb_pieces)
        return stpcpy(to, from);
    for (;; to++, from++) {
        char c = *from;
        *to = c;
        if (!c)
            return to;
    }
}

RB_HIDDEN char *__rb_strcpy(char *to, const char *from)
{
    if (!rb_pieces)
        return strcpy(to, from);
    __rb_stpcpy(to, from);
    return to;
}

RB_HIDDEN char *__rb_strncpy(char *to, const char *from, size_t size)
{
    if (!rb_pieces)
        return strncpy(to, from, size);
    size_t n = 0;
    for (char c = 1; n < size && c; n++) {
        c = from[n];
        to[n] = c;
    }
    for (; n < size; n++)
        to[n] = 0;
    return to;
}

RB_HIDDEN char *__rb_strcat(char *to, const char *from)
{
    if (!rb_pieces)
        return strcat(to, from);
    __rb_stpcpy(to + __rb_strlen(to), from);
    return to;
}

RB_HIDDEN char *__rb_strncat(char *to, const char *from, size_t most)
{
    if (!rb_pieces)
        return strncat(to, from, most);
    char *end = to + __rb_strlen(to);
    size_t n = 0;
    for (; n < most; n++) {
        char c = from[n];
        if (!c)
            break;
        end[n] = c;
    }
    end[n] = 0;
    return to;
}

RB_HIDDEN int __rb_strncmp(const char *a, const char *b, size_t most)
{
    if (!rb_pieces)
        return strncmp(a, b, most);
    for (; most; most--, a++, b++) {
        int p = (unsigned char)*a, q = (unsigned char)*b;
        if (p != q || !p)
            return p - q;
    }
    return 0;
}

RB_HIDDEN int __rb_strcmp(const char *a, const char *b)
{
    if (!rb_pieces)
        return strcmp(a, b);
    return __rb_strncmp(a, b, SIZE_MAX);
}

RB_HIDDEN char *__rb_strchr(const char *s, int wanted)
{
    if (!rb_pieces)
        return strchr(s, wanted);
    for (;; s++) {
        char c = *s;
        if (c == (char)wanted)
            return (char *)s;
        if (!c)
            return NULL;
    }
}

RB_HIDDEN char *__rb_strrchr(const char *s, int wanted)
{
    if (!rb_pieces)
        return strrchr(s, wanted);
    const char *last = NULL;
    for (;; s++) {
        char c = *s;
        if (c == (char)wanted)
            last = s;
        if (!c)
            return (char *)last;
    }
}

RB_HIDDEN char *__rb_strdup(const char *s)
{
    if (!rb_pieces)
        return strdup(s);
    size_t size = __rb_strlen(s) + 1;
    char *copy = malloc(size);
    return copy ? __rb_memcpy(copy, s, size) : NULL;
}

/* What -D_FORTIFY_SOURCE calls instead: as above, but never beyond the room that the compiler knows of. */
extern void __chk_fail(void) __attribute__((noreturn));

static void fit(size_t wanted, size_t room)
{
    if (wanted > room)
        __chk_fail();
}

RB_HIDDEN void *__rb___memcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    fit(size, room);
    return __rb_memcpy(to, from, size);
}

RB_HIDDEN void *__rb___memmove_chk(void *to, const void *from, size_t size, size_t room)
{
    fit(size, room);
    return __rb_memmove(to, from, size);
}

RB_HIDDEN void *__rb___mempcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    fit(size, room);
    return __rb_mempcpy(to, from, size);
}

RB_HIDDEN void *__rb___memset_chk(void *to, int byte, size_t size, size_t room)
{
    fit(size, room);
    return __rb_memset(to, byte, size);
}

RB_HIDDEN char *__rb___stpcpy_chk(char *to, const char *from, size_t room)
{
    if (!rb_pieces) {
        fit(strlen(from) + 1, room);
        return stpcpy(to, from);
    }
    for (;; to++, from++, room--) {
        fit(1, room);
        char c = *from;
        *to = c;
        if (!c)
            return to;
    }
}

RB_HIDDEN char *__rb___strcpy_chk(char *to, const char *from, size_t room)
{
    __rb___stpcpy_chk(to, from, room);
    return to;
}

RB_HIDDEN char *__rb___strncpy_chk(char *to, const char *from, size_t size, size_t room)
{
    fit(size, room);
    return __rb_strncpy(to, from, size);
}

RB_HIDDEN char *__rb___strcat_chk(char *to, const char *from, size_t room)
{
    size_t length = __rb_strlen(to);

    fit(length, room);
    __rb___stpcpy_chk(to + length, from, room - length);
    return to;
}

RB_HIDDEN char *__rb___strncat_chk(char *to, const char *from, size_t most, size_t room)
{
    fit(__rb_strlen(to) + __rb_strnlen(from, most) + 1, room);
    return __rb_strncat(to, from, most);
}
