/*
 * Scheme 1, ReCBuLC §3.3.1, Fig. 4 and 5: two threads write one variable, each between two reads of its own clock.
 *
 * Whoever wrote first read its first stamp before the other read its second one. A round bounds the skew the better
 * the closer the two writes fall, so member 0 moves its start by the outcome of the last round: the writes keep
 * changing places, and both bounds are fed.
 */
#define _GNU_SOURCE
#include "rb_skew.h"
#include "rb_staircase.h"
#include "rb_team.h"

#define START_JITTER 64 /* cycles; covers a transfer, so that every relative position of the writes occurs */

enum { WORD_GO, WORD_DONE, WORDS };

struct rb_scheme1_game {
    struct rb_word x; /* the contended variable of Fig. 4 */
    uint32_t rounds;
    uint64_t *before[2], *after[2];
    uint8_t *first, *migrated;
    struct rb_word *words;
};

typedef void (*rb_write_fn)(struct rb_scratch *, _Atomic uint64_t *x, uint64_t value, uint64_t *before,
                            uint64_t *after);

/* Fig. 5(a): the fences of Fig. 2(c) on both sides of a plain store. */
static inline void rb_write_a(struct rb_scratch *scratch, _Atomic uint64_t *x, uint64_t value, uint64_t *before,
                              uint64_t *after)
{
    uint32_t aux;

    *before = rb_clock_2c(scratch, &aux);
    atomic_store_explicit(x, value, memory_order_relaxed);
    *after = rb_clock_2c(scratch, &aux);
}

/* Fig. 5(b): CPUID serialises: it waits for the clock read before it, and drains the store before the one after it. */
static inline void rb_write_b(struct rb_scratch *scratch, _Atomic uint64_t *x, uint64_t value, uint64_t *before,
                              uint64_t *after)
{
    uint32_t aux, eax = 0, ebx, ecx = 0, edx;

    *before = rb_clock_rdtsc(scratch, &aux);
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx) : : "memory");
    atomic_store_explicit(x, value, memory_order_relaxed);
    eax = ecx = 0;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx) : : "memory");
    *after = rb_clock_rdtsc(scratch, &aux);
}

/*
 * Fig. 5(c), 5(d): a locked write drains the write buffer itself. The clock read before it needs no fence behind it,
 * because a store becomes visible only after all older instructions have retired; the LFENCE before that read only
 * keeps it from being early, which would loosen the bound. The clock read after it does need an LFENCE: RDTSC may be
 * read while the locked write still waits for its line. WRITE_FENCE is empty in the bare forms, as the paper prints
 * them.
 */
#define RB_LOCKED_WRITE(name, WRITE, WRITE_FENCE)                                                                      \
    static inline void name(struct rb_scratch *scratch, _Atomic uint64_t *x, uint64_t value, uint64_t *before,         \
                            uint64_t *after)                                                                           \
    {                                                                                                                  \
        uint64_t lo, hi, expected = 0;                                                                                 \
                                                                                                                       \
        (void)scratch;                                                                                                 \
        __asm__ volatile("lfence\n\trdtsc" : "=a"(lo), "=d"(hi) : : "memory");                                         \
        *before = hi << 32 | lo;                                                                                       \
        __asm__ volatile(WRITE WRITE_FENCE "rdtsc"                                                                     \
                         : "+a"(expected), "=&d"(hi), [value] "+r"(value), [x] "+m"(*x)                                \
                         :                                                                                             \
                         : "memory", "cc");                                                                            \
        *after = hi << 32 | expected;                                                                                  \
    }

#define RB_XCHG    "xchgq %[value], %[x]\n\t"
#define RB_CMPXCHG "lock cmpxchgq %[value], %[x]\n\t"
#define RB_LFENCE  "lfence\n\t"

RB_LOCKED_WRITE(rb_write_c, RB_XCHG, RB_LFENCE)
RB_LOCKED_WRITE(rb_write_d, RB_CMPXCHG, RB_LFENCE)
RB_LOCKED_WRITE(rb_write_c_bare, RB_XCHG, "")
RB_LOCKED_WRITE(rb_write_d_bare, RB_CMPXCHG, "")

/*
 * Rounds alternate in who holds X's cache line when they start. keeps_first: the first write stays (CMPXCHG from 0
 * fails for the second), else the last one does; either way X tells the order of the two.
 */
static inline __attribute__((always_inline)) void rb_scheme1_play(struct rb_member *self, struct rb_scheme1_game *game,
                                                                  rb_write_fn write, bool keeps_first)
{
    struct rb_word *go = &game->words[WORD_GO], *done = &game->words[WORD_DONE];
    const int me = self->index;
    struct rb_staircase stairs = {.start = RB_START_LEAD};

    for (uint64_t round = 1; round <= game->rounds && !rb_team_stalled(self->team); round++) {
        const uint64_t k = round - 1;
        uint64_t before, after;

        if (me == 0) {
            atomic_store(&game->x.value, 0);
            rb_word_post(go, round);
            rb_delay(stairs.start + rb_random(self, START_JITTER));
        } else {
            rb_word_await(go, round);
            if (round & 1)
                atomic_fetch_or(&game->x.value, 0);
            rb_delay(RB_START_LEAD);
        }
        write(&self->scratch, &game->x.value, (uint64_t)me + 1, &before, &after);
        game->before[me][k] = rb_skew_apply(&self->core.skew, before);
        game->after[me][k] = rb_skew_apply(&self->core.skew, after);
        if (rb_member_migrated(self))
            game->migrated[k] = 1;
        if (me == 1) {
            rb_word_post(done, round);
        } else {
            uint64_t last;

            rb_word_await(done, round);
            last = atomic_load(&game->x.value) - 1;
            game->first[k] = (uint8_t)(keeps_first ? last : 1 - last);
            rb_staircase_follow(&stairs, game->first[k] == 0);
            atomic_store_explicit(&self->team->progress.value, round, memory_order_relaxed);
        }
    }
}

#define RB_TESTER_BODY(letter, keeps_first)                                                                            \
    static void rb_play_##letter(struct rb_member *self, void *game)                                                   \
    {                                                                                                                  \
        rb_scheme1_play(self, game, rb_write_##letter, keeps_first);                                                   \
    }

RB_TESTER_BODY(a, false)
RB_TESTER_BODY(b, false)
RB_TESTER_BODY(c, false)
RB_TESTER_BODY(d, true)
RB_TESTER_BODY(c_bare, false)
RB_TESTER_BODY(d_bare, true)

int rb_scheme1(const struct rb_run *run, const struct rb_core core[2], int tester, uint64_t *before0, uint64_t *after0,
               uint64_t *before1, uint64_t *after1, uint8_t *first, uint8_t *migrated)
{
    static void (*const play[])(struct rb_member *, void *) = {
        [RB_TESTER_A] = rb_play_a, [RB_TESTER_B] = rb_play_b,           [RB_TESTER_C] = rb_play_c,
        [RB_TESTER_D] = rb_play_d, [RB_TESTER_C_BARE] = rb_play_c_bare, [RB_TESTER_D_BARE] = rb_play_d_bare,
    };
    struct rb_word words[WORDS];
    struct rb_scheme1_game game = {
        .rounds = run->rounds,
        .before = {before0, before1},
        .after = {after0, after1},
        .first = first,
        .migrated = migrated,
        .words = words,
    };

    return rb_team_play(run, core, 2, words, WORDS, play[tester], &game);
}
