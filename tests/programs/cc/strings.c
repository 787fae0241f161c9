/*
 * Our memory and string functions against libc's, which pointers to them still lead to: says what differs. With an
 * argument: copies it where there is room for 8 bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE  40
#define CASES 400

static char ours[SIZE], theirs[SIZE], source[SIZE];
static int differences;
static unsigned seed = 1;

static void *(*volatile libc_memcpy)(void *, const void *, size_t) = memcpy;
static void *(*volatile libc_memmove)(void *, const void *, size_t) = memmove;
static void *(*volatile libc_mempcpy)(void *, const void *, size_t) = mempcpy;
static void *(*volatile libc_memset)(void *, int, size_t) = memset;
static int (*volatile libc_memcmp)(const void *, const void *, size_t) = memcmp;
static void *(*volatile libc_memchr)(const void *, int, size_t) = memchr;
static size_t (*volatile libc_strlen)(const char *) = strlen;
static size_t (*volatile libc_strnlen)(const char *, size_t) = strnlen;
static char *(*volatile libc_strcpy)(char *, const char *) = strcpy;
static char *(*volatile libc_stpcpy)(char *, const char *) = stpcpy;
static char *(*volatile libc_strncpy)(char *, const char *, size_t) = strncpy;
static char *(*volatile libc_strcat)(char *, const char *) = strcat;
static char *(*volatile libc_strncat)(char *, const char *, size_t) = strncat;
static int (*volatile libc_strcmp)(const char *, const char *) = strcmp;
static int (*volatile libc_strncmp)(const char *, const char *, size_t) = strncmp;
static char *(*volatile libc_strchr)(const char *, int) = strchr;
static char *(*volatile libc_strrchr)(const char *, int) = strrchr;

static unsigned any(unsigned below)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % below;
}

static int sign(int n) { return (n > 0) - (n < 0); }

/* Few letters, high ones among them, so that strings have something in common. */
static void fill(void)
{
    static const char letters[] = {'a', 'b', (char)0xe9};

    for (int i = 0; i < SIZE; i++) {
        source[i] = letters[any(3)];
        ours[i] = theirs[i] = any(8) ? source[i] : 'a';
    }
    source[any(SIZE / 2)] = 0;
    ours[any(SIZE / 4)] = 0;
    ours[SIZE - 1] = 0;
    libc_memcpy(theirs, ours, SIZE);
}

static void check(const char *name, long got, long wanted)
{
    if (got != wanted || libc_memcmp(ours, theirs, SIZE)) {
        printf("%s: %ld, not %ld\n", name, got, wanted);
        differences++;
    }
}

#define TO(call) ((char *)(call) - ours)
#define AS(call) ((char *)(call) - theirs)

static void compare(void)
{
    size_t n = any(SIZE / 2), from = any(SIZE / 2), to = any(SIZE / 2);
    int c = source[any(SIZE)];

    fill();
    check("memcpy", TO(memcpy(ours + to, source, n)), AS(libc_memcpy(theirs + to, source, n)));
    check("memmove", TO(memmove(ours + to, ours + from, n)), AS(libc_memmove(theirs + to, theirs + from, n)));
    check("mempcpy", TO(mempcpy(ours + to, source, n)), AS(libc_mempcpy(theirs + to, source, n)));
    check("memset", TO(memset(ours + to, c, n)), AS(libc_memset(theirs + to, c, n)));
    check("memcmp", sign(memcmp(ours, source, n)), sign(libc_memcmp(ours, source, n)));
    check("memchr", (char *)memchr(source, c, n) - source, (char *)libc_memchr(source, c, n) - source);
    fill();
    check("strlen", (long)strlen(source), (long)libc_strlen(source));
    check("strnlen", (long)strnlen(source, n), (long)libc_strnlen(source, n));
    check("strcmp", sign(strcmp(ours, source)), sign(libc_strcmp(ours, source)));
    check("strncmp", sign(strncmp(ours, source, n)), sign(libc_strncmp(ours, source, n)));
    check("strchr", strchr(source, c) - source, libc_strchr(source, c) - source);
    check("strrchr", strrchr(source, c) - source, libc_strrchr(source, c) - source);
    check("strchr of 0", strchr(source, 0) - source, libc_strchr(source, 0) - source);
    check("strcat", TO(strcat(ours, source)), AS(libc_strcat(theirs, source)));
    fill();
    check("strncat", TO(strncat(ours, source, n)), AS(libc_strncat(theirs, source, n)));
    check("strcpy", TO(strcpy(ours + to, source)), AS(libc_strcpy(theirs + to, source)));
    check("stpcpy", TO(stpcpy(ours + to, source)), AS(libc_stpcpy(theirs + to, source)));
    check("strncpy", TO(strncpy(ours + to, source, n)), AS(libc_strncpy(theirs + to, source, n)));
    char *copy = strdup(source);
    check("strdup", libc_strcmp(copy, source), 0);
    free(copy);
}

int main(int argc, char **argv)
{
    static char room[8];

    for (int i = 0; i < CASES; i++)
        compare();
    printf("%d differences\n", differences);
    fflush(stdout);
    if (argc > 1)
        puts(strcpy(room, argv[1]));
    return 0;
}
