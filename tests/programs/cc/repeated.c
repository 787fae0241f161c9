/*
 * What code generation likes to merge, reorder or drop even where the passes on the IR are off: test_cc.py counts the
 * instructions that are left. Never run.
 */
#include <stdatomic.h>

struct pair {
    long first, second;
};

int x;
long y;
char bytes[8];
struct pair from, to;
_Atomic int counter;

int reads(void) { return x + x + x; }

void writes(void)
{
    x = 1;
    x = 2;
    x = 3;
}

int forwarded(void)
{
    x = 5;
    return x;
}

void narrow(void)
{
    bytes[0] = 1;
    bytes[1] = 2;
    bytes[2] = 3;
    bytes[3] = 4;
}

void same(void)
{
    long was = y;
    y = was;
}

void copied(void)
{
    to = from;
    to = from;
}

void unused(void) { (void)x; }

int atomics(void)
{
    atomic_store_explicit(&counter, 1, memory_order_relaxed);
    atomic_store_explicit(&counter, 2, memory_order_relaxed);
    return atomic_load_explicit(&counter, memory_order_relaxed) + atomic_load_explicit(&counter, memory_order_relaxed);
}
