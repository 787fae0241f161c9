/* Two threads count to 2 * ROUNDS under a lock; `mine` is each thread's own part of shared memory. */
#include <pthread.h>
#include <stdio.h>

#define ROUNDS 50

long counter;
long mine[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument)
{
    long *own = argument;

    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
        *own += i;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];

    printf("%lx %lx\n", (unsigned long)&counter, (unsigned long)mine);
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &mine[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", counter, mine[0], mine[1]);
    return 0;
}
