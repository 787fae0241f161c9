/* Exits with 1 if the consumer gets the mutex before the producer: the order of two locks is the whole failure. */
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int produced, missed;

static void *produce(void *unused)
{
    pthread_mutex_lock(&mutex);
    produced = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *consume(void *unused)
{
    pthread_mutex_lock(&mutex);
    missed = !produced;
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return missed;
}
