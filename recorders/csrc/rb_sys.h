/*
 * System calls without libc: no errno, no cancellation point, no vector register, nothing that a hook could re-enter.
 *
 * Every function returns what the kernel does: a result, or an error number negated (-ENOSPC).
 */
#ifndef RB_SYS_H
#define RB_SYS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static inline long rb_sys(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline int rb_sys_open(const char *path, int flags, int mode)
{
    return (int)rb_sys(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode, 0, 0);
}

static inline int rb_sys_close(int fd) { return (int)rb_sys(SYS_close, fd, 0, 0, 0, 0, 0); }

static inline long rb_sys_write(int fd, const void *bytes, size_t count)
{
    return rb_sys(SYS_write, fd, (long)bytes, (long)count, 0, 0, 0);
}

static inline long rb_sys_pwrite(int fd, const void *bytes, size_t count, uint64_t offset)
{
    return rb_sys(SYS_pwrite64, fd, (long)bytes, (long)count, (long)offset, 0, 0);
}

static inline int rb_sys_fallocate(int fd, uint64_t offset, uint64_t bytes)
{
    return (int)rb_sys(SYS_fallocate, fd, 0, (long)offset, (long)bytes, 0, 0);
}

static inline int rb_sys_truncate(const char *path, uint64_t bytes)
{
    return (int)rb_sys(SYS_truncate, (long)path, (long)bytes, 0, 0, 0, 0);
}

/* A pointer, or one of the last 4095 addresses: see rb_sys_failed. */
static inline void *rb_sys_mmap(void *address, size_t bytes, int protection, int flags, int fd, uint64_t offset)
{
    return (void *)rb_sys(SYS_mmap, (long)address, (long)bytes, protection, flags, fd, (long)offset);
}

/* 0, or the error number (positive) that rb_sys_mmap returned in place of a pointer. */
static inline int rb_sys_failed(const void *pointer)
{
    return (uintptr_t)pointer > (uintptr_t)-4096 ? (int)-(intptr_t)pointer : 0;
}

static inline int rb_sys_munmap(void *address, size_t bytes)
{
    return (int)rb_sys(SYS_munmap, (long)address, (long)bytes, 0, 0, 0, 0);
}

static inline int rb_sys_mprotect(void *address, size_t bytes, int protection)
{
    return (int)rb_sys(SYS_mprotect, (long)address, (long)bytes, protection, 0, 0, 0);
}

static inline int rb_sys_madvise(void *address, size_t bytes, int advice)
{
    return (int)rb_sys(SYS_madvise, (long)address, (long)bytes, advice, 0, 0, 0);
}

static inline uint32_t rb_sys_getpid(void) { return (uint32_t)rb_sys(SYS_getpid, 0, 0, 0, 0, 0, 0); }

static inline uint32_t rb_sys_gettid(void) { return (uint32_t)rb_sys(SYS_gettid, 0, 0, 0, 0, 0, 0); }

static inline void rb_sys_yield(void) { rb_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0); }

/* 0, or -EINTR when a signal cut it short. */
static inline int rb_sys_sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

    return (int)rb_sys(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

/* Sleeps while *word == expected, at most `ns`: 0 woken, -EAGAIN it was not, -EINTR, -ETIMEDOUT. Private to us. */
static inline int rb_sys_futex_wait(uint32_t *word, uint32_t expected, uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

    return (int)rb_sys(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, (long)&time, 0, 0);
}

/* Wakes at most `waiters`; how many it did. */
static inline int rb_sys_futex_wake(uint32_t *word, int waiters)
{
    return (int)rb_sys(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, waiters, 0, 0, 0);
}

/* Every signal is blocked until rb_sys_unblock with the same `old`. */
static inline void rb_sys_block(uint64_t *old)
{
    uint64_t all = UINT64_MAX;

    rb_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)old, sizeof(all), 0, 0);
}

static inline void rb_sys_unblock(const uint64_t *old)
{
    rb_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)old, 0, sizeof(*old), 0, 0);
}

static inline void rb_sys_tgkill(uint32_t pid, uint32_t tid, int signal)
{
    rb_sys(SYS_tgkill, pid, tid, signal, 0, 0, 0);
}

__attribute__((noreturn)) static inline void rb_sys_exit_group(int code)
{
    for (;;)
        rb_sys(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

#endif
