/* Every hooked call once or more; the output is the same in every run. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static sem_t semaphore;
static int ready, counter, ran;

static void routine(void)
{
    pthread_mutex_lock(&mutex);
    ran++;
    pthread_mutex_unlock(&mutex);
}

static void *worker(void *argument)
{
    pthread_once(&once, routine);
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&condition, &mutex);
    counter += (int)(long)argument;
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    counter++;
    pthread_rwlock_unlock(&rwlock);
    pthread_spin_lock(&spin);
    counter++;
    pthread_spin_unlock(&spin);
    sem_post(&semaphore);
    pthread_barrier_wait(&barrier);
    return argument;
}

int main(void)
{
    pthread_mutex_t recursive;
    pthread_mutexattr_t attributes;
    pthread_t threads[2];
    struct timespec past = {0}, now;
    struct timeval day;
    void *returned;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    assert(!pthread_mutex_lock(&recursive) && !pthread_mutex_trylock(&recursive));
    assert(!pthread_mutex_unlock(&recursive) && !pthread_mutex_unlock(&recursive));
    assert(!pthread_mutex_destroy(&recursive));
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, NULL, 3);
    assert(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    assert(sem_timedwait(&semaphore, &past) == -1 && errno == ETIMEDOUT);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    pthread_mutex_lock(&mutex);
    assert(pthread_cond_timedwait(&condition, &mutex, &past) == ETIMEDOUT);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    sem_wait(&semaphore);
    sem_wait(&semaphore);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < 2; i++) {
        assert(!pthread_join(threads[i], &returned));
        assert((long)returned == i + 1);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    gettimeofday(&day, NULL);
    assert(time(NULL) - day.tv_sec <= 1);
    assert(getpid() > 1);
    srand(1);
    printf("counter %d, once %d, rand %d\n", counter, ran, rand());
    char *text = strdup("text"), *block = malloc(100);
    block = realloc(block, 1000);
    free(block);
    free(calloc(10, 10));
    printf("%s\n", text);
    free(text);
    return 7;
}
