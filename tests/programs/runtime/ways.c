/* `ways NAME`: one way each in which threads and processes start, block, are cut short and end. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore, begun;
static pthread_key_t key;

static void unlock(void *argument) { pthread_mutex_unlock(argument); }

static void *wait_for_condition(void *argument)
{
    pthread_mutex_lock(&mutex);
    sem_post(&begun);
    pthread_cleanup_push(unlock, &mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return argument;
}

static void *wait_for_semaphore(void *argument)
{
    sem_post(&begun);
    sem_wait(&semaphore);
    return argument;
}

static void cancel(void)
{
    void *(*routines[2])(void *) = {wait_for_condition, wait_for_semaphore};
    pthread_t thread;
    void *returned;

    sem_init(&begun, 0, 0);
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, NULL, routines[i % 2], NULL);
        sem_wait(&begun);
        pthread_cancel(thread);
        pthread_join(thread, &returned);
        assert(returned == PTHREAD_CANCELED);
        pthread_mutex_lock(&mutex); /* the clean-up handler has unlocked it */
        pthread_mutex_unlock(&mutex);
    }
    puts("cancelled 20");
}

static void *lock_and_exit(void *argument)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_exit(argument);
}

static void many(void)
{
    pthread_t threads[100];
    void *returned;

    for (long i = 0; i < 100; i++)
        pthread_create(&threads[i], NULL, lock_and_exit, (void *)i);
    for (long i = 0; i < 100; i++) {
        pthread_join(threads[i], &returned);
        assert((long)returned == i);
    }
    puts("joined 100");
}

static void destructor(void *value)
{
    free(value);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *with_specific(void *argument)
{
    pthread_setspecific(key, malloc(10));
    return argument;
}

static void destructors(void)
{
    pthread_t thread;

    pthread_key_create(&key, destructor);
    pthread_create(&thread, NULL, with_specific, NULL);
    pthread_join(thread, NULL);
    puts("destroyed");
}

static void *end_process(void *argument) { exit((int)(long)argument); }

static void exit_in_thread(void)
{
    pthread_t thread;

    puts("thread exits");
    pthread_create(&thread, NULL, end_process, (void *)5);
    pthread_join(thread, NULL);
}

static void *say(void *argument)
{
    puts("still there");
    return argument;
}

static void main_leaves(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, say, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void *store_to_nowhere(void *argument)
{
    *(volatile int *)argument = 1;
    return NULL;
}

static void crash(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, store_to_nowhere, (void *)0x10);
    pthread_join(thread, NULL);
}

static int overflow(int depth)
{
    volatile char frame[4096];

    frame[0] = (char)depth;
    return overflow(depth + 1) + frame[0];
}

static void forking(void)
{
    char byte = 'x';
    int pipes[2], status;
    pid_t child;

    assert(!pipe(pipes));
    printf("pipe %d %d\n", pipes[0], pipes[1]);
    fflush(stdout);
    child = fork();
    if (!child) {
        pthread_t thread;

        free(malloc(100));
        pthread_create(&thread, NULL, lock_and_exit, NULL);
        pthread_join(thread, NULL);
        assert(write(pipes[1], &byte, 1) == 1);
        exit(3);
    }
    waitpid(child, &status, 0);
    assert(WEXITSTATUS(status) == 3 && read(pipes[0], &byte, 1) == 1);
    child = vfork();
    if (!child)
        _exit(4);
    waitpid(child, &status, 0);
    assert(WEXITSTATUS(status) == 4);
    assert(WEXITSTATUS(system("test -z \"$LD_PRELOAD$RECBULC_CONTROL\"")) == 0);
    puts("children ended");
}

static void *hold(void *argument)
{
    pthread_mutex_lock(argument);
    sem_post(&begun);
    for (;;)
        sem_wait(&semaphore);
    return NULL;
}

/* Runs until it is killed; one thread blocked for ever, one working. */
static void for_ever(void)
{
    pthread_t thread;

    sem_init(&begun, 0, 0);
    sem_init(&semaphore, 0, 0);
    pthread_create(&thread, NULL, hold, &mutex);
    sem_wait(&begun);
    for (;;) {
        pthread_mutex_lock(&(pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER);
        free(malloc(10));
    }
}

static void use_after_free(void)
{
    volatile unsigned char *block = malloc(32);

    block[31] = 1;
    free((void *)block);
    printf("%02x %02x\n", block[0], block[31]);
}

static void deadlock(void)
{
    pthread_t thread;

    sem_init(&begun, 0, 0);
    sem_init(&semaphore, 0, 0);
    pthread_create(&thread, NULL, hold, &mutex);
    sem_wait(&begun);
    pthread_mutex_lock(&mutex);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    if (!strcmp(way, "cancel"))
        cancel();
    else if (!strcmp(way, "many"))
        many();
    else if (!strcmp(way, "destructors"))
        destructors();
    else if (!strcmp(way, "exit_in_thread"))
        exit_in_thread();
    else if (!strcmp(way, "main_leaves"))
        main_leaves();
    else if (!strcmp(way, "crash"))
        crash();
    else if (!strcmp(way, "overflow"))
        return overflow(0);
    else if (!strcmp(way, "abort"))
        abort();
    else if (!strcmp(way, "raise"))
        raise(SIGFPE);
    else if (!strcmp(way, "trap"))
        __asm__ volatile("int3");
    else if (!strcmp(way, "fork"))
        forking();
    else if (!strcmp(way, "for_ever"))
        for_ever();
    else if (!strcmp(way, "use_after_free"))
        use_after_free();
    else if (!strcmp(way, "deadlock"))
        deadlock();
    else
        return 2;
    return 0;
}
