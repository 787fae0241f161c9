/*
 * class: deadlock of three locks
 * oracle: deadlock
 * racing: next
 * also: own
 * threads: 4
 * flags: -std=c11 -O1
 *
 * Three stations in a ring hand parcels on. A station locks its own shelf and then its neighbour's: all three at once
 * each hold one lock and want the next.
 */
#include <pthread.h>
#include <stdio.h>

#define STATIONS 3
#define ROUNDS   2

struct station {
    pthread_mutex_t lock;
    struct station *next;
    int parcels;
};

static struct station ring[STATIONS];

static void hand_on(struct station *station, int parcels)
{
    struct station *first = station, *second = station->next;
#ifdef FIXED
    if (second < first) {
        first = station->next;
        second = station;
    }
#endif
    pthread_mutex_lock(&first->lock); /* RACE:own */
    if (station->parcels >= parcels) {
        pthread_mutex_lock(&second->lock); /* RACE:next */
        station->parcels -= parcels;
        station->next->parcels += parcels;
        pthread_mutex_unlock(&second->lock);
    }
    pthread_mutex_unlock(&first->lock);
}

static void *work(void *argument)
{
    struct station *station = argument;
    for (int round = 0; round < ROUNDS; round++)
        hand_on(station, 1 + round);
    return NULL;
}

int main(void)
{
    pthread_t workers[STATIONS];
    int parcels = 0;

    for (int i = 0; i < STATIONS; i++) {
        pthread_mutex_init(&ring[i].lock, NULL);
        ring[i].next = &ring[(i + 1) % STATIONS];
        ring[i].parcels = 10;
    }
    for (int i = 0; i < STATIONS; i++)
        pthread_create(&workers[i], NULL, work, &ring[i]);
    for (int i = 0; i < STATIONS; i++)
        pthread_join(workers[i], NULL);
    for (int i = 0; i < STATIONS; i++)
        parcels += ring[i].parcels;
    printf("%d parcels\n", parcels);
    return 0;
}
