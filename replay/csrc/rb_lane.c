/*
 * Waiting for one another: hand-over between threads, parking, and the bound of every wait.
 *
 * A wait ends as a divergence only after RB_REPLAY_STILL_MOST slices in which no list advanced and no thread was on a
 * CPU or in a system call that ends by itself. Slices, not wall time: while a debugger holds the process none goes by.
 *
 * Prohibitions: reached from sites. No libc, no vector registers, no locks; system calls by rb_sys.h only.
 */
#include <errno.h>

#include "rb_lane.h"

/* With a core for every thread a short spin is the quickest hand-over (DESIGN §6); else the other one needs our core.
 */
#define PAUSES_APART    2000
#define PAUSES_TOGETHER 50
#define YIELDS          20
#define PROC_BYTES      64

struct rb_lanes rb_lanes;

/* How a waiting thread knows that the process stands still. */
struct watch {
    uint64_t sum;
    uint32_t still;
};

static void record_divergence(const struct rb_lane *lane, enum rb_divergence_reason reason,
                              const struct rb_found *found, const struct rb_schedule_wait *awaited)
{
    struct rb_divergence *divergence = &rb_state.control->divergence;

    if (__atomic_exchange_n(&rb_lanes.diverged, 1, __ATOMIC_ACQ_REL))
        return;
    divergence->reason = reason;
    divergence->thread = lane->index;
    divergence->position = lane->done;
    divergence->found_kind = found ? found->kind : 0;
    divergence->found_site = found ? found->site : 0;
    divergence->found_count = found ? found->count : 0;
    divergence->found_call = found ? found->call : 0;
    divergence->awaited_thread = awaited ? awaited->thread : RB_SCHEDULE_NONE;
    divergence->awaited_position = awaited ? awaited->count : RB_SCHEDULE_NONE;
    __atomic_store_n(&divergence->set, 1, __ATOMIC_RELEASE);
}

void rb_diverge(const struct rb_lane *lane, enum rb_divergence_reason reason, const struct rb_found *found,
                const struct rb_schedule_wait *awaited)
{
    record_divergence(lane, reason, found, awaited);
    rb_sys_exit_group(RB_DIVERGED_EXIT);
}

/* Whoever just misses the waking looks again after a slice. */
void rb_lanes_open(const struct rb_lane *lane, enum rb_divergence_reason reason, const struct rb_found *found)
{
    record_divergence(lane, reason, found, NULL);
    __atomic_store_n(&rb_lanes.open, 1, __ATOMIC_SEQ_CST);
    rb_sys_futex_wake(&rb_lanes.open, INT32_MAX);
    rb_sys_futex_wake(&rb_lanes.unsettled, INT32_MAX);
    for (uint32_t i = 0; i < rb_lanes.header->nthreads; i++)
        rb_sys_futex_wake(&rb_lanes.lanes[i].done, INT32_MAX);
}

static int is_open(void) { return __atomic_load_n(&rb_lanes.open, __ATOMIC_ACQUIRE) != 0; }

static void set_state(struct rb_thread *self, uint32_t state)
{
    __atomic_store_n(&self->control->state, state, __ATOMIC_RELEASE);
}

/* Is the thread waiting in a futex, as everyone does who waits for another thread? */
static int sleeps(uint32_t tid)
{
    static const char head[] = "/proc/self/task/", tail[] = "/syscall";
    char path[PROC_BYTES], digits[12], text[8];
    int fd, n = 0, at = 0;
    long got;

    while (at < (int)sizeof(head) - 1) {
        path[at] = head[at];
        at++;
    }
    do
        digits[n++] = (char)('0' + tid % 10);
    while (tid /= 10);
    while (n)
        path[at++] = digits[--n];
    for (int i = 0; i < (int)sizeof(tail); i++)
        path[at++] = tail[i];
    fd = rb_sys_open(path, O_RDONLY, 0);
    if (fd < 0)
        return fd == -ENOENT || fd == -ESRCH; /* it has ended; whom we may not ask may be at work */
    got = rb_sys(SYS_read, fd, (long)text, sizeof(text), 0, 0, 0);
    rb_sys_close(fd);
    return got >= 4 && text[0] == '2' && text[1] == '0' && text[2] == '2' && text[3] == ' ';
}
_Static_assert(SYS_futex == 202, "sleeps() compares its digits");

static int all_sleep(const struct rb_thread *self)
{
    const struct rb_control *control = rb_state.control;
    uint32_t count = __atomic_load_n(&control->nthreads, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count && i < RB_CONTROL_THREADS; i++) {
        const struct rb_control_thread *thread = &control->threads[i];
        uint32_t state = __atomic_load_n(&thread->state, __ATOMIC_ACQUIRE);

        if (thread == self->control || state == RB_THREAD_NONE || state == RB_THREAD_ENDED || state == RB_THREAD_PARKED)
            continue;
        if (!thread->tid || !sleeps(thread->tid))
            return 0;
    }
    return 1;
}

/* A slice has gone by: has the process stood still for too many of them? */
static int stands_still(const struct rb_thread *self, struct watch *watch)
{
    uint64_t sum = 1;

    for (uint32_t i = 0; i < rb_lanes.header->nthreads; i++)
        sum += __atomic_load_n(&rb_lanes.lanes[i].done, __ATOMIC_RELAXED) + rb_lanes.lanes[i].settled;
    if (sum != watch->sum || !all_sleep(self)) {
        watch->sum = sum;
        watch->still = 0;
    }
    return ++watch->still > RB_REPLAY_STILL_MOST;
}

/* Whoever completes this many operations is to wake its sleepers. */
static void ask_to_be_woken(struct rb_lane *lane, uint32_t count)
{
    uint32_t wake_at = __atomic_load_n(&lane->wake_at, __ATOMIC_RELAXED);

    while (wake_at > count)
        if (__atomic_compare_exchange_n(&lane->wake_at, &wake_at, count, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return;
}

static void sleep_until(struct rb_thread *self, struct rb_lane *lane, const struct rb_schedule_wait *wait)
{
    struct rb_lane *other = &rb_lanes.lanes[wait->thread];
    struct watch watch = {0, 0};
    uint32_t done;

    set_state(self, RB_THREAD_PARKED);
    while ((done = __atomic_load_n(&other->done, __ATOMIC_ACQUIRE)) < wait->count && !is_open()) {
        ask_to_be_woken(other, wait->count);
        if (rb_sys_futex_wait(&other->done, done, RB_REPLAY_SLICE_NS) == -ETIMEDOUT && stands_still(self, &watch))
            rb_diverge(lane, RB_DIVERGED_STILL, NULL, wait);
    }
    set_state(self, RB_THREAD_RUNNING);
}

static void await_one(struct rb_thread *self, struct rb_lane *lane, const struct rb_schedule_wait *wait)
{
    struct rb_lane *other = &rb_lanes.lanes[wait->thread];
    int apart = __atomic_load_n(&rb_lanes.active, __ATOMIC_RELAXED) <= rb_state.control->ncores &&
                (other->core == RB_CORE_UNKNOWN || other->core != lane->core);
    int pauses = apart ? PAUSES_APART : PAUSES_TOGETHER;

    for (int i = 0; i < pauses + YIELDS; i++) {
        if (__atomic_load_n(&other->done, __ATOMIC_ACQUIRE) >= wait->count)
            return;
        if (i < pauses)
            __builtin_ia32_pause();
        else
            rb_sys_yield();
    }
    sleep_until(self, lane, wait);
}

void rb_lane_await(struct rb_thread *self, struct rb_lane *lane, const struct rb_schedule_op *op)
{
    const struct rb_schedule_wait *wait = rb_lanes.waits + op->first_wait;

    for (uint32_t i = 0; i < op->nwaits; i++, wait++)
        if (__atomic_load_n(&rb_lanes.lanes[wait->thread].done, __ATOMIC_ACQUIRE) < wait->count)
            await_one(self, lane, wait);
}

void rb_lane_settle(struct rb_lane *lane)
{
    if (lane->settled)
        return;
    lane->settled = 1;
    __atomic_sub_fetch(&rb_lanes.active, 1, __ATOMIC_RELAXED);
    if (__atomic_sub_fetch(&rb_lanes.unsettled, 1, __ATOMIC_SEQ_CST) == 0)
        rb_sys_futex_wake(&rb_lanes.unsettled, INT32_MAX);
}

void rb_lane_complete(struct rb_lane *lane)
{
    uint32_t done = __atomic_add_fetch(&lane->done, 1, __ATOMIC_SEQ_CST);

    rb_self()->control->position = done;
    if (RB_UNLIKELY(done >= __atomic_load_n(&lane->wake_at, __ATOMIC_SEQ_CST))) {
        __atomic_store_n(&lane->wake_at, UINT32_MAX, __ATOMIC_SEQ_CST);
        rb_sys_futex_wake(&lane->done, INT32_MAX);
    }
    if (RB_UNLIKELY(done == lane->nops))
        rb_lane_settle(lane);
}

/* A list that goes no further names itself, with what it waits for. */
static __attribute__((noreturn)) void diverge_elsewhere(void)
{
    for (uint32_t i = 0; i < rb_lanes.header->nthreads; i++) {
        struct rb_lane *lane = &rb_lanes.lanes[i];
        const struct rb_schedule_op *op = rb_lane_next(lane);

        if (lane->settled)
            continue;
        for (uint32_t w = 0; w < op->nwaits; w++) {
            const struct rb_schedule_wait *wait = &rb_lanes.waits[op->first_wait + w];

            if (__atomic_load_n(&rb_lanes.lanes[wait->thread].done, __ATOMIC_ACQUIRE) < wait->count)
                rb_diverge(lane, RB_DIVERGED_STILL, NULL, wait);
        }
        rb_diverge(lane, RB_DIVERGED_STILL, NULL, NULL);
    }
    rb_sys_exit_group(RB_DIVERGED_EXIT);
}

void rb_lanes_await_settled(struct rb_thread *self)
{
    struct watch watch = {0, 0};
    uint32_t unsettled;

    while ((unsettled = __atomic_load_n(&rb_lanes.unsettled, __ATOMIC_ACQUIRE)) && !is_open())
        if (rb_sys_futex_wait(&rb_lanes.unsettled, unsettled, RB_REPLAY_SLICE_NS) == -ETIMEDOUT &&
            stands_still(self, &watch))
            diverge_elsewhere();
}

void rb_lane_park(struct rb_thread *self, struct rb_lane *lane)
{
    uint32_t last = rb_lanes.header->last;

    if (is_open())
        return;
    set_state(self, RB_THREAD_PARKED);
    rb_lanes_await_settled(self);
    if (last != RB_SCHEDULE_NONE && (!lane || lane->index != last))
        while (!is_open())
            rb_sys_futex_wait(&rb_lanes.open, 0, RB_REPLAY_SLICE_NS);
    if (lane)
        lane->free = 1;
    set_state(self, RB_THREAD_RUNNING);
}

/* ------------------------------------------------------------------------------------------------------- setting up */

static void *zeroed(size_t bytes)
{
    return rb_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int map_schedule(const char *path, const unsigned char **bytes)
{
    struct rb_schedule_header header;
    int fd = rb_sys_open(path, O_RDONLY, 0), error = 0;
    void *mapped;

    if (fd < 0)
        return -fd;
    if (rb_sys(SYS_pread64, fd, (long)&header, sizeof(header), 0, 0, 0) != sizeof(header) ||
        header.magic != RB_SCHEDULE_MAGIC || header.version != RB_SCHEDULE_VERSION) {
        rb_sys_close(fd);
        return EINVAL;
    }
    mapped = rb_sys_mmap(NULL, header.bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    error = rb_sys_failed(mapped);
    rb_sys_close(fd);
    *bytes = mapped;
    return error;
}

static int make_gates(void)
{
    uint32_t nsites = rb_lanes.header->nsites;

    rb_lanes.ngates = nsites ? rb_lanes.sites[nsites - 1] + 1 : 0;
    if (!nsites)
        return 0;
    rb_lanes.gates = zeroed(rb_lanes.ngates * sizeof(*rb_lanes.gates));
    if (rb_sys_failed(rb_lanes.gates))
        return rb_sys_failed(rb_lanes.gates);
    for (uint32_t i = 0; i < nsites; i++)
        rb_lanes.gates[rb_lanes.sites[i]] = i + 1;
    return 0;
}

static void make_lane(struct rb_lane *lane, uint32_t index, struct rb_key *keys)
{
    const struct rb_schedule_thread *thread = &rb_lanes.threads[index];

    lane->wake_at = UINT32_MAX;
    lane->core = RB_CORE_UNKNOWN;
    lane->index = index;
    lane->ops = rb_lanes.ops + thread->first;
    lane->nops = thread->nops;
    lane->keys = keys;
    lane->settled = !thread->nops;
    rb_lanes.unsettled += !lane->settled;
    for (uint32_t i = lane->nops; i-- > 0;) {
        const struct rb_schedule_op *op = &lane->ops[i];

        if (op->part != RB_PART_END)
            keys[op->key].next = i + 1;
    }
}

int rb_lanes_init(const char *path)
{
    const unsigned char *bytes = NULL;
    const struct rb_schedule_header *header;
    struct rb_key *keys;
    size_t nkeys;
    int error = map_schedule(path, &bytes);

    if (error)
        return error;
    rb_lanes.header = header = (const void *)bytes;
    rb_lanes.sites = (const void *)(bytes + header->sites_at);
    rb_lanes.threads = (const void *)(bytes + header->threads_at);
    rb_lanes.ops = (const void *)(bytes + header->ops_at);
    rb_lanes.waits = (const void *)(bytes + header->waits_at);
    if ((error = make_gates()))
        return error;
    nkeys = (size_t)header->nsites + RB_KEYS_OF_KINDS;
    rb_lanes.lanes = zeroed(header->nthreads * sizeof(struct rb_lane));
    keys = zeroed(header->nthreads * nkeys * sizeof(struct rb_key));
    if (rb_sys_failed(rb_lanes.lanes) || rb_sys_failed(keys))
        return ENOMEM;
    for (uint32_t i = 0; i < header->nthreads; i++)
        make_lane(&rb_lanes.lanes[i], i, keys + i * nkeys);
    return 0;
}

struct rb_lane *rb_lane_find(const struct rb_thread *self)
{
    const struct rb_control_thread *control = self->control;
    const struct rb_lane *parent;

    if (control->parent == self->number)
        return &rb_lanes.lanes[0];
    parent = control->parent < RB_CONTROL_THREADS ? rb_lanes.by_number[control->parent] : NULL;
    for (uint32_t i = 1; parent && i < rb_lanes.header->nthreads; i++)
        if (rb_lanes.threads[i].parent == parent->index && rb_lanes.threads[i].nth == control->nth)
            return &rb_lanes.lanes[i];
    return NULL;
}
