/*
 * class: lost update
 * oracle: exit 1
 * racing: read write | write
 * threads: 3
 * flags: -std=c11 -O1
 *
 * A crawler's workers add up what they fetched. The number of pages is counted under the lock; the number of bytes was
 * added later, by someone who thought that one addition needs none.
 */
#include <pthread.h>
#include <stdio.h>

#define WORKERS 2
#define PAGES   3

struct totals {
    long pages;
    long bytes;
};

static const long page_bytes[WORKERS][PAGES] = {{512, 2048, 64}, {1024, 128, 4096}};

static struct totals totals;
static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;

static long fetch(int worker, int page) { return page_bytes[worker][page]; }

static void add_bytes(long bytes)
{
    long before = totals.bytes;    /* RACE:read */
    totals.bytes = before + bytes; /* RACE:write */
}

static void account(long pages, long bytes)
{
    pthread_mutex_lock(&totals_lock);
    totals.pages += pages;
#ifdef FIXED
    add_bytes(bytes);
#endif
    pthread_mutex_unlock(&totals_lock);
#ifndef FIXED
    add_bytes(bytes);
#endif
}

static void *crawl(void *argument)
{
    int worker = *(const int *)argument;
    long bytes = 0;
    for (int page = 0; page < PAGES; page++)
        bytes += fetch(worker, page);
    account(PAGES, bytes);
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    int numbers[WORKERS];
    long expected = 0;

    for (int worker = 0; worker < WORKERS; worker++) {
        numbers[worker] = worker;
        for (int page = 0; page < PAGES; page++)
            expected += page_bytes[worker][page];
    }
    for (int worker = 0; worker < WORKERS; worker++)
        pthread_create(&threads[worker], NULL, crawl, &numbers[worker]);
    for (int worker = 0; worker < WORKERS; worker++)
        pthread_join(threads[worker], NULL);

    printf("%ld pages, %ld bytes\n", totals.pages, totals.bytes);
    if (totals.bytes != expected) {
        fprintf(stderr, "expected %ld bytes\n", expected);
        return 1;
    }
    return 0;
}
