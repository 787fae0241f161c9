/* What C11 has to offer, in one program whose output depends on nothing else. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

struct small {
    char a;
    short b;
    int c;
};
struct odd {
    char bytes[13];
};
struct big {
    long words[40];
    double last;
};
struct bits {
    unsigned a : 3;
    int b : 7;
    unsigned long c : 41;
    bool d : 1;
};
union pun {
    float f;
    uint32_t u;
    struct {
        uint16_t lo, hi;
    } half;
};
struct pair {
    long first, second;
};
struct flexible {
    int count;
    int items[];
};

struct small shared_small = {'x', -2, 70000};
struct odd shared_odd;
struct big shared_big;
struct bits shared_bits;
union pun shared_pun;
long double shared_long_double = 1.25L;
__int128 shared_int128 = 7;
double complex shared_complex;
struct point {
    int x, y;
};
_Atomic struct point atomic_point;
thread_local int own = 5;
static int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
int *const pointer_into_table = &table[4];
volatile int seen;
const char *const names[] = {"zero", "one", "two"};
static jmp_buf escape;

static unsigned long sum;
static void mix(unsigned long value) { sum = (sum ^ value) * 0x100000001b3UL; }

static struct big fill(struct big from, long step)
{
    for (int i = 0; i < 40; i++)
        from.words[i] += step * i;
    from.last += 0.5;
    return from;
}

static long add_all(int count, ...)
{
    va_list list, again;
    long total = 0;

    va_start(list, count);
    va_copy(again, list);
    for (int i = 0; i < count; i++)
        total += i % 2 ? (long)va_arg(list, double) : va_arg(list, int);
    for (int i = 0; i < count; i++)
        total += i % 2 ? (long)va_arg(again, double) : va_arg(again, int);
    va_end(again);
    va_end(list);
    return total;
}

static void dive(int depth)
{
    volatile char room[64];

    room[depth % 64] = (char)depth;
    if (!depth)
        longjmp(escape, 3);
    dive(depth - 1);
    seen += room[0];
}

static int interpret(const char *program)
{
    static void *const steps[] = {&&add, &&twice, &&less, &&end};
    int value = 1;

    goto *steps[(unsigned char)*program++ & 3];
add:
    value += 3;
    goto *steps[(unsigned char)*program++ & 3];
twice:
    value *= 2;
    goto *steps[(unsigned char)*program++ & 3];
less:
    value -= 1;
    goto *steps[(unsigned char)*program++ & 3];
end:
    return value;
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int even(unsigned n);
static int odd(unsigned n) { return n ? even(n - 1) : 0; }
static int even(unsigned n) { return n ? odd(n - 1) : 1; }

static const char *word(int n)
{
    switch (n) {
    case 0:
    case 1:
    case 2:
        return names[n];
    case 10:
        return "ten";
    case -7:
        return "minus seven";
    default:
        return "many";
    }
}

static long variable_length(int n)
{
    long values[n], total = 0;

    memset(values, 0, sizeof(values));
    for (int i = 0; i < n; i++)
        values[i] = i * i;
    for (int i = n; i-- > 0;)
        total = total * 3 + values[i];
    return total;
}

static uint64_t assembly(uint64_t x)
{
    uint64_t y;

    __asm__("lea (%1,%1,2), %0\n\txor $5, %0" : "=r"(y) : "r"(x) : "cc");
    __asm__ volatile("" ::: "memory");
    return y;
}

static void strings(void)
{
    char a[64] = "abc", b[64], *copy;

    strcpy(b, a);
    strcat(b, "defghijk");
    strncat(b, "0123456789", 4);
    memmove(b + 3, b, 9);
    printf("%s %zu %d %d\n", b, strlen(b), strcmp(a, b) < 0, memcmp(a, b, 3));
    strncpy(a, b, 20);
    printf("%s %s %s %d\n", strchr(a, 'c'), strrchr(a, 'c'), (char *)memchr(a, 'd', 30), strncmp(a, b, 5));
    copy = strdup(a);
    memset(copy, '*', 4);
    printf("%s %zu %s\n", copy, strnlen(copy, 3), strchr(copy, 'Z') ? "yes" : "no");
    free(copy);
    *stpcpy(b, "end") = '.';
    printf("%.4s\n", b);
}

static int work(void *argument)
{
    own += *(int *)argument;
    return own;
}

int main(int argc, char **argv)
{
    struct small local = shared_small, *heap = malloc(sizeof(*heap));
    struct flexible *items = malloc(sizeof(*items) + 5 * sizeof(int));
    struct odd odd_copy;
    int n, result, argument = 10;
    thrd_t thread;

    (void)argv;
    *heap = local;
    heap->c += argc;
    shared_small = *heap;
    printf("%c %d %d\n", shared_small.a, shared_small.b, shared_small.c);
    for (unsigned i = 0; i < sizeof(shared_odd.bytes); i++)
        shared_odd.bytes[i] = (char)('a' + i);
    odd_copy = shared_odd;
    odd_copy.bytes[12] = 0;
    shared_odd = odd_copy;
    printf("%s\n", shared_odd.bytes);
    shared_big = fill(fill(shared_big, 2), 3);
    printf("%ld %g\n", shared_big.words[39], shared_big.last);
    shared_bits = (struct bits){5, -33, 1UL << 40 | 9, true};
    shared_bits.b += 40;
    shared_bits.c += 1;
    printf("%u %d %lu %d\n", shared_bits.a, shared_bits.b, (unsigned long)shared_bits.c, shared_bits.d);
    shared_pun.f = 1.5f;
    shared_pun.half.lo = 7;
    printf("%08x %a\n", shared_pun.u, (double)shared_pun.f);
    shared_long_double = sqrtl(shared_long_double * 3);
    printf("%La\n", shared_long_double);
    shared_int128 = shared_int128 * -0x123456789abcdefLL * 0x7777777777LL;
    printf("%016lx%016lx\n", (unsigned long)((unsigned __int128)shared_int128 >> 64), (unsigned long)shared_int128);
    shared_complex = cpow(1.0 + 2.0 * I, 2.0);
    printf("%.6f %.6f\n", creal(shared_complex), cimag(shared_complex));
    atomic_store(&atomic_point, ((struct point){3, 4}));
    struct point loaded = atomic_exchange(&atomic_point, ((struct point){5, 6}));
    printf("%d\n", loaded.x * loaded.y);
    printf("%ld\n", add_all(6, 1, 2.5, 3, 4.5, 5, 6.5));
    if ((n = setjmp(escape)) == 0)
        dive(20);
    printf("setjmp %d %d\n", n, seen);
    printf("%d\n", interpret("\0\1\2\1\0\3"));
    qsort(table, 8, sizeof(*table), ascending);
    for (int i = 0; i < 8; i++)
        mix((unsigned long)table[i]);
    printf("%d %lx\n", *pointer_into_table, sum);
    printf("%d %d\n", even(1000), odd(1001));
    for (int i = -8; i < 12; i++)
        fputs(word(i), stdout);
    printf("\n%ld\n", variable_length(10 + argc));
    printf("%lu\n", (unsigned long)assembly(11));
    items->count = 5;
    for (int i = 0; i < items->count; i++)
        items->items[i] = i * own;
    for (int i = 0, j = 4; i < j; i++, j--) {
        int swap = items->items[i];
        items->items[i] = items->items[j];
        items->items[j] = swap;
    }
    for (int i = 0; i < 5; i++)
        printf("%d ", items->items[i]);
    strings();
    thrd_create(&thread, work, &argument);
    thrd_join(thread, &result);
    printf("%d %d\n", result, own);
    free(items);
    free(heap);
    return 0;
}
