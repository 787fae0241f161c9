/*
 * class: freed too early
 * oracle: signal SIGSEGV
 * racing: take clear | take free
 * threads: 3
 * flags: -std=c11 -O1
 *
 * The queue of a parallel compressor. The main thread deletes it as soon as the last block is done, though the
 * consumers still have to look into it once more to find that there is nothing left for them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CONSUMERS 2
#define BLOCKS    2 /* for each of them */

struct block {
    int bytes; /* 0 ends a lane */
    int packed;
};

struct queue { /* with a lane for every consumer */
    int head[CONSUMERS];
    int done;
    struct block (*lanes)[BLOCKS + 1];
};

struct seat {
    struct queue *queue;
    int lane;
    pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static long packed_bytes;

static struct queue *queue_new(void)
{
    struct queue *queue = calloc(1, sizeof *queue);
    queue->lanes = calloc(CONSUMERS, sizeof *queue->lanes);
    for (int lane = 0; lane < CONSUMERS; lane++)
        for (int i = 0; i < BLOCKS; i++)
            queue->lanes[lane][i].bytes = 100 * (lane + i + 1);
    return queue;
}

static void queue_delete(struct queue *queue)
{
    free(queue->lanes);
    queue->lanes = NULL; /* RACE:clear */
    free(queue);         /* RACE:free */
}

static struct block *take(struct queue *queue, int lane)
{
    struct block *next = &queue->lanes[lane][queue->head[lane]]; /* RACE:take */
    if (next->bytes == 0)
        return NULL;
    queue->head[lane]++;
    return next;
}

static void *consume(void *argument)
{
    struct seat *seat = argument;
    struct block *block;
    while ((block = take(seat->queue, seat->lane)) != NULL) {
        block->packed = block->bytes / 2;
        pthread_mutex_lock(&lock);
        packed_bytes += block->packed;
        if (++seat->queue->done == CONSUMERS * BLOCKS)
            pthread_cond_signal(&all_done);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    struct seat seats[CONSUMERS];
    struct queue *queue = queue_new();

    for (int i = 0; i < CONSUMERS; i++) {
        seats[i].queue = queue;
        seats[i].lane = i;
        pthread_create(&seats[i].thread, NULL, consume, &seats[i]);
    }
    pthread_mutex_lock(&lock);
    while (queue->done < CONSUMERS * BLOCKS)
        pthread_cond_wait(&all_done, &lock);
    pthread_mutex_unlock(&lock);
#ifndef FIXED
    queue_delete(queue);
#endif
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(seats[i].thread, NULL);
#ifdef FIXED
    queue_delete(queue);
#endif
    printf("packed into %ld bytes\n", packed_bytes);
    return 0;
}
