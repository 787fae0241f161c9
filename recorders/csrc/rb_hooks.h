/*
 * Every function that the runtime stands in front of, once: X(returns, name, parameters, version).
 *
 * A hook is a line here and a body in one of rb_hooks_*.c; the real function is then rb_state.real.NAME. `version` is
 * the symbol version to take, where the default one is not sure to be what dlsym finds; else NULL. A function that this
 * libc does not have stays NULL and cannot be called by the program either. All of the runtime is compiled with
 * _GNU_SOURCE.
 */
#ifndef RB_HOOKS_H
#define RB_HOOKS_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define RB_HOOKS(X)                                                                                                    \
    X(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), NULL)                     \
    X(int, pthread_join, (pthread_t, void **), NULL)                                                                   \
    X(int, pthread_tryjoin_np, (pthread_t, void **), NULL)                                                             \
    X(int, pthread_timedjoin_np, (pthread_t, void **, const struct timespec *), NULL)                                  \
    X(int, pthread_detach, (pthread_t), NULL)                                                                          \
    X(int, pthread_mutex_init, (pthread_mutex_t *, const pthread_mutexattr_t *), NULL)                                 \
    X(int, pthread_mutex_destroy, (pthread_mutex_t *), NULL)                                                           \
    X(int, pthread_mutex_lock, (pthread_mutex_t *), NULL)                                                              \
    X(int, pthread_mutex_trylock, (pthread_mutex_t *), NULL)                                                           \
    X(int, pthread_mutex_timedlock, (pthread_mutex_t *, const struct timespec *), NULL)                                \
    X(int, pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, const struct timespec *), NULL)                     \
    X(int, pthread_mutex_unlock, (pthread_mutex_t *), NULL)                                                            \
    X(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *), "GLIBC_2.3.2")                                    \
    X(int, pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *), "GLIBC_2.3.2")      \
    X(int, pthread_cond_clockwait, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *), NULL)    \
    X(int, pthread_cond_signal, (pthread_cond_t *), "GLIBC_2.3.2")                                                     \
    X(int, pthread_cond_broadcast, (pthread_cond_t *), "GLIBC_2.3.2")                                                  \
    X(int, pthread_rwlock_rdlock, (pthread_rwlock_t *), NULL)                                                          \
    X(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *, const struct timespec *), NULL)                            \
    X(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *, clockid_t, const struct timespec *), NULL)                 \
    X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *), NULL)                                                       \
    X(int, pthread_rwlock_wrlock, (pthread_rwlock_t *), NULL)                                                          \
    X(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *, const struct timespec *), NULL)                            \
    X(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *, clockid_t, const struct timespec *), NULL)                 \
    X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *), NULL)                                                       \
    X(int, pthread_rwlock_unlock, (pthread_rwlock_t *), NULL)                                                          \
    X(int, pthread_spin_lock, (pthread_spinlock_t *), NULL)                                                            \
    X(int, pthread_spin_trylock, (pthread_spinlock_t *), NULL)                                                         \
    X(int, pthread_spin_unlock, (pthread_spinlock_t *), NULL)                                                          \
    X(int, pthread_barrier_init, (pthread_barrier_t *, const pthread_barrierattr_t *, unsigned), NULL)                 \
    X(int, pthread_barrier_wait, (pthread_barrier_t *), NULL)                                                          \
    X(int, pthread_once, (pthread_once_t *, void (*)(void)), NULL)                                                     \
    X(int, sem_init, (sem_t *, int, unsigned), NULL)                                                                   \
    X(int, sem_wait, (sem_t *), NULL)                                                                                  \
    X(int, sem_trywait, (sem_t *), NULL)                                                                               \
    X(int, sem_timedwait, (sem_t *, const struct timespec *), NULL)                                                    \
    X(int, sem_clockwait, (sem_t *, clockid_t, const struct timespec *), NULL)                                         \
    X(int, sem_post, (sem_t *), NULL)                                                                                  \
    X(void *, malloc, (size_t), NULL)                                                                                  \
    X(void *, calloc, (size_t, size_t), NULL)                                                                          \
    X(void *, realloc, (void *, size_t), NULL)                                                                         \
    X(void *, reallocarray, (void *, size_t, size_t), NULL)                                                            \
    X(void, free, (void *), NULL)                                                                                      \
    X(int, posix_memalign, (void **, size_t, size_t), NULL)                                                            \
    X(void *, aligned_alloc, (size_t, size_t), NULL)                                                                   \
    X(void *, memalign, (size_t, size_t), NULL)                                                                        \
    X(time_t, time, (time_t *), NULL)                                                                                  \
    X(int, gettimeofday, (struct timeval *, void *), NULL)                                                             \
    X(int, clock_gettime, (clockid_t, struct timespec *), NULL)                                                        \
    X(int, rand, (void), NULL)                                                                                         \
    X(long, random, (void), NULL)                                                                                      \
    X(pid_t, getpid, (void), NULL)                                                                                     \
    X(int, kill, (pid_t, int), NULL)                                                                                   \
    X(void, exit, (int), NULL)                                                                                         \
    X(void, _exit, (int), NULL)                                                                                        \
    X(void, _Exit, (int), NULL)                                                                                        \
    X(void, quick_exit, (int), NULL)

struct rb_real {
#define X(returns, name, parameters, version) returns(*name) parameters;
    RB_HOOKS(X)
#undef X
};

#endif
