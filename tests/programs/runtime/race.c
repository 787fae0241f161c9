/* Threads that add to one counter without a lock, by sites of one function; `race N ROUNDS`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sites.h"

OBJECT(2);

static int counter;
static int rounds;

__attribute__((noinline)) static void *worker(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        int value = READ(0, counter);
        WRITE(1, counter, value + 1);
    }
    return unused;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t threads[256];

    rounds = argc > 2 ? atoi(argv[2]) : 1000;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    puts(counter <= count * rounds && counter > 0 ? "done" : "impossible");
    return 0;
}
