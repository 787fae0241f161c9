/*
 * class: ring slot given back before it is read
 * oracle: regex temperature (?!7 humidity 56\b)
 * racing: copy fill | release fill
 * threads: 3
 * flags: -std=c11 -O1
 *
 * Two sensors send samples through a ring to the station. The station gives the slot back under the lock, but copies
 * the sample out of it after it has let go. All slots may be used, so if the ring was full, the next sample goes into
 * the very slot that is being copied.
 */
#include <pthread.h>
#include <stdio.h>

#define SENSORS 2
#define SAMPLES 3 /* of each of them */
#define SLOTS   4

struct sample {
    int sensor;
    int value;
};

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_cond_t room;
    struct sample slots[SLOTS];
    unsigned head;
    unsigned used;
};

static struct ring ring = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .room = PTHREAD_COND_INITIALIZER};

static void ring_put(struct sample sample)
{
    pthread_mutex_lock(&ring.lock);
    while (ring.used == SLOTS)
        pthread_cond_wait(&ring.room, &ring.lock);
    ring.slots[(ring.head + ring.used) % SLOTS] = sample; /* RACE:fill */
    ring.used++;
    pthread_cond_signal(&ring.filled);
    pthread_mutex_unlock(&ring.lock);
}

static struct sample ring_get(void)
{
    struct sample sample;
    pthread_mutex_lock(&ring.lock);
    while (ring.used == 0)
        pthread_cond_wait(&ring.filled, &ring.lock);
    struct sample *slot = &ring.slots[ring.head];
    ring.head = (ring.head + 1) % SLOTS;
    ring.used--; /* RACE:release */
#ifdef FIXED
    sample = *slot;
    pthread_mutex_unlock(&ring.lock);
#else
    pthread_mutex_unlock(&ring.lock);
    sample = *slot; /* RACE:copy */
#endif
    pthread_cond_signal(&ring.room);
    return sample;
}

static void *measure(void *argument)
{
    int sensor = *(int *)argument;
    for (int i = 0; i < SAMPLES; i++)
        ring_put((struct sample){sensor, 1 << (sensor * SAMPLES + i)});
    return NULL;
}

int main(void)
{
    pthread_t threads[SENSORS];
    int sensors[SENSORS];
    int sums[SENSORS] = {0};

    for (int i = 0; i < SENSORS; i++) {
        sensors[i] = i;
        pthread_create(&threads[i], NULL, measure, &sensors[i]);
    }
    for (int i = 0; i < SENSORS * SAMPLES; i++) {
        struct sample sample = ring_get();
        sums[sample.sensor] += sample.value;
    }
    for (int i = 0; i < SENSORS; i++)
        pthread_join(threads[i], NULL);
    printf("temperature %d humidity %d\n", sums[0], sums[1]);
    return 0;
}
