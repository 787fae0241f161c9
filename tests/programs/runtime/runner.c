/* Every way a run can end, by the name of it. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;

static void *other_way(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return NULL;
}

static void *wait_for_signal(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&a);
    pthread_cond_wait(&c, &a);
    return NULL;
}

static void *wait_in_bounds(void *unused)
{
    struct timespec end;

    (void)unused;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 150 * 1000 * 1000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&a);
    pthread_cond_timedwait(&c, &a, &end);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *read_all(void *unused)
{
    char byte;

    (void)unused;
    while (read(0, &byte, 1) > 0)
        ;
    return NULL;
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *spin(void *unused)
{
    for (volatile int *stop = unused;;)
        (void)stop;
    return NULL;
}

static int join(void *(*routine)(void *))
{
    pthread_t thread;

    pthread_create(&thread, NULL, routine, NULL);
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    char line[4096];
    pthread_t thread;

    if (!strcmp(way, "exit"))
        return atoi(argv[2]);
    if (!strcmp(way, "abort"))
        abort();
    if (!strcmp(way, "deadlock")) {
        pthread_barrier_init(&both, NULL, 2);
        pthread_create(&thread, NULL, other_way, NULL);
        pthread_mutex_lock(&a);
        pthread_barrier_wait(&both);
        pthread_mutex_lock(&b);
    }
    if (!strcmp(way, "lost_signal"))
        return join(wait_for_signal);
    if (!strcmp(way, "first_ends")) { /* main is gone, the rest waits for ever */
        pthread_create(&thread, NULL, wait_for_signal, NULL);
        pthread_exit(NULL);
    }
    if (!strcmp(way, "works"))
        return join(work) + join(work);
    if (!strcmp(way, "timed"))
        return join(wait_in_bounds);
    if (!strcmp(way, "reads"))
        return join(read_all);
    if (!strcmp(way, "spins"))
        return join(spin);
    if (!strcmp(way, "echo"))
        while (fgets(line, sizeof(line), stdin))
            fputs(line, stdout);
    if (!strcmp(way, "speaks")) {
        fputs("out\n", stdout);
        fputs("err\n", stderr);
    }
    if (!strcmp(way, "floods"))
        for (int i = 0; i < 64 * 1024; i++)
            puts("sixty-three characters of which nobody will ever read a single one.");
    if (!strcmp(way, "leaves")) { /* a child that outlives it and holds its output */
        pid_t left = fork();

        if (!left) {
            setpgid(0, 0);
            pause();
        }
        setpgid(left, left);
        printf("%d\n", left);
    }
    if (!strcmp(way, "child")) { /* waits for a child's post: no deadlock */
        sem_t posted;

        sem_init(&posted, 1, 0);
        if (!fork())
            pause();
        sem_wait(&posted);
    }
    if (!strcmp(way, "where"))
        printf("%p %p %s %d\n", (void *)main, (void *)line, getcwd(line, sizeof(line)), getsid(0) == getpid());
    return 0;
}
