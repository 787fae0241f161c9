/*
 * C11 threads, as what they are in glibc: POSIX threads under other names. glibc's own reach each other by internal
 * aliases, where no hook is; so each of them is one of our POSIX hooks here, and its result in C11's numbers.
 *
 * Prohibitions: no malloc, no stdio; takes no lock but the one the program asks for.
 */
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "rb_runtime.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t) &&
                   sizeof(once_flag) == sizeof(pthread_once_t) && sizeof(thrd_t) == sizeof(pthread_t),
               "a libc in which C11 threads are something else");

static int result_of(int error)
{
    switch (error) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

#define AS_POSIX(name, parameters, call)                                                                               \
    RB_EXPORT int name parameters { return result_of(call); }

/* An int is returned in the lower half of the register that a pointer is returned in. */
AS_POSIX(thrd_create, (thrd_t * thread, thrd_start_t routine, void *argument),
         pthread_create(thread, NULL, (void *(*)(void *))(void (*)(void))routine, argument))
AS_POSIX(thrd_detach, (thrd_t thread), pthread_detach(thread))
AS_POSIX(mtx_lock, (mtx_t * mutex), pthread_mutex_lock((pthread_mutex_t *)mutex))
AS_POSIX(mtx_trylock, (mtx_t * mutex), pthread_mutex_trylock((pthread_mutex_t *)mutex))
AS_POSIX(mtx_timedlock, (mtx_t * mutex, const struct timespec *until),
         pthread_mutex_timedlock((pthread_mutex_t *)mutex, until))
AS_POSIX(mtx_unlock, (mtx_t * mutex), pthread_mutex_unlock((pthread_mutex_t *)mutex))
AS_POSIX(cnd_wait, (cnd_t * condition, mtx_t *mutex),
         pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex))
AS_POSIX(cnd_timedwait, (cnd_t * condition, mtx_t *mutex, const struct timespec *until),
         pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until))
AS_POSIX(cnd_signal, (cnd_t * condition), pthread_cond_signal((pthread_cond_t *)condition))
AS_POSIX(cnd_broadcast, (cnd_t * condition), pthread_cond_broadcast((pthread_cond_t *)condition))

RB_EXPORT int thrd_join(thrd_t thread, int *result)
{
    void *returned;
    int error = pthread_join(thread, &returned);

    if (!error && result)
        *result = (int)(uintptr_t)returned;
    return result_of(error);
}

RB_EXPORT int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);

    if (error)
        return result_of(error);
    pthread_mutexattr_settype(&attributes, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
    return result_of(pthread_mutex_init((pthread_mutex_t *)mutex, &attributes));
}

RB_EXPORT void mtx_destroy(mtx_t *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex); }

RB_EXPORT void call_once(once_flag *flag, void (*routine)(void)) { pthread_once((pthread_once_t *)flag, routine); }
