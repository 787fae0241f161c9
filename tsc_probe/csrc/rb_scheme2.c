/*
 * Scheme 2, ReCBuLC §3.3.2, Fig. 6: two workers leave a spin loop on one flag and read their clocks.
 *
 * With a third core as trigger both workers race for the flag's line, and who won (delta of Eq. 4) is inferred from
 * the two spikes of TS2 - TS1. With two cores the workers release the flag in turn, and delta is known: the one who
 * wrote the flag has it first.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "rb_skew.h"
#include "rb_team.h"

/*
 * A line's home decides how far it is from either core, so the flag moves over many lines, each used once in either
 * direction before the next: RB_FLAG_TOUR rounds see all of them, equally often.
 */
#define ROUNDS_PER_LINE 2
#define FLAG_LINES      (RB_FLAG_TOUR / ROUNDS_PER_LINE)
#define SETTLE_CYCLES   200 /* from a worker's last post to its first look at the flag, with room to spare */
#define SETTLE_JITTER   256

enum { WORD_READY, WORD_FLAGS = RB_TEAM_MAX, WORDS = WORD_FLAGS + FLAG_LINES };

struct rb_scheme2_game {
    uint32_t rounds;
    uint64_t *ts[2];
    uint8_t *trigger, *migrated;
    struct rb_word *words;
};

/*
 * The loop of Fig. 6 (load, compare, branch) and the clock read, in one cache line (R4). RDTSCP waits for the load
 * that ended the loop. `flag` may pass `round` only when the run is given up.
 */
static __attribute__((noinline)) uint64_t rb_wait_and_read(const struct rb_word *flag, uint64_t round, uint32_t *aux)
{
    uint64_t lo, hi;

    __asm__ volatile(".balign 64\n"
                     "1:\tcmpq %[round], %[flag]\n\t"
                     "jb 1b\n\t"
                     "rdtscp"
                     : "=a"(lo), "=d"(hi), "=&c"(*aux)
                     : [flag] "m"(flag->value), [round] "r"(round)
                     : "memory", "cc");
    return hi << 32 | lo;
}

/* The same for the worker that is the trigger: XCHG has the flag globally visible before the loop looks at it. */
static __attribute__((noinline)) uint64_t rb_release_and_read(struct rb_word *flag, uint64_t round, uint32_t *aux)
{
    uint64_t lo, hi, value = round;

    __asm__ volatile("xchgq %[value], %[flag]\n"
                     ".balign 64\n"
                     "1:\tcmpq %[round], %[flag]\n\t"
                     "jb 1b\n\t"
                     "rdtscp"
                     : "=&a"(lo), "=&d"(hi), "=&c"(*aux), [flag] "+m"(flag->value), [value] "+&r"(value)
                     : [round] "r"(round)
                     : "memory", "cc");
    return hi << 32 | lo;
}

static void rb_scheme2_body(struct rb_member *self, void *argument)
{
    struct rb_scheme2_game *game = argument;
    struct rb_word *ready = &game->words[WORD_READY], *flags = &game->words[WORD_FLAGS];
    const int me = self->index, size = self->team->size;

    for (uint64_t round = 1; round <= game->rounds && !rb_team_stalled(self->team); round++) {
        const uint64_t k = round - 1;
        const int trigger = size == 3 ? 2 : (int)(k & 1);
        struct rb_word *flag = &flags[k / ROUNDS_PER_LINE % FLAG_LINES];
        uint64_t tsc;
        uint32_t aux;

        rb_word_post(&ready[me], round);
        if (me == trigger) {
            for (int i = 0; i < size; i++)
                rb_word_await(&ready[i], round);
            rb_delay(SETTLE_CYCLES + rb_random(self, SETTLE_JITTER));
            if (rb_team_stalled(self->team))
                break;
            tsc = rb_release_and_read(flag, round, &aux);
        } else {
            tsc = rb_wait_and_read(flag, round, &aux);
        }
        if (RB_AUX_CORE(aux) != self->core.number)
            game->migrated[k] = 1;
        if (me < 2)
            game->ts[me][k] = rb_skew_apply(&self->core.skew, tsc);
        if (me == 0) {
            game->trigger[k] = (uint8_t)trigger;
            atomic_store_explicit(&self->team->progress.value, round, memory_order_relaxed);
        }
    }
}

int rb_scheme2(const struct rb_run *run, const struct rb_core *core, int cores, uint64_t *ts0, uint64_t *ts1,
               uint8_t *trigger, uint8_t *migrated)
{
    /* Pages of its own for every run: a stack would give all runs the same lines. */
    struct rb_word *words =
        mmap(NULL, WORDS * sizeof(*words), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    struct rb_scheme2_game game = {
        .rounds = run->rounds,
        .ts = {ts0, ts1},
        .trigger = trigger,
        .migrated = migrated,
        .words = words,
    };
    int status;

    if (words == MAP_FAILED)
        return RB_ENOMEM;
    status = rb_team_play(run, core, cores, words, WORDS, rb_scheme2_body, &game);
    munmap(words, WORDS * sizeof(*words));
    return status;
}
