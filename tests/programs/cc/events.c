/*
 * Accesses that are known one by one: says where its variables are, then runs the accesses of each line below, each in
 * a function of its own so that no optimisation merges them. tests/integration/test_cc.py knows what they are.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int vector __attribute__((vector_size(16)));
struct point {
    double x, y, z;
};
struct odd {
    char bytes[13];
};
struct bits {
    unsigned low : 4, high : 12;
};
struct large {
    char bytes[100];
};

int8_t v8;
uint16_t v16;
int32_t v32;
uint64_t v64;
_Bool truth;
float single = 1.5f;
double twice;
void *pointer;
vector four = {1, 2, 3, 4};
long double extended;
__int128 wide;
struct point here = {1, 2, 3}, there;
struct odd odd_from = {"abcdefghijkl"}, odd_to;
struct bits bits;
struct large large_from, large_to;
char text[16];
_Thread_local int own;
_Atomic int32_t counter = 10;
_Atomic uint8_t small;
_Atomic uint64_t word = 5;
_Atomic(char *) place;
int *heap;
static int hidden = 3;
const int constant = 77;

#define ALONE __attribute__((noinline))

#define VARIABLE(type, name)                                                                                           \
    ALONE static void set_##name(type value) { name = value; }                                                         \
    ALONE static type get_##name(void) { return name; }

VARIABLE(int8_t, v8)
VARIABLE(uint16_t, v16)
VARIABLE(int32_t, v32)
VARIABLE(uint64_t, v64)
VARIABLE(_Bool, truth)
VARIABLE(float, single)
VARIABLE(double, twice)
VARIABLE(void *, pointer)
VARIABLE(vector, four)
VARIABLE(long double, extended)
VARIABLE(__int128, wide)
VARIABLE(int, own)

ALONE static void assign_point(void) { there = here; }
ALONE static void assign_odd(void) { odd_to = odd_from; }
ALONE static void clear_point(void) { memset(&there, 0, sizeof(there)); }
ALONE static void copy_large(void) { large_to = large_from; }
ALONE static void set_high(unsigned value) { bits.high = value; }
ALONE static void copy_text(const char *from) { strcpy(text, from); }
ALONE static int32_t add(int32_t n) { return atomic_fetch_add(&counter, n); }
ALONE static int32_t sub(int32_t n) { return atomic_fetch_sub(&counter, n); }
ALONE static int32_t and (int32_t n) { return atomic_fetch_and(&counter, n); }
ALONE static int32_t or (int32_t n) { return atomic_fetch_or(&counter, n); }
ALONE static int32_t xor (int32_t n) { return atomic_fetch_xor(&counter, n); } ALONE static int32_t nand(int32_t n)
{
    return __atomic_fetch_nand((int32_t *)&counter, n, __ATOMIC_SEQ_CST);
}
ALONE static int32_t most(int32_t n) { return __atomic_fetch_max((int32_t *)&counter, n, __ATOMIC_SEQ_CST); }
ALONE static int32_t least(int32_t n) { return __atomic_fetch_min((int32_t *)&counter, n, __ATOMIC_SEQ_CST); }
ALONE static uint64_t umost(uint64_t n) { return __atomic_fetch_max((uint64_t *)&word, n, __ATOMIC_SEQ_CST); }
ALONE static uint8_t swap(uint8_t n) { return atomic_exchange(&small, n); }
ALONE static int strong(uint64_t from, uint64_t to) { return atomic_compare_exchange_strong(&word, &from, to); }
ALONE static int weak(uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_weak_explicit(&word, &from, to, memory_order_acquire, memory_order_relaxed);
}
ALONE static void publish(char *to) { atomic_store_explicit(&place, to, memory_order_release); }
ALONE static char *published(void) { return atomic_load_explicit(&place, memory_order_acquire); }
ALONE static void put(int n) { heap[1] = n; }
ALONE static int through(int *there) { return *there += hidden; }
ALONE static int either(int which)
{
    int mine = 4;
    int *at = which ? &mine : &v32;

    mine = 6;
    return *at + mine + constant;
}

#define SAY(name) printf(#name " %lx %zu\n", (unsigned long)&name, sizeof(name))

int main(int argc, char **argv)
{
    uint64_t sum = 0;
    int local = 40;

    (void)argv;
    heap = calloc(4, sizeof(int));
    SAY(v8), SAY(v16), SAY(v32), SAY(v64), SAY(truth), SAY(single), SAY(twice), SAY(pointer), SAY(four), SAY(extended);
    SAY(wide), SAY(here), SAY(there), SAY(odd_from), SAY(odd_to), SAY(bits), SAY(large_from), SAY(large_to), SAY(text);
    SAY(own), SAY(counter), SAY(small), SAY(word), SAY(place), SAY(hidden), SAY(constant), SAY(local);
    printf("block %lx %zu\n", (unsigned long)heap, 4 * sizeof(int));
    fflush(stdout);

    set_v8((int8_t)-argc), sum += (uint8_t)get_v8();
    set_v16(0xbeef), sum += get_v16();
    set_v32(-2), sum += (uint32_t)get_v32();
    set_v64(0xfedcba9876543210), sum += get_v64();
    set_truth(1), sum += get_truth();
    sum += get_single() > 1, set_single(-0.0f);
    set_twice(0.1), sum += get_twice() < 1;
    set_pointer(&v8), sum += get_pointer() == &v8;
    sum += (unsigned)get_four()[2], set_four((vector){-1, 5, -6, 7});
    set_extended(-1.0L), sum += get_extended() < 0;
    set_wide((__int128)3 << 64 | 9), sum += (uint64_t)get_wide();
    set_own(8), sum += (unsigned)get_own();

    assign_point();
    assign_odd();
    clear_point();
    for (unsigned i = 0; i < sizeof(large_from); i++)
        ((volatile char *)large_from.bytes)[i] = (char)i;
    copy_large();
    set_high(0xabc);
    copy_text("tear");

    sum +=
        (unsigned)(add(5) + sub(3) + and(14) + or (33) + xor(7) + nand(12) + most(-9) + most(4) + least(9) + least(-8));
    sum += umost(-1UL) + swap(200) + swap(7);
    sum += (unsigned)strong(-1UL, 6) + (unsigned)strong(5, 7);
    while (!weak(6, 8))
        ;
    publish(text), sum += (unsigned char)*published();

    put(12);
    sum += (unsigned)through(&local);
    sum += (unsigned)(either(argc) + either(argc - 1));
    printf("%lu\n", (unsigned long)sum);
    free(heap);
    return 0;
}
