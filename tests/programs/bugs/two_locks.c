/*
 * class: deadlock of two locks
 * oracle: deadlock
 * racing: evict_index rebuild_cache
 * also: evict_cache rebuild_index
 * threads: 3
 * flags: -std=c11 -O1
 *
 * A cache and the index of what is in it. Evicting locks the cache first and then the index, rebuilding the index locks
 * them the other way round.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define PAGES 8

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static bool cached[PAGES];
static int age[PAGES];
static int indexed;

static int oldest(void)
{
    int page = 0;
    for (int i = 1; i < PAGES; i++)
        if (age[i] > age[page])
            page = i;
    return page;
}

static void *evict(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&cache_lock); /* RACE:evict_cache */
    int page = oldest();
    cached[page] = false;
    age[page] = 0;
    pthread_mutex_lock(&index_lock); /* RACE:evict_index */
    indexed--;
    pthread_mutex_unlock(&index_lock);
    pthread_mutex_unlock(&cache_lock);
    return NULL;
}

static void *rebuild(void *unused)
{
    (void)unused;
#ifdef FIXED
    pthread_mutex_lock(&cache_lock);
    pthread_mutex_lock(&index_lock);
#else
    pthread_mutex_lock(&index_lock); /* RACE:rebuild_index */
    pthread_mutex_lock(&cache_lock); /* RACE:rebuild_cache */
#endif
    indexed = 0;
    for (int i = 0; i < PAGES; i++)
        indexed += cached[i];
    pthread_mutex_unlock(&cache_lock);
    pthread_mutex_unlock(&index_lock);
    return NULL;
}

int main(void)
{
    pthread_t evictor, rebuilder;

    for (int i = 0; i < PAGES; i++) {
        cached[i] = true;
        age[i] = (i * 5) % PAGES;
    }
    indexed = PAGES;
    pthread_create(&evictor, NULL, evict, NULL);
    pthread_create(&rebuilder, NULL, rebuild, NULL);
    pthread_join(evictor, NULL);
    pthread_join(rebuilder, NULL);
    printf("%d pages indexed\n", indexed);
    return 0;
}
