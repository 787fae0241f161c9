/* One core's counter by itself: its steps, its frequency, what a stamp costs, and whose core it is. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <string.h>
#include <time.h>

#include "rb_skew.h"
#include "rb_team.h"

#define GAP_MOST       2048 /* cycles between readings, varied: equal gaps would hide the step behind their own length */
#define READ_CYCLE     32   /* of so many readings ... */
#define READ_BURST     8    /* ... the first ones follow each other at once, to meet reads within one step */
#define COST_REPEATS   16   /* the least of so many timings is free of interrupts */
#define HYPERVISOR_BIT (1u << 31) /* CPUID.1:ECX */
#define LFENCE_BIT     (1u << 2)  /* CPUID.80000021:EAX, AMD */
#define NS_PER_S       1000000000L

struct rb_counter_game {
    uint32_t count;
    uint64_t *tsc;
    int64_t *ns;
    double *cost_ns;
};

static int64_t rb_raw_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void rb_readings_body(struct rb_member *self, void *argument)
{
    struct rb_counter_game *game = argument;
    uint32_t aux;

    for (uint32_t i = 0; i < game->count; i++) {
        if (i % READ_CYCLE >= READ_BURST)
            rb_delay(rb_random(self, GAP_MOST));
        game->tsc[i] = rb_skew_apply(&self->core.skew, rb_clock_rdtsc(&self->scratch, &aux));
    }
}

int rb_counter_readings(const struct rb_core *core, uint32_t count, uint64_t *tsc)
{
    const struct rb_run run = {.patience_ms = 10000, .seed = count};
    struct rb_counter_game game = {.count = count, .tsc = tsc};

    return rb_team_play(&run, core, 1, NULL, 0, rb_readings_body, &game);
}

/* The clock between two counter reads belongs to their middle; the closest two of all tries are kept. */
static void rb_counter_and_clock_body(struct rb_member *self, void *argument)
{
    struct rb_counter_game *game = argument;
    uint64_t least = UINT64_MAX;
    uint32_t aux;

    for (uint32_t i = 0; i < game->count; i++) {
        uint64_t before = rb_clock_card(&self->scratch, &aux);
        int64_t ns = rb_raw_ns();
        uint64_t after = rb_clock_card(&self->scratch, &aux);

        if (after - before < least) {
            least = after - before;
            *game->tsc = rb_skew_apply(&self->core.skew, before + least / 2);
            *game->ns = ns;
        }
    }
}

int rb_counter_and_clock(const struct rb_core *core, uint32_t tries, uint64_t *tsc, int64_t *ns)
{
    const struct rb_run run = {.patience_ms = 10000};
    struct rb_counter_game game = {.count = tries, .tsc = tsc, .ns = ns};

    return rb_team_play(&run, core, 1, NULL, 0, rb_counter_and_clock_body, &game);
}

#define RB_COST_BODY(name, function, keeps)                                                                            \
    static void rb_cost_##function(struct rb_member *self, void *argument)                                             \
    {                                                                                                                  \
        struct rb_counter_game *game = argument;                                                                       \
        uint32_t aux;                                                                                                  \
                                                                                                                       \
        for (int repeat = 0; repeat < COST_REPEATS; repeat++) {                                                        \
            int64_t start = rb_raw_ns();                                                                               \
            double ns;                                                                                                 \
                                                                                                                       \
            for (uint32_t i = 0; i < game->count; i++)                                                                 \
                function(&self->scratch, &aux);                                                                        \
            ns = (double)(rb_raw_ns() - start) / game->count;                                                          \
            if (repeat == 0 || ns < *game->cost_ns)                                                                    \
                *game->cost_ns = ns;                                                                                   \
        }                                                                                                              \
    }
RB_CLOCK_SEQUENCES(RB_COST_BODY)

int rb_stamp_cost(const struct rb_core *core, int sequence, uint32_t count, double *ns)
{
#define RB_COST_ENTRY(name, function, keeps) rb_cost_##function,
    static void (*const body[])(struct rb_member *, void *) = {RB_CLOCK_SEQUENCES(RB_COST_ENTRY)};
    const struct rb_run run = {.patience_ms = 10000};
    struct rb_counter_game game = {.count = count, .cost_ns = ns};

    return rb_team_play(&run, core, 1, NULL, 0, body[sequence], &game);
}

void rb_hypervisor(char name[13])
{
    uint32_t eax, ebx, ecx, edx;

    memset(name, 0, 13);
    __cpuid(1, eax, ebx, ecx, edx);
    if (!(ecx & HYPERVISOR_BIT))
        return;
    __cpuid(0x40000000, eax, ebx, ecx, edx);
    memcpy(name, &ebx, 4);
    memcpy(name + 4, &ecx, 4);
    memcpy(name + 8, &edx, 4);
}

int rb_lfence_orders(void)
{
    uint32_t eax, ebx, ecx, edx;

    __cpuid(0, eax, ebx, ecx, edx);
    if (ebx == signature_INTEL_ebx && ecx == signature_INTEL_ecx && edx == signature_INTEL_edx)
        return 1;
    __cpuid(0x80000000, eax, ebx, ecx, edx);
    if (eax < 0x80000021)
        return 0;
    __cpuid_count(0x80000021, 0, eax, ebx, ecx, edx);
    return (eax & LFENCE_BIT) != 0;
}
