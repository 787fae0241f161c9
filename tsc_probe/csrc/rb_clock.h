/*
 * Fenced reads of the core's own time stamp counter: one function per figure of ReCBuLC §3.1.
 *
 * A stamp must fall between what stands before it and what stands after it in its thread: every earlier store is
 * visible to all cores (GV) and every earlier load has its value when the clock is read, and no later access happens
 * before the clock is read. Two readings are *naive* and give no such promise; they exist to be measured against.
 *
 * Every function returns the raw counter. `aux` receives IA32_TSC_AUX (Linux: core number in bits 0-11, node above)
 * where the sequence reads it in the same instruction as the clock, else RB_AUX_NONE.
 *
 * Thread-safety: a scratch line belongs to one thread; its lock-prefixed access never leaves the core's own cache.
 * Cost: see `recbulc doctor --litmus`. Everything is `static inline`; the asm blocks clobber memory, so the compiler
 * moves no access across a stamp either.
 */
#ifndef RB_CLOCK_H
#define RB_CLOCK_H

#include <stdint.h>

#define RB_CACHE_LINE    64
#define RB_AUX_NONE      UINT32_MAX
#define RB_AUX_CORE(aux) ((int)((aux) & 0xfff))

/* A cache line of its thread's own, for the fences that need a memory operand. */
struct rb_scratch {
    _Alignas(RB_CACHE_LINE) uint64_t cas; /* always 0: CAS(0 -> 0) */
    uint64_t store;                       /* target of the unrelated STORE of Fig. 2(c) */
    uint64_t stamp;                       /* STORE TSC / READ TSC of Fig. 2(d), 2(e) */
};

/* Naive: RDTSC is ordered with nothing; earlier accesses may still be under way, later ones may already be done. */
static inline uint64_t rb_clock_rdtsc(struct rb_scratch *scratch, uint32_t *aux)
{
    uint64_t lo, hi;

    (void)scratch;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
    *aux = RB_AUX_NONE;
    return hi << 32 | lo;
}

/* Naive: RDTSCP waits for earlier loads, but not for stores in the write buffer, and holds nothing back behind it. */
static inline uint64_t rb_clock_rdtscp(struct rb_scratch *scratch, uint32_t *aux)
{
    uint64_t lo, hi;

    (void)scratch;
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(*aux) : : "memory");
    return hi << 32 | lo;
}

/* Fig. 2(c): fences on both sides. */
static inline uint64_t rb_clock_2c(struct rb_scratch *scratch, uint32_t *aux)
{
    uint64_t lo, hi;

    __asm__ volatile("mfence\n\t"            /* earlier stores GV before any later *memory access* ... */
                     "movq $0, %[store]\n\t" /* ... of which this is one: RDTSC is none by itself */
                     "lfence\n\t" /* that store is done, and so the MFENCE before it, when the clock is read */
                     "rdtsc\n\t"
                     "lfence" /* the clock is read before any later instruction starts */
                     : "=a"(lo), "=d"(hi), [store] "=m"(scratch->store)
                     :
                     : "memory");
    *aux = RB_AUX_NONE;
    return hi << 32 | lo;
}

/*
 * The common tail of 2(d), 2(e) and card: the stamp goes through memory and is read back. The load depends on the
 * store, the store on the clock read, and under TSO no later load is performed before this one.
 */
#define RB_STORE_AND_READ_BACK                                                                                         \
    "shlq $32, %%rdx\n\t"                                                                                              \
    "orq %%rdx, %%rax\n\t"                                                                                             \
    "movq %%rax, %[stamp]\n\t"                                                                                         \
    "movq %[stamp], %%rax"

/* A locked CAS on the thread's own line: completes only when the write buffer is drained, so earlier stores are GV. */
#define RB_DRAIN_BY_CAS                                                                                                \
    "xorl %%eax, %%eax\n\t"                                                                                            \
    "lock cmpxchgq %%rax, %[cas]\n\t"

/* Fig. 2(d): CAS instead of MFENCE; store and read back instead of the last LFENCE. */
static inline uint64_t rb_clock_2d(struct rb_scratch *scratch, uint32_t *aux)
{
    uint64_t tsc;

    __asm__ volatile(RB_DRAIN_BY_CAS
                     "lfence\n\t" /* RDTSC waits for nothing by itself: hold it until the CAS is complete */
                     "rdtsc\n\t" RB_STORE_AND_READ_BACK
                     : "=&a"(tsc), [cas] "+m"(scratch->cas), [stamp] "=m"(scratch->stamp)
                     :
                     : "rdx", "memory", "cc");
    *aux = RB_AUX_NONE;
    return tsc;
}

/* Fig. 2(e), the default stamp: RDTSCP itself waits for the CAS, so no LFENCE is needed. */
static inline uint64_t rb_clock_2e(struct rb_scratch *scratch, uint32_t *aux)
{
    uint64_t tsc;
    uint32_t core;

    __asm__ volatile(RB_DRAIN_BY_CAS "rdtscp\n\t" RB_STORE_AND_READ_BACK
                     : "=&a"(tsc), "=&c"(core), [cas] "+m"(scratch->cas), [stamp] "=m"(scratch->stamp)
                     :
                     : "rdx", "memory", "cc");
    *aux = core;
    return tsc;
}

/* card: 2(e) with the LFENCE of 2(d), for processors whose RDTSCP does not wait as the manuals say. */
static inline uint64_t rb_clock_card(struct rb_scratch *scratch, uint32_t *aux)
{
    uint64_t tsc;
    uint32_t core;

    __asm__ volatile(RB_DRAIN_BY_CAS "lfence\n\t"
                                     "rdtscp\n\t" RB_STORE_AND_READ_BACK
                     : "=&a"(tsc), "=&c"(core), [cas] "+m"(scratch->cas), [stamp] "=m"(scratch->stamp)
                     :
                     : "rdx", "memory", "cc");
    *aux = core;
    return tsc;
}

/*
 * Every sequence, once: X(name, function, keeps). `keeps` is 1 where the sequence promises the order above. The index
 * in this list is the sequence's number in rb_probe.h; tsc_probe/sequences.py lists the same names in the same order.
 */
#define RB_CLOCK_SEQUENCES(X)                                                                                          \
    X("rdtsc", rb_clock_rdtsc, 0)                                                                                      \
    X("rdtscp", rb_clock_rdtscp, 0)                                                                                    \
    X("2c", rb_clock_2c, 1)                                                                                            \
    X("2d", rb_clock_2d, 1)                                                                                            \
    X("2e", rb_clock_2e, 1)                                                                                            \
    X("card", rb_clock_card, 1)

#endif
