/*
 * class: signal to the wrong waiter
 * oracle: deadlock
 * racing: grant wait_credit | grant wait_drained | credit check_credit
 * also: check_drained drained
 * threads: 3
 * flags: -std=c11 -O1
 *
 * Flow control of a connection. The sender waits until the peer grants it credit, whoever closes the connection waits
 * until all is sent, and both wait on the same condition variable. The peer's grant wakes one of them: if that is the
 * one who closes, it goes back to sleep and the sender is never told.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define FRAMES 3
#define WINDOW 2 /* frames that the settings allow */
#define BYTES  4096

struct connection {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int credit;
    int queued;
};

static struct connection connection = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .queued = FRAMES};
static unsigned char frames[FRAMES][BYTES];
static unsigned sent_sum;

static void tell(struct connection *c)
{
#ifdef FIXED
    pthread_cond_broadcast(&c->changed);
#else
    pthread_cond_signal(&c->changed); /* RACE:grant */
#endif
}

static unsigned checksum(const unsigned char *bytes)
{
    unsigned a = 1, b = 0;
    for (int i = 0; i < BYTES; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void *send_frames(void *argument)
{
    struct connection *c = argument;
    for (int i = 0; i < FRAMES; i++) {
        unsigned sum = checksum(frames[i]);
        pthread_mutex_lock(&c->lock);
        while (c->credit == 0)                        /* RACE:check_credit */
            pthread_cond_wait(&c->changed, &c->lock); /* RACE:wait_credit */
        c->credit--;
        sent_sum ^= sum;
        if (--c->queued == 0) /* RACE:drained */
            tell(c);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* What comes from the peer: its settings, and right behind them the first grant. */
static void *receive(void *argument)
{
    struct connection *c = argument;
    pthread_mutex_lock(&c->lock);
    c->open = true;
    c->credit = WINDOW;
    tell(c);
    pthread_mutex_unlock(&c->lock);

    pthread_mutex_lock(&c->lock);
    c->credit += FRAMES; /* RACE:credit */
    tell(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void await_settings(struct connection *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->open)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void drain(struct connection *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->queued > 0)                         /* RACE:check_drained */
        pthread_cond_wait(&c->changed, &c->lock); /* RACE:wait_drained */
    pthread_mutex_unlock(&c->lock);
}

int main(void)
{
    pthread_t receiver, sender;

    for (int i = 0; i < FRAMES; i++)
        for (int j = 0; j < BYTES; j++)
            frames[i][j] = (unsigned char)(i + j);
    pthread_create(&receiver, NULL, receive, &connection);
    await_settings(&connection);
    pthread_create(&sender, NULL, send_frames, &connection);
    drain(&connection);
    pthread_join(receiver, NULL);
    pthread_join(sender, NULL);
    printf("sent %d frames, sum %08x\n", FRAMES, sent_sum);
    return 0;
}
