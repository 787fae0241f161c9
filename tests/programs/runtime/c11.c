/* C11 threads: every call once or more; the output is the same in every run. */
#include <assert.h>
#include <stdio.h>
#include <threads.h>

static mtx_t mutex;
static cnd_t condition;
static once_flag flag = ONCE_FLAG_INIT;
static int ready, counter, ran;

static void routine(void) { ran++; }

static int worker(void *argument)
{
    call_once(&flag, routine);
    mtx_lock(&mutex);
    while (!ready)
        cnd_wait(&condition, &mutex);
    counter += *(int *)argument;
    mtx_unlock(&mutex);
    if (*(int *)argument == 2)
        thrd_exit(-2);
    return -1;
}

static int detached(void *argument)
{
    (void)argument;
    return 0;
}

int main(void)
{
    int numbers[2] = {1, 2}, result;
    struct timespec past = {0};
    mtx_t recursive;
    thrd_t threads[2], free_one;

    assert(mtx_init(&mutex, mtx_plain) == thrd_success && cnd_init(&condition) == thrd_success);
    assert(mtx_init(&recursive, mtx_timed | mtx_recursive) == thrd_success);
    assert(mtx_lock(&recursive) == thrd_success && mtx_timedlock(&recursive, &past) == thrd_success);
    assert(mtx_unlock(&recursive) == thrd_success && mtx_unlock(&recursive) == thrd_success);
    mtx_destroy(&recursive);
    for (int i = 0; i < 2; i++)
        assert(thrd_create(&threads[i], worker, &numbers[i]) == thrd_success);
    assert(thrd_create(&free_one, detached, NULL) == thrd_success && thrd_detach(free_one) == thrd_success);
    mtx_lock(&mutex);
    assert(mtx_trylock(&mutex) == thrd_busy);
    assert(cnd_timedwait(&condition, &mutex, &past) == thrd_timedout);
    ready = 1;
    cnd_signal(&condition);
    cnd_broadcast(&condition);
    mtx_unlock(&mutex);
    for (int i = 0; i < 2; i++) {
        assert(thrd_join(threads[i], &result) == thrd_success);
        assert(result == -1 - i);
    }
    printf("counter %d, once %d\n", counter, ran);
    cnd_destroy(&condition);
    mtx_destroy(&mutex);
    return 3;
}
