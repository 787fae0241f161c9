/*
 * class: lost wake-up
 * oracle: deadlock
 * racing: wait signal | check set
 * threads: 3
 * flags: -std=c11 -O1
 *
 * A mailbox for one letter. Whoever waits looks without the lock whether it is there, and the signal may come between
 * the look and the wait.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    bool full;
    int letter;
};

static struct mailbox box = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};

static void put(struct mailbox *mailbox, int letter)
{
#ifdef FIXED
    pthread_mutex_lock(&mailbox->lock);
#endif
    mailbox->letter = letter;
    mailbox->full = true;                  /* RACE:set */
    pthread_cond_signal(&mailbox->filled); /* RACE:signal */
#ifdef FIXED
    pthread_mutex_unlock(&mailbox->lock);
#endif
}

static int get(struct mailbox *mailbox)
{
#ifdef FIXED
    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->full)
        pthread_cond_wait(&mailbox->filled, &mailbox->lock);
    mailbox->full = false;
    int letter = mailbox->letter;
    pthread_mutex_unlock(&mailbox->lock);
    return letter;
#else
    if (!mailbox->full) { /* RACE:check */
        pthread_mutex_lock(&mailbox->lock);
        pthread_cond_wait(&mailbox->filled, &mailbox->lock); /* RACE:wait */
        pthread_mutex_unlock(&mailbox->lock);
    }
    mailbox->full = false;
    return mailbox->letter;
#endif
}

static void *sender(void *argument)
{
    int letter = 0;
    for (const char *text = argument; *text != '\0'; text++)
        letter = letter * 31 + *text;
    put(&box, letter);
    return NULL;
}

static void *receiver(void *argument)
{
    *(int *)argument = get(&box);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    static char text[] = "dear";
    int letter = 0;

    pthread_create(&threads[0], NULL, receiver, &letter);
    pthread_create(&threads[1], NULL, sender, text);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("letter %d\n", letter);
    return 0;
}
