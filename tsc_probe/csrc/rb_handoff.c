/*
 * Ping-pong between two cores, with sound stamps at every turn.
 *
 * Message passing gives the same two inequalities as Fig. 4 without a race to be won: sent on core 0 precedes seen on
 * core 1 (Eq. 1), which precedes back on core 0 (Eq. 2). Its bounds are as narrow as the fastest transfer either way,
 * and `back - sent` is the two-way transfer that a bound is to be judged against.
 */
#define _GNU_SOURCE
#include "rb_skew.h"
#include "rb_team.h"

#define PAUSE_MOST 256 /* cycles between rounds; moves the phase of the round against the counter's steps */

struct rb_handoff_game {
    uint32_t rounds;
    uint64_t *sent, *seen, *back;
    uint8_t *migrated;
    struct rb_word *words;
};

enum { WORD_PING, WORD_PONG, WORDS };

/* As rb_word_await, but as quick as a load can be: the peer answers within a microsecond unless it is not running. */
static inline void rb_word_await_hot(const struct rb_word *word, uint64_t value)
{
    for (uint32_t spins = 0; spins < RB_SPINS_BEFORE_YIELD; spins++)
        if (atomic_load_explicit(&word->value, memory_order_acquire) >= value)
            return;
    rb_word_await(word, value);
}

static void rb_handoff_body(struct rb_member *self, void *argument)
{
    struct rb_handoff_game *game = argument;
    struct rb_word *ping = &game->words[WORD_PING], *pong = &game->words[WORD_PONG];

    for (uint64_t round = 1; round <= game->rounds && !rb_team_stalled(self->team); round++) {
        const uint64_t k = round - 1;
        uint32_t aux;

        if (self->index == 0) {
            uint64_t sent, back;
            uint32_t aux_back;

            rb_delay(rb_random(self, PAUSE_MOST));
            sent = rb_clock_2e(&self->scratch, &aux);
            rb_word_post(ping, round);
            rb_word_await_hot(pong, round);
            back = rb_clock_2e(&self->scratch, &aux_back);
            game->sent[k] = rb_skew_apply(&self->core.skew, sent);
            game->back[k] = rb_skew_apply(&self->core.skew, back);
            if (RB_AUX_CORE(aux) != self->core.number || aux_back != aux)
                game->migrated[k] = 1;
            atomic_store_explicit(&self->team->progress.value, round, memory_order_relaxed);
        } else {
            uint64_t seen;

            rb_word_await_hot(ping, round);
            seen = rb_clock_2e(&self->scratch, &aux);
            rb_word_post(pong, round);
            game->seen[k] = rb_skew_apply(&self->core.skew, seen);
            if (RB_AUX_CORE(aux) != self->core.number)
                game->migrated[k] = 1;
        }
    }
}

int rb_handoff(const struct rb_run *run, const struct rb_core core[2], uint64_t *sent, uint64_t *seen, uint64_t *back,
               uint8_t *migrated)
{
    struct rb_word words[WORDS];
    struct rb_handoff_game game = {
        .rounds = run->rounds, .sent = sent, .seen = seen, .back = back, .migrated = migrated, .words = words};

    return rb_team_play(run, core, 2, words, WORDS, rb_handoff_body, &game);
}
