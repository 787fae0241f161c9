/* Pinned threads and their watchdog. Nothing here runs inside a round. */
#define _GNU_SOURCE
#include "rb_team.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define WATCH_EVERY_MS 10

struct rb_watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int running;
};

struct rb_start {
    struct rb_member *member;
    struct rb_watch *watch;
};

static void *rb_member_main(void *argument)
{
    struct rb_start *start = argument;
    struct rb_member *self = start->member;

    self->team->body(self, self->team->game);
    pthread_mutex_lock(&start->watch->lock);
    start->watch->running--;
    pthread_cond_signal(&start->watch->changed);
    pthread_mutex_unlock(&start->watch->lock);
    return NULL;
}

static int rb_member_start(struct rb_start *start, pthread_t *ret)
{
    const int core = start->member->core.number;
    pthread_attr_t attr;
    cpu_set_t set;
    int status = RB_OK;

    if (core < 0 || core >= CPU_SETSIZE)
        return RB_EPIN;
    if (pthread_attr_init(&attr))
        return RB_ENOMEM;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (pthread_attr_setaffinity_np(&attr, sizeof(set), &set)) {
        status = RB_ENOMEM;
    } else {
        int error = pthread_create(ret, &attr, rb_member_main, start);

        if (error) /* EINVAL: no CPU of the set may be used, because it is off-line, absent or not in our cpuset */
            status = error == EINVAL ? RB_EPIN : RB_ENOMEM;
    }
    pthread_attr_destroy(&attr);
    return status;
}

/* Let every wait pass, those that start later too. */
static void rb_team_release(struct rb_team *team)
{
    atomic_store(&team->stalled, true);
    for (uint32_t i = 0; i < team->word_count; i++)
        atomic_store(&team->words[i].value, RB_WORD_END);
}

static void rb_deadline(struct timespec *ret)
{
    clock_gettime(CLOCK_MONOTONIC, ret);
    ret->tv_nsec += WATCH_EVERY_MS * 1000000L;
    if (ret->tv_nsec >= 1000000000L) {
        ret->tv_nsec -= 1000000000L;
        ret->tv_sec++;
    }
}

/* Wait until no member runs. A member may overwrite a released word with its own post, so releasing is repeated. */
static int rb_team_watch(struct rb_team *team, struct rb_watch *watch, int status)
{
    uint64_t seen = 0;
    uint32_t quiet_ms = 0;

    pthread_mutex_lock(&watch->lock);
    while (watch->running > 0) {
        struct timespec deadline;
        uint64_t now;

        if (status != RB_OK)
            rb_team_release(team);
        rb_deadline(&deadline);
        if (!pthread_cond_timedwait(&watch->changed, &watch->lock, &deadline))
            continue;
        now = atomic_load_explicit(&team->progress.value, memory_order_relaxed);
        quiet_ms = now == seen ? quiet_ms + WATCH_EVERY_MS : 0;
        seen = now;
        if (quiet_ms >= team->patience_ms && status == RB_OK)
            status = RB_ESTALL;
    }
    pthread_mutex_unlock(&watch->lock);
    return status;
}

int rb_team_play(const struct rb_run *run, const struct rb_core *core, int cores, struct rb_word *words,
                 uint32_t word_count, void (*body)(struct rb_member *, void *), void *game)
{
    struct rb_team team = {.words = words,
                           .word_count = word_count,
                           .patience_ms = run->patience_ms,
                           .size = cores,
                           .body = body,
                           .game = game};
    struct rb_watch watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .running = cores};
    struct rb_start start[RB_TEAM_MAX];
    pthread_t thread[RB_TEAM_MAX];
    pthread_condattr_t attr;
    int started = 0;
    int status = RB_OK;

    if (pthread_condattr_init(&attr))
        return RB_ENOMEM;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.changed, &attr);
    pthread_condattr_destroy(&attr);

    for (uint32_t i = 0; i < word_count; i++)
        atomic_store(&words[i].value, 0);
    for (int i = 0; i < cores; i++) {
        team.member[i] = (struct rb_member){
            .index = i, .core = core[i], .team = &team, .random = (run->seed + 1) * 0x9e3779b97f4a7c15u + (uint64_t)i};
        start[i] = (struct rb_start){.member = &team.member[i], .watch = &watch};
    }
    while (started < cores && status == RB_OK) {
        status = rb_member_start(&start[started], &thread[started]);
        started += status == RB_OK;
    }
    pthread_mutex_lock(&watch.lock);
    watch.running -= cores - started;
    pthread_mutex_unlock(&watch.lock);

    status = rb_team_watch(&team, &watch, status);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_cond_destroy(&watch.changed);
    return status;
}
