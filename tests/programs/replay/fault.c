/*
 * Writes through a null pointer if the worker looks before main has said that it may. SAFE: such a write does no harm.
 * FIXED: main says so in time. LOCKED: both hold a mutex meanwhile, which changes nothing.
 */
#include <pthread.h>
#include <stdio.h>

#include "sites.h"

OBJECT(5);

static int ready, spare;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#ifdef SAFE
static int *volatile nowhere = &spare;
#else
static int *volatile nowhere;
#endif

static void lock(void)
{
#ifdef LOCKED
    pthread_mutex_lock(&mutex);
#endif
}

static void unlock(void)
{
#ifdef LOCKED
    pthread_mutex_unlock(&mutex);
#endif
}

__attribute__((noinline)) static void *worker(void *unused)
{
    int *where = nowhere, go;

    lock();
    go = READ(0, ready);
    unlock();
    if (!go)
        WRITE(1, *where, 1);
    return unused;
}

int main(void)
{
    pthread_t thread;

#ifdef FIXED
    WRITE(2, ready, 1);
#endif
    pthread_create(&thread, NULL, worker, NULL);
    lock();
    WRITE(3, ready, 1);
    unlock();
    pthread_join(thread, NULL);
    printf("spare %d\n", READ(4, spare));
    return 0;
}
