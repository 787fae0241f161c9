/*
 * class: work dropped at shutdown
 * oracle: exit 4
 * racing: idle count | close refuse
 * threads: 2
 * flags: -std=c11 -O1
 *
 * A spooler whose jobs may submit further jobs. It is closed when its queue is empty, but the job being worked on is no
 * longer in the queue: what it submits after that is refused, and nobody notices.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define CAPACITY 8

struct spooler {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int jobs[CAPACITY];
    int queued;
    int busy;
    bool closed;
    int printed;
};

static struct spooler spooler = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool submit(struct spooler *s, int pages)
{
    pthread_mutex_lock(&s->lock);
    bool accepted = !s->closed && s->queued < CAPACITY; /* RACE:refuse */
    if (accepted)
        s->jobs[s->queued++] = pages;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return accepted;
}

static void print_job(struct spooler *s, int pages)
{
    if (pages > 1)
        submit(s, pages - 1); /* the rest, as a job of its own */
    pthread_mutex_lock(&s->lock);
    s->printed++;
    s->busy = 0;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *printer(void *argument)
{
    struct spooler *s = argument;
    pthread_mutex_lock(&s->lock);
    while (!s->closed || s->queued > 0) {
        if (s->queued == 0) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        int pages = s->jobs[--s->queued]; /* RACE:count */
        s->busy = 1;
        pthread_mutex_unlock(&s->lock);
        print_job(s, pages);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void drain_and_close(struct spooler *s)
{
    pthread_mutex_lock(&s->lock);
#ifdef FIXED
    while (s->queued > 0 || s->busy)
#else
    while (s->queued > 0) /* RACE:idle */
#endif
        pthread_cond_wait(&s->changed, &s->lock);
    s->closed = true; /* RACE:close */
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int main(void)
{
    pthread_t thread;
    const int pages = 2;

    pthread_create(&thread, NULL, printer, &spooler);
    submit(&spooler, pages);
    drain_and_close(&spooler);
    pthread_join(thread, NULL);
    printf("printed %d of %d pages\n", spooler.printed, pages);
    return spooler.printed == pages ? 0 : 4;
}
