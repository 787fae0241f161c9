/*
 * A team: a few threads, each pinned to its own core, that play rounds against each other.
 *
 * Members meet through words: a word lives on its own pair of cache lines (adjacent-line prefetch), has one writer at
 * a time, and only ever grows. Waiting is spinning until the word has reached a value; RB_WORD_END, which the watchdog
 * writes when a run has stalled, passes every wait.
 */
#ifndef RB_TEAM_H
#define RB_TEAM_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rb_clock.h"
#include "rb_probe.h"

#define RB_TEAM_MAX           3
#define RB_WORD_END           UINT64_MAX
#define RB_SPINS_BEFORE_YIELD (1u << 14)

struct rb_word {
    _Alignas(2 * RB_CACHE_LINE) _Atomic uint64_t value;
};

struct rb_team;

struct rb_member {
    _Alignas(2 * RB_CACHE_LINE) struct rb_scratch scratch;
    int index;
    struct rb_core core;
    struct rb_team *team;
    uint64_t random; /* state of rb_random */
};

struct rb_team {
    struct rb_word progress; /* rounds played; written by member 0 */
    struct rb_word *words;   /* all words that members of this team wait for */
    uint32_t word_count;
    _Atomic bool stalled;
    uint32_t patience_ms;
    int size;
    void (*body)(struct rb_member *self, void *game);
    void *game;
    struct rb_member member[RB_TEAM_MAX];
};

/*
 * Run body(member, game) on every core and wait for all of them. `words` are set to 0 first.
 * Returns an rb_status; on RB_ESTALL the results of the run are incomplete and must not be used.
 */
int rb_team_play(const struct rb_run *run, const struct rb_core *core, int cores, struct rb_word *words,
                 uint32_t word_count, void (*body)(struct rb_member *, void *), void *game);

/* Uniform in [0, below); xorshift64. */
static inline uint32_t rb_random(struct rb_member *self, uint32_t below)
{
    uint64_t x = self->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    self->random = x;
    return (uint32_t)(((x >> 32) * below) >> 32);
}

/* Wait until the word has reached `value`. A peer that is not running is given the core after a while. */
static inline void rb_word_await(const struct rb_word *word, uint64_t value)
{
    for (uint32_t spins = 0; atomic_load_explicit(&word->value, memory_order_acquire) < value; spins++) {
        __builtin_ia32_pause();
        if (spins >= RB_SPINS_BEFORE_YIELD)
            sched_yield();
    }
}

/* Announce `value`. Seldom overwrites the end of the run, and then only until the watchdog writes it again. */
static inline void rb_word_post(struct rb_word *word, uint64_t value)
{
    if (atomic_load_explicit(&word->value, memory_order_relaxed) != RB_WORD_END)
        atomic_store_explicit(&word->value, value, memory_order_release);
}

static inline bool rb_team_stalled(const struct rb_team *team)
{
    return atomic_load_explicit(&team->stalled, memory_order_relaxed);
}

/* Busy for about `iterations` cycles, without touching memory. */
static inline void rb_delay(uint32_t iterations)
{
    __asm__ volatile("testl %0, %0\n\t"
                     "jz 2f\n"
                     "1:\tdecl %0\n\t"
                     "jnz 1b\n"
                     "2:"
                     : "+r"(iterations)
                     :
                     : "cc");
}

/* Is this thread on another core than its own? Not part of any timed stretch. */
static inline bool rb_member_migrated(struct rb_member *self)
{
    uint32_t aux;

    rb_clock_rdtscp(&self->scratch, &aux);
    return RB_AUX_CORE(aux) != self->core.number;
}

#endif
