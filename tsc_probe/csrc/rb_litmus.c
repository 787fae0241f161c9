/*
 * Litmus test of the stamp sequences (ReCBuLC §3.1, Fig. 2(b)): do stamps that claim an order ever claim a wrong one?
 *
 * Adversarial: in the store shape the write waits in the write buffer behind stores to lines the other core has just
 * taken; in the load shape the read's address waits for a chain of loads from such lines. A sequence that does not
 * hold the clock read until the access is done is then early by far more than the skew. The reading side moves its
 * start so that the write becomes visible right about then.
 */
#define _GNU_SOURCE
#include "rb_skew.h"
#include "rb_staircase.h"
#include "rb_team.h"

#define COLD_LINES   8
#define START_JITTER 256 /* cycles */

enum { WORD_GO, WORD_DONE, WORDS };

struct rb_litmus_game {
    struct rb_word x;                /* holds the number of the last round that wrote it */
    struct rb_word cold[COLD_LINES]; /* always 0 */
    uint32_t rounds;
    int shape;
    uint64_t *stamp[2];
    uint8_t *saw;
    struct rb_word *words;
};

typedef uint64_t (*rb_clock_fn)(struct rb_scratch *, uint32_t *aux);

/* Member 1 takes the cold lines and a copy of X, so that member 0 has to fetch them all. */
static inline void rb_chill(struct rb_litmus_game *game)
{
    for (int i = 0; i < COLD_LINES; i++)
        atomic_fetch_add_explicit(&game->cold[i].value, 0, memory_order_relaxed);
    atomic_load_explicit(&game->x.value, memory_order_relaxed);
}

/* Stores to cold lines keep later stores waiting in the write buffer. */
static inline void rb_store_cold(struct rb_litmus_game *game, uint32_t lines)
{
    for (uint32_t i = 0; i < lines; i++)
        atomic_store_explicit(&game->cold[i].value, 0, memory_order_relaxed);
}

/* A chain of loads from cold lines; 0, but the processor knows that only when the last one has arrived. */
static inline uint64_t rb_load_cold(struct rb_litmus_game *game, uint32_t lines)
{
    uint64_t chain = 0;

    for (uint32_t i = 0; i < lines; i++)
        chain = atomic_load_explicit(&game->cold[i + chain].value, memory_order_relaxed);
    return chain;
}

static inline __attribute__((always_inline)) void rb_litmus_play(struct rb_member *self, struct rb_litmus_game *game,
                                                                 rb_clock_fn clock)
{
    struct rb_word *go = &game->words[WORD_GO], *done = &game->words[WORD_DONE];
    struct rb_staircase stairs = {.start = RB_START_LEAD};
    const int me = self->index;
    const bool reader = me == (game->shape == RB_LITMUS_STORE ? 1 : 0);

    for (uint64_t round = 1; round <= game->rounds && !rb_team_stalled(self->team); round++) {
        const uint64_t k = round - 1;
        const uint32_t cold = rb_random(self, COLD_LINES + 1);
        const uint32_t start = reader ? stairs.start + rb_random(self, START_JITTER) : RB_START_LEAD;
        uint64_t stamp, x = 0;
        uint32_t aux;

        if (me == 0) {
            rb_word_await(done, 2 * round - 1);
            rb_word_post(go, round);
            rb_delay(start);
            if (reader) {
                x = atomic_load_explicit(&(&game->x)[rb_load_cold(game, cold)].value, memory_order_relaxed);
            } else {
                rb_store_cold(game, cold);
                atomic_store_explicit(&game->x.value, round, memory_order_relaxed);
            }
            stamp = clock(&self->scratch, &aux);
            rb_word_await(done, 2 * round);
            atomic_store_explicit(&self->team->progress.value, round, memory_order_relaxed);
        } else {
            rb_chill(game);
            rb_word_post(done, 2 * round - 1);
            rb_word_await(go, round);
            rb_delay(start);
            stamp = clock(&self->scratch, &aux);
            if (reader)
                x = atomic_load_explicit(&game->x.value, memory_order_relaxed);
            else
                atomic_store_explicit(&game->x.value, round, memory_order_relaxed);
            rb_word_post(done, 2 * round);
        }
        game->stamp[me][k] = rb_skew_apply(&self->core.skew, stamp);
        if (reader) {
            game->saw[k] = x == round;
            rb_staircase_follow(&stairs, x != round);
        }
    }
}

#define RB_LITMUS_BODY(name, function, keeps)                                                                          \
    static void rb_litmus_##function(struct rb_member *self, void *game) { rb_litmus_play(self, game, function); }
RB_CLOCK_SEQUENCES(RB_LITMUS_BODY)

int rb_litmus(const struct rb_run *run, const struct rb_core core[2], int shape, int sequence, uint64_t *stamp0,
              uint64_t *stamp1, uint8_t *saw)
{
#define RB_LITMUS_ENTRY(name, function, keeps) rb_litmus_##function,
    static void (*const body[])(struct rb_member *, void *) = {RB_CLOCK_SEQUENCES(RB_LITMUS_ENTRY)};
    struct rb_word words[WORDS];
    struct rb_litmus_game game = {
        .rounds = run->rounds, .shape = shape, .stamp = {stamp0, stamp1}, .saw = saw, .words = words};

    return rb_team_play(run, core, 2, words, WORDS, body[sequence], &game);
}
