/*
 * Prohibitions: reached from sites. No libc, no vector registers, no locks; system calls by rb_sys.h only.
 */
#include "rb_log.h"

#include <errno.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* control.dir/<number>.events */
static void log_path(char path[RB_CONTROL_PATH + 32], uint32_t number)
{
    static const char suffix[] = ".events";
    char digits[10];
    int count = 0;
    char *end = path;

    for (const char *from = rb_state.control->dir; *from; from++)
        *end++ = *from;
    *end++ = '/';
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *end++ = digits[--count];
    for (size_t i = 0; i < sizeof(suffix); i++)
        *end++ = suffix[i];
}

/* Blocks on disk for one more chunk: 0 or an errno. Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ: do not ask. */
static int allocate(int fd, uint64_t offset, uint64_t bytes)
{
    static const char zeros[4096];
    struct rlimit limit;
    int error;

    rb_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0);
    if (limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur)
        return EFBIG;
    error = -rb_sys_fallocate(fd, offset, bytes);
    if (error != EOPNOTSUPP)
        return error;
    for (uint64_t done = 0; done < bytes;) {
        long wrote = rb_sys_pwrite(fd, zeros, sizeof(zeros), offset + done);

        if (wrote <= 0)
            return wrote ? (int)-wrote : EIO;
        done += (uint64_t)wrote;
    }
    return 0;
}

/* One more chunk, mapped behind the last. The file is open no longer than that: its number is the program's to use. */
static int add_chunk(struct rb_thread *self)
{
    struct rb_log *log = &self->log;
    uint64_t bytes = log->mapped_bytes > RB_LOG_SMALLEST ? log->mapped_bytes : RB_LOG_SMALLEST;
    char *address = (char *)log->first + log->mapped_bytes;
    char path[RB_CONTROL_PATH + 32];
    void *mapped;
    int fd, error;

    if (bytes > rb_state.control->chunk_bytes)
        bytes = rb_state.control->chunk_bytes;
    if (!log->first)
        return ENOMEM;
    if (log->mapped_bytes + bytes > RB_LOG_RESERVE)
        return EFBIG;
    log_path(path, self->number);
    fd = rb_sys_open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        return -fd;
    error = allocate(fd, log->mapped_bytes, bytes);
    if (!error) {
        mapped = rb_sys_mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                             log->mapped_bytes);
        error = rb_sys_failed(mapped);
    }
    rb_sys_close(fd);
    if (error)
        return error;
    rb_sys_madvise(address, bytes, MADV_POPULATE_WRITE); /* MAP_POPULATE leaves the first write to fault; old kernels */
    log->mapped_bytes += bytes;
    log->limit = log->first + log->mapped_bytes / sizeof(struct rb_event) - 1;
    return 0;
}

void rb_log_init(struct rb_thread *self)
{
    void *reserved = rb_sys_mmap(NULL, RB_LOG_RESERVE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    self->log = (struct rb_log){.first = rb_sys_failed(reserved) ? NULL : reserved};
    self->log.next = self->log.limit = self->log.first;
}

void rb_log_deinit(struct rb_thread *self)
{
    struct rb_log *log = &self->log;
    struct rb_event *end = log->lost ? log->limit + 1 : log->next;
    char path[RB_CONTROL_PATH + 32];

    if (log->mapped_bytes) {
        log_path(path, self->number);
        rb_sys_truncate(path, (uint64_t)((char *)end - (char *)log->first));
    }
    if (log->first)
        rb_sys_munmap(log->first, RB_LOG_RESERVE);
    *log = (struct rb_log){.lost = 1};
}

static void lose(struct rb_thread *self, int error)
{
    self->log.lost = 1;
    self->control->lost = 1;
    if (self->log.mapped_bytes) {
        struct rb_event *last = self->log.limit; /* the slot kept for this */

        last->kind = RB_EVENT_KIND_LOST;
        last->value = (uint64_t)error;
        last->call = self->call;
        last->before = last->after = rb_stamp(self, &last->core);
        last->core_after = last->core;
    }
}

struct rb_event *rb_log_grow(struct rb_thread *self, struct rb_event *slot)
{
    uint64_t mask;
    int error = 0;

    rb_sys_block(&mask);
    while (!self->log.lost && slot >= self->log.limit) {
        error = add_chunk(self);
        if (error)
            lose(self, error);
    }
    rb_sys_unblock(&mask);
    if (slot >= self->log.limit) {
        self->log.spill = (struct rb_event){0};
        return &self->log.spill;
    }
    self->control->events++;
    return slot;
}
