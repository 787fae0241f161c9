/*
 * The probe library as Python sees it (cffi reads the part between the two marks).
 *
 * Every run function starts one pinned thread per core, plays `rounds` rounds between them without leaving C, and
 * returns an rb_status. All of them may be called from any thread, several at once only on disjoint cores. A watchdog
 * releases every waiting thread when nothing has moved for `patience_ms`; the run then ends as soon as each of its
 * threads has been on its core once more.
 *
 * Units: stamps in ticks of the core's own counter, after the skew of the test hook; core numbers are Linux's.
 */
#ifndef RB_PROBE_H
#define RB_PROBE_H

#include <stdint.h>

/* cffi: begin */
enum rb_status {
    RB_OK = 0,
    RB_EPIN,   /* a thread could not be pinned to its core */
    RB_ENOMEM, /* no memory or no thread to be had */
    RB_ESTALL, /* no progress for patience_ms: a core is off-line, or starved by other work */
};

/* Software skew of one core's clock; {0, 0.0, 0, 64} is none. */
struct rb_skew {
    int64_t offset_ticks;
    double rate_ppm;
    uint64_t origin;     /* raw reading at which the rate starts to count */
    uint32_t width_bits; /* of the counter: readings are taken modulo 2^width */
};

/* What all runs need to know of one core. */
struct rb_core {
    int number;
    struct rb_skew skew;
};

struct rb_run {
    uint32_t rounds;
    uint32_t patience_ms;
    uint64_t seed; /* of the start offsets and waiting times */
};

/* The testers of Fig. 5: how W(X) is kept between its two clock reads. */
enum rb_tester {
    RB_TESTER_A,      /* (a) a plain store between two 2(c) stamps */
    RB_TESTER_B,      /* (b) a plain store between CPUIDs */
    RB_TESTER_C,      /* (c) XCHG, LFENCE before the second RDTSC */
    RB_TESTER_D,      /* (d) CMPXCHG, LFENCE before the second RDTSC */
    RB_TESTER_C_BARE, /* (c) as printed: W(GV) before RDTSC is not guaranteed; never part of a sound bound */
    RB_TESTER_D_BARE, /* (d) as printed, likewise */
};

/*
 * Fig. 4. before[i], after[i]: member i's stamps around its write, one per round; first: 0 or 1, whose write came
 * first; migrated: 1 where a thread was found on another core than its own.
 */
int rb_scheme1(const struct rb_run *run, const struct rb_core core[2], int tester, uint64_t *before0, uint64_t *after0,
               uint64_t *before1, uint64_t *after1, uint8_t *first, uint8_t *migrated);

/*
 * Core-to-core ping-pong with 2(e) stamps: member 0 stamps `sent`, writes; member 1 sees it, stamps `seen`, answers;
 * member 0 sees the answer, stamps `back`. sent < seen < back in time, for certain, in every round.
 */
int rb_handoff(const struct rb_run *run, const struct rb_core core[2], uint64_t *sent, uint64_t *seen, uint64_t *back,
               uint8_t *migrated);

/* Rounds in which rb_scheme2 has used every line of its flag equally often. */
#define RB_FLAG_TOUR 128

/*
 * Fig. 6. Both workers spin on a flag and read their clocks when it changes: ts0, ts1. Three cores: core[2] releases
 * the flag. Two cores: the workers release it in turn, trigger[k] says who.
 */
int rb_scheme2(const struct rb_run *run, const struct rb_core *core, int cores, uint64_t *ts0, uint64_t *ts1,
               uint8_t *trigger, uint8_t *migrated);

/* The two shapes in which a stamp can be wrong; both claim an order when stamp0 + hi < stamp1. */
enum rb_litmus {
    RB_LITMUS_STORE, /* 0: W(X); stamp0   1: stamp1; R(X).  Wrong if the read misses the write. */
    RB_LITMUS_LOAD,  /* 0: R(X); stamp0   1: stamp1; W(X).  Wrong if the read sees the write. */
};

/* saw[k]: 1 if the read of round k saw the write of round k. `sequence` counts in RB_CLOCK_SEQUENCES. */
int rb_litmus(const struct rb_run *run, const struct rb_core core[2], int shape, int sequence, uint64_t *stamp0,
              uint64_t *stamp1, uint8_t *saw);

/* Consecutive readings of one core's bare counter with varied gaps between them. */
int rb_counter_readings(const struct rb_core *core, uint32_t count, uint64_t *tsc);

/* Nanoseconds per stamp of one sequence, back to back on one core. */
int rb_stamp_cost(const struct rb_core *core, int sequence, uint32_t count, double *ns);

/* The counter and CLOCK_MONOTONIC_RAW read together, as tightly as `tries` tries get them. */
int rb_counter_and_clock(const struct rb_core *core, uint32_t tries, uint64_t *tsc, int64_t *ns);

/* Who runs us, as CPUID tells: "KVMKVMKVM", "Microsoft Hv", ...; empty on bare metal. One trap, some 10 us. */
void rb_hypervisor(char name[13]);

/*
 * Does LFENCE hold RDTSC until everything before it is done? On Intel by architecture; on AMD where the processor says
 * that it is always serialising. 0 where nothing confirms it.
 */
int rb_lfence_orders(void);
/* cffi: end */

#endif
