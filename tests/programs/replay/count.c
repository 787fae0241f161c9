/* `count THREADS ROUNDS [leave]`: adds to one counter without a lock, and tells it; `leave`: without waiting for them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sites.h"

OBJECT(4);

static int counter, unlisted;
static int rounds;

__attribute__((noinline)) static void *worker(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        int value = READ(0, counter);
        WRITE(1, counter, value + 1);
    }
    WRITE(3, unlisted, 1);
    return unused;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[1]), told;
    pthread_t threads[64];

    rounds = atoi(argv[2]);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; argc == 3 && i < count; i++)
        pthread_join(threads[i], NULL);
    told = READ(2, counter);
    if (argc > 3)
        usleep(2000); /* time enough for those who were not held */
    printf("counter %d, unlisted %d\n", told, unlisted);
    return 0;
}
