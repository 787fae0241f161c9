/*
 * A lost update, grown by its arguments: lost_updates THREADS ACCESSES [WRAP]
 *
 * Workers count pages under a lock and bytes, per host and in all, without one. Each round makes eight accesses that
 * are shared, two of them locked; it exits 1 if any of the unlocked additions was lost. With one lock around all of it
 * (-DFIXED) none is. Totals start again at WRAP, if one is given: the smaller it is, the less a value tells.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_WORKERS 16
#define HOSTS        8
#define PER_ROUND    8

struct totals {
    long pages;
    long bytes;
    long requests;
    long hosts[HOSTS];
};

static struct totals totals;
static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static long rounds;
static long wrap = 1L << 62;

static void add(long *total, long what, long turn)
{
    long before = *total;
    *total = (before + what) % turn;
}

static void account(unsigned host, long bytes, long turn)
{
    pthread_mutex_lock(&totals_lock);
    add(&totals.pages, 1, turn);
#ifdef FIXED
    add(&totals.bytes, bytes, turn);
    add(&totals.hosts[host], bytes, turn);
    add(&totals.requests, 1, turn);
#endif
    pthread_mutex_unlock(&totals_lock);
#ifndef FIXED
    add(&totals.bytes, bytes, turn);
    add(&totals.hosts[host], bytes, turn);
    add(&totals.requests, 1, turn);
#endif
}

static void *crawl(void *argument)
{
    unsigned random = (unsigned)(size_t)argument + 1;
    long times = rounds, turn = wrap;

    pthread_barrier_wait(&start);
    for (long round = 0; round < times; round++) {
        random = random * 1103515245u + 12345u;
        account((random >> 16) % HOSTS, (random >> 20) % 1000 + 1, turn);
    }
    return NULL;
}

static long expected_bytes(int workers)
{
    long sum = 0;

    for (int worker = 0; worker < workers; worker++) {
        unsigned random = (unsigned)worker + 1;
        for (long round = 0; round < rounds; round++) {
            random = random * 1103515245u + 12345u;
            sum += (random >> 20) % 1000 + 1;
        }
    }
    return sum % wrap;
}

int main(int argc, char **argv)
{
    int workers = argc > 1 ? atoi(argv[1]) : 2;
    long accesses = argc > 2 ? atol(argv[2]) : 1000;
    pthread_t threads[MOST_WORKERS];
    long hosts = 0, requests;

    if (workers < 1 || workers > MOST_WORKERS)
        return 2;
    wrap = argc > 3 ? atol(argv[3]) : wrap;
    rounds = accesses / PER_ROUND / workers;
    pthread_barrier_init(&start, NULL, (unsigned)workers);
    for (int worker = 0; worker < workers; worker++)
        pthread_create(&threads[worker], NULL, crawl, (void *)(size_t)worker);
    for (int worker = 0; worker < workers; worker++)
        pthread_join(threads[worker], NULL);

    for (int host = 0; host < HOSTS; host++)
        hosts += totals.hosts[host];
    printf("%ld pages, %ld bytes, %ld by host, %ld requests\n", totals.pages, totals.bytes, hosts, totals.requests);
    requests = rounds * workers % wrap;
    return totals.bytes != expected_bytes(workers) || hosts % wrap != totals.bytes || totals.requests != requests;
}
