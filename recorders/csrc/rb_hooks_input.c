/*
 * Hooks of what a program learns from outside: time, random numbers, its own process number. A replay gives back what
 * was recorded.
 *
 * Prohibitions: no malloc, no stdio, no locks.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rb_call.h"
#include "rb_real.h"

#define INPUT(which) RB_CALL(INPUT, RB_INPUT_##which)

RB_EXPORT time_t time(time_t *out)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = INPUT(TIME);

    if (!self)
        return rb_real()->time(out);
    if (rb_call_begin(self, &call) == RB_CALL_REAL)
        call.event.value = RB_RESULT(rb_state.real.time(NULL));
    rb_call_end(self, &call);
    if (out)
        *out = (time_t)call.event.value;
    return (time_t)call.event.value;
}

RB_EXPORT int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = INPUT(GETTIMEOFDAY);
    struct timeval now;

    if (!self)
        return rb_real()->gettimeofday(out, zone);
    if (rb_call_begin(self, &call) == RB_CALL_REAL) {
        rb_state.real.gettimeofday(&now, zone);
        call.event.value = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_usec;
    }
    rb_call_end(self, &call);
    *out = (struct timeval){(time_t)(call.event.value / 1000000), (suseconds_t)(call.event.value % 1000000)};
    return 0;
}

RB_EXPORT int clock_gettime(clockid_t clock, struct timespec *out)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = INPUT(CLOCK_GETTIME);
    struct timespec now;

    if (!self)
        return rb_real()->clock_gettime(clock, out);
    call.event.old = RB_RESULT(clock);
    if (rb_call_begin(self, &call) == RB_CALL_REAL)
        call.event.value = rb_state.real.clock_gettime(clock, &now)
                               ? UINT64_MAX /* no such clock */
                               : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    rb_call_end(self, &call);
    if (call.event.value == UINT64_MAX) {
        errno = EINVAL;
        return -1;
    }
    *out = (struct timespec){(time_t)(call.event.value / 1000000000), (long)(call.event.value % 1000000000)};
    return 0;
}

#define NUMBER(returns, name, which)                                                                                   \
    RB_EXPORT returns name(void)                                                                                       \
    {                                                                                                                  \
        struct rb_thread *self = RB_ENTER();                                                                           \
        struct rb_call call = INPUT(which);                                                                            \
                                                                                                                       \
        if (!self)                                                                                                     \
            return rb_real()->name();                                                                                  \
        if (rb_call_begin(self, &call) == RB_CALL_REAL)                                                                \
            call.event.value = RB_RESULT(rb_state.real.name());                                                        \
        rb_call_end(self, &call);                                                                                      \
        return (returns)call.event.value;                                                                              \
    }

NUMBER(int, rand, RAND)
NUMBER(long, random, RANDOM)
RB_EXPORT pid_t getpid(void)
{
    struct rb_thread *self = RB_ENTER();
    struct rb_call call = INPUT(GETPID);

    if (!self)
        return rb_real()->getpid();
    if (rb_call_begin(self, &call) == RB_CALL_REAL)
        call.event.value = RB_RESULT(rb_state.real.getpid());
    else
        rb_state.told_pid = (pid_t)call.event.value;
    rb_call_end(self, &call);
    return (pid_t)call.event.value;
}

/* A replay tells the program the recorded number, which may be a stranger's by now: what is sent there is meant for us.
 */
RB_EXPORT int kill(pid_t pid, int signal)
{
    pid_t told = rb_state.told_pid;

    if (told && (pid == told || pid == -told))
        pid = pid > 0 ? (pid_t)rb_sys_getpid() : -(pid_t)rb_sys_getpid();
    return rb_real()->kill(pid, signal);
}
