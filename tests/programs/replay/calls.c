/* One scenario per kind of call, chosen by the first argument; the exit code tells which order it ran in. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t control = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static int first, turns, ready;
static _Thread_local int number;

static void come(void)
{
    if (!first)
        first = number;
}

/* Who gets the mutex first. */
static void lock(void)
{
    pthread_mutex_lock(&mutex);
    come();
    pthread_mutex_unlock(&mutex);
}

/* The second thread wakes the first, or finds nobody waiting yet. */
static void wake(void)
{
    pthread_mutex_lock(&mutex);
    if (number == 1) {
        while (!ready)
            pthread_cond_wait(&condition, &mutex);
        first = turns;
    } else {
        ready = 1;
        turns++;
        pthread_cond_signal(&condition);
    }
    pthread_mutex_unlock(&mutex);
}

/* The signal is lost when it comes before the wait: nobody looks at anything. */
static void lose(void)
{
    if (number == 2) {
        pthread_cond_signal(&condition);
        return;
    }
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* An hour's wait, which the schedule may end at once. */
static void time_out(void)
{
    struct timespec until;

    if (number == 2)
        return;
    timespec_get(&until, TIME_UTC);
    until.tv_sec += 3600;
    pthread_mutex_lock(&mutex);
    first = pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT;
    pthread_mutex_unlock(&mutex);
}

static void try(void)
{
    if (number == 2)
        return;
    if (pthread_mutex_trylock(&mutex) == EBUSY)
        first = 1;
    else
        pthread_mutex_unlock(&mutex);
}

static void meet(void)
{
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        first = number;
}

static void once(void) { pthread_once(&control, come); }

static void post(void)
{
    if (number == 1) {
        sem_wait(&semaphore);
        come();
        sem_post(&semaphore);
    } else {
        come();
        sem_post(&semaphore);
    }
}

/* Each holds one and wants the other. */
static void deadlock(void)
{
    pthread_mutex_t *mine = number == 1 ? &mutex : &second, *other = number == 1 ? &second : &mutex;

    pthread_mutex_lock(mine);
    pthread_mutex_lock(other);
    pthread_mutex_unlock(other);
    pthread_mutex_unlock(mine);
}

static void crash(void)
{
    pthread_mutex_lock(&mutex);
    come();
    if (number == 2 && first == 2)
        abort();
    pthread_mutex_unlock(&mutex);
}

static void tell_time(void)
{
    if (number == 1)
        first = time(NULL) == 1234567890;
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"lock", lock},         {"wake", wake},   {"lose", lose},           {"time_out", time_out},
    {"try", try},           {"meet", meet},   {"once", once},           {"post", post},
    {"deadlock", deadlock}, {"crash", crash}, {"tell_time", tell_time},
};

static void (*scenario)(void);

static void *thread(void *own)
{
    number = (int)(long)own;
    scenario();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];

    for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
        if (argc == 2 && !strcmp(argv[1], scenarios[i].name))
            scenario = scenarios[i].run;
    if (!scenario)
        return 100;
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("first: %d\n", first);
    return first;
}
