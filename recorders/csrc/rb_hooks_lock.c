/*
 * Hooks of what locks and unlocks: mutex, rwlock, spin lock. None of these is a cancellation point.
 *
 * Prohibitions: no malloc, no stdio; takes no lock but the one the program asks for.
 */
#include "rb_call.h"
#include "rb_real.h"

/* A call whose first argument is the object and whose result is an error number. */
#define HOOK(name, kind_, flags_, parameters, arguments, object)                                                       \
    RB_EXPORT int name parameters                                                                                      \
    {                                                                                                                  \
        struct rb_thread *self = RB_ENTER();                                                                           \
        struct rb_call call = RB_CALL(kind_, object);                                                                  \
                                                                                                                       \
        if (!self)                                                                                                     \
            return rb_real()->name arguments;                                                                          \
        call.event.flags = flags_;                                                                                     \
        if (rb_call_begin(self, &call) == RB_CALL_REAL)                                                                \
            call.event.value = RB_RESULT(rb_state.real.name arguments);                                                \
        return rb_call_end(self, &call);                                                                               \
    }

HOOK(pthread_mutex_lock, MUTEX_LOCK, 0, (pthread_mutex_t * mutex), (mutex), mutex)
HOOK(pthread_mutex_trylock, MUTEX_TRYLOCK, 0, (pthread_mutex_t * mutex), (mutex), mutex)
HOOK(pthread_mutex_timedlock, MUTEX_LOCK, RB_EVENT_TIMED, (pthread_mutex_t * mutex, const struct timespec *until),
     (mutex, until), mutex)
HOOK(pthread_mutex_clocklock, MUTEX_LOCK, RB_EVENT_TIMED,
     (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until), (mutex, clock, until), mutex)
HOOK(pthread_mutex_unlock, MUTEX_UNLOCK, 0, (pthread_mutex_t * mutex), (mutex), mutex)
HOOK(pthread_mutex_destroy, MUTEX_DESTROY, 0, (pthread_mutex_t * mutex), (mutex), mutex)

HOOK(pthread_rwlock_rdlock, RW_RDLOCK, 0, (pthread_rwlock_t * lock), (lock), lock)
HOOK(pthread_rwlock_timedrdlock, RW_RDLOCK, RB_EVENT_TIMED, (pthread_rwlock_t * lock, const struct timespec *until),
     (lock, until), lock)
HOOK(pthread_rwlock_clockrdlock, RW_RDLOCK, RB_EVENT_TIMED,
     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), lock)
HOOK(pthread_rwlock_tryrdlock, RW_TRYRDLOCK, 0, (pthread_rwlock_t * lock), (lock), lock)
HOOK(pthread_rwlock_wrlock, RW_WRLOCK, 0, (pthread_rwlock_t * lock), (lock), lock)
HOOK(pthread_rwlock_timedwrlock, RW_WRLOCK, RB_EVENT_TIMED, (pthread_rwlock_t * lock, const struct timespec *until),
     (lock, until), lock)
HOOK(pthread_rwlock_clockwrlock, RW_WRLOCK, RB_EVENT_TIMED,
     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), lock)
HOOK(pthread_rwlock_trywrlock, RW_TRYWRLOCK, 0, (pthread_rwlock_t * lock), (lock), lock)
HOOK(pthread_rwlock_unlock, RW_UNLOCK, 0, (pthread_rwlock_t * lock), (lock), lock)

HOOK(pthread_spin_lock, SPIN_LOCK, 0, (pthread_spinlock_t * lock), (lock), (uintptr_t)lock)
HOOK(pthread_spin_trylock, SPIN_TRYLOCK, 0, (pthread_spinlock_t * lock), (lock), (uintptr_t)lock)
HOOK(pthread_spin_unlock, SPIN_UNLOCK, 0, (pthread_spinlock_t * lock), (lock), (uintptr_t)lock)

RB_EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = RB_CALL(MUTEX_INIT, mutex);
    int result, kind = 0;

    if (!self)
        return rb_real()->pthread_mutex_init(mutex, attributes);
    if (attributes)
        pthread_mutexattr_gettype(attributes, &kind);
    call.event.value = (uint64_t)kind;
    rb_call_begin(self, &call);
    result = rb_state.real.pthread_mutex_init(mutex, attributes);
    rb_call_end(self, &call);
    return result;
}
