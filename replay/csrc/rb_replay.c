/*
 * The replay engine: a thread's listed accesses and calls wait for their predecessors in other threads (mode `relay` of
 * DESIGN §6), everything else runs free.
 *
 * An instance is found by its site or kind and how often this thread has come by it. One that is in the list but is not
 * the next operation is a divergence at once. MALLOC, FREE and INPUT are matched leniently, because libraries make such
 * calls of their own: one that is not due runs free, one that does not come is passed over.
 *
 * Prohibitions: access_* are reached from sites. No libc, no vector registers, no locks; rb_state.real is for wait
 * only, which is reached from hooks alone.
 */
#include <errno.h>

#include "rb_lane.h"
#include "rb_site.h"

#define FROM_CALL(self, event_kind, number) {.kind = (event_kind), .site = 0, .count = (number), .call = (self)->call}

static int init(void) { return rb_lanes_init(rb_state.control->schedule); }

/* Writes are always seen: a thread past its list must not write what the failing one still has to read. */
static int wants_site(uint32_t site, int kind)
{
    switch (kind) {
    case RB_SITE_CALL:
    case RB_SITE_BEFORE_WRITE:
    case RB_SITE_BEFORE_RMW:
        return 1;
    case RB_SITE_BEFORE_READ:
    case RB_SITE_AFTER_READ:
    case RB_SITE_AFTER_WRITE:
    case RB_SITE_AFTER_RMW:
        return rb_gate(site) != 0;
    default:
        return 0;
    }
}

static int lenient(int kind)
{
    return kind == RB_EVENT_KIND_MALLOC || kind == RB_EVENT_KIND_FREE || kind == RB_EVENT_KIND_INPUT;
}

static int ends_process(int kind) { return kind == RB_EVENT_KIND_EXIT || kind == RB_EVENT_KIND_SIGNAL; }

static int is_access(int kind)
{
    return kind == RB_EVENT_KIND_READ || kind == RB_EVENT_KIND_WRITE || kind == RB_EVENT_KIND_RMW;
}

/* Is there nothing that this thread could be held for? */
static int unheld(const struct rb_lane *lane)
{
    return (lane && lane->free) || __atomic_load_n(&rb_lanes.open, __ATOMIC_ACQUIRE);
}

/* Operations that need not come are over when something later does. */
static void pass_over(struct rb_lane *lane, uint32_t until)
{
    while (lane->done < until && lenient(rb_lane_next(lane)->kind))
        rb_lane_complete(lane);
}

/* ----------------------------------------------------------------------------------------------------------- threads
 */

static void thread_start(struct rb_thread *self)
{
    struct rb_lane *lane = rb_lane_find(self);

    self->engine = lane;
    if (!lane)
        return;
    lane->core = self->core;
    rb_lanes.by_number[self->number] = lane;
    if (!lane->settled)
        __atomic_add_fetch(&rb_lanes.active, 1, __ATOMIC_RELAXED);
}

static void thread_end(struct rb_thread *self)
{
    struct rb_lane *lane = self->engine;
    struct rb_found found = FROM_CALL(self, RB_EVENT_KIND_THREAD_END, 0);

    if (!lane || unheld(lane))
        return;
    pass_over(lane, lane->nops);
    if (rb_lane_over(lane))
        return;
    if (rb_lane_next(lane)->kind != RB_EVENT_KIND_THREAD_END)
        rb_diverge(lane, RB_DIVERGED_ENDED, &found, NULL);
    rb_lane_await(self, lane, rb_lane_next(lane));
    rb_lane_complete(lane);
}

/* ---------------------------------------------------------------------------------------------------------- accesses
 */

static void access_before(struct rb_thread *self, uint32_t site, int kind, int size, int flags, uint64_t address)
{
    struct rb_lane *lane = self->engine;
    uint32_t gate = rb_gate(site), count, at;
    const struct rb_schedule_op *op;
    struct rb_key *key;

    (void)size;
    (void)flags;
    (void)address;
    if (RB_UNLIKELY(unheld(lane)))
        return;
    if (RB_UNLIKELY(!lane || rb_lane_over(lane))) {
        rb_lane_park(self, lane);
        return;
    }
    if (!gate)
        return;
    key = &lane->keys[gate - 1];
    count = key->count++;
    if (!key->next || lane->ops[key->next - 1].count != count)
        return;
    at = key->next - 1;
    op = &lane->ops[at];
    pass_over(lane, at);
    if (RB_UNLIKELY(lane->done != at)) {
        struct rb_found found = {.kind = (uint32_t)kind, .site = site, .count = count, .call = self->call};

        rb_diverge(lane, RB_DIVERGED_ACCESS, &found, NULL);
    }
    key->next = op->next;
    rb_lane_await(self, lane, op);
    lane->under_way = site;
    if (RB_UNLIKELY(op->part == RB_PART_BLOCKED))
        rb_lane_settle(lane);
}

static void access_after(struct rb_thread *self, uint32_t site, int kind, int size, uint64_t value, uint64_t written)
{
    struct rb_lane *lane = self->engine;

    (void)size;
    (void)value;
    (void)written;
    if (!lane || lane->under_way != site)
        return;
    lane->under_way = 0;
    if (RB_UNLIKELY(rb_lane_next(lane)->part == RB_PART_BLOCKED)) {
        struct rb_found found = {.kind = (uint32_t)kind, .site = site, .call = self->call};

        rb_lanes_open(lane, RB_DIVERGED_UNBLOCKED, &found);
        return;
    }
    rb_lane_complete(lane);
}

static void mark(struct rb_thread *self, uint32_t site, int kind)
{
    (void)self;
    (void)site;
    (void)kind;
}

/* ------------------------------------------------------------------------------------------------------------- calls
 */

/* While the real call lasts the state word says what it may be blocked at; the driver reads deadlocks off it. */
static void may_block(struct rb_thread *self, const struct rb_event *event)
{
    self->control->kind = event->kind;
    self->control->call = self->call;
    self->control->object = event->object;
    __atomic_store_n(&self->control->state, event->flags & RB_EVENT_TIMED ? RB_THREAD_TIMED : RB_THREAD_BLOCKED,
                     __ATOMIC_RELEASE);
}

static int blocks(int kind)
{
    switch (kind) {
    case RB_EVENT_KIND_JOIN:
    case RB_EVENT_KIND_MUTEX_LOCK:
    case RB_EVENT_KIND_COND_WAIT:
    case RB_EVENT_KIND_RW_RDLOCK:
    case RB_EVENT_KIND_RW_WRLOCK:
    case RB_EVENT_KIND_SPIN_LOCK:
    case RB_EVENT_KIND_SEM_WAIT:
    case RB_EVENT_KIND_BARRIER_WAIT:
    case RB_EVENT_KIND_ONCE:
        return 1;
    default:
        return 0;
    }
}

/* Does this begin a section that keeps other threads out? */
static int acquires(int kind)
{
    return kind == RB_EVENT_KIND_MUTEX_LOCK || kind == RB_EVENT_KIND_RW_RDLOCK || kind == RB_EVENT_KIND_RW_WRLOCK ||
           kind == RB_EVENT_KIND_SPIN_LOCK;
}

/* Does the outcome of this call hang on timing, so that a recorded failure is returned rather than tried for? */
static int tries(const struct rb_schedule_op *op)
{
    switch (op->kind) {
    case RB_EVENT_KIND_MUTEX_TRYLOCK:
    case RB_EVENT_KIND_RW_TRYRDLOCK:
    case RB_EVENT_KIND_RW_TRYWRLOCK:
    case RB_EVENT_KIND_SPIN_TRYLOCK:
    case RB_EVENT_KIND_SEM_TRYWAIT:
    case RB_EVENT_KIND_SEM_WAIT:
        return 1;
    case RB_EVENT_KIND_MUTEX_LOCK:
    case RB_EVENT_KIND_RW_RDLOCK:
    case RB_EVENT_KIND_RW_WRLOCK:
        return (op->flags & RB_EVENT_TIMED) != 0;
    default:
        return 0;
    }
}

/*
 * The thread has come to a call that is due to it, or to none: the operation (now the next one, with nothing left to
 * wait for), or NULL: the call is in no list and runs free.
 */
static const struct rb_schedule_op *claim(struct rb_thread *self, struct rb_lane *lane, int kind)
{
    uint32_t place = rb_lanes.header->by_place ? rb_gate(self->call) : 0;
    struct rb_key *key = &lane->keys[place ? place - 1 : rb_lanes.header->nsites + (uint32_t)kind];
    struct rb_found found = FROM_CALL(self, (uint32_t)kind, key->count++);
    const struct rb_schedule_op *op;
    uint32_t at;

    if (!key->next || lane->ops[key->next - 1].count != found.count) {
        if (ends_process(rb_lane_next(lane)->kind) && blocks(kind)) {
            rb_lane_await(self, lane, rb_lane_next(lane));
            rb_lanes_open(lane, RB_DIVERGED_MISSED, &found);
        } else if (rb_lanes.header->by_place && acquires(kind)) {
            rb_lane_await(self, lane, rb_lane_next(lane)); /* not held at a gate with a lock that others need first */
        }
        return NULL;
    }
    at = key->next - 1;
    op = &lane->ops[at];
    pass_over(lane, at);
    if (lane->done != at || op->kind != kind)
        rb_diverge(lane, RB_DIVERGED_CALL, &found, NULL);
    if (op->site && self->call != op->site)
        rb_diverge(lane, RB_DIVERGED_PLACE, &found, NULL);
    key->next = op->next;
    rb_lane_await(self, lane, op);
    return op;
}

static const struct rb_schedule_op *claim_leniently(struct rb_thread *self, struct rb_lane *lane, int kind)
{
    for (uint32_t at = lane->done; at < lane->nops && lenient(lane->ops[at].kind); at++) {
        const struct rb_schedule_op *op = &lane->ops[at];

        if (op->kind != kind || (op->site && op->site != self->call))
            continue;
        pass_over(lane, at);
        rb_lane_await(self, lane, op);
        return op;
    }
    return NULL;
}

/* At what never completed: when everyone else has got as far as they did, it is really tried. */
static void block_for_good(struct rb_thread *self, struct rb_lane *lane, const struct rb_event *event)
{
    rb_lane_settle(lane);
    lane->blocked = 1;
    may_block(self, event);
    rb_lanes_await_settled(self);
}

/*
 * A thread past its list is held, but not where a library may hold a lock of its own. The one that ended the recorded
 * run has missed its end when it waits for another thread instead: so that it need not wait for one that we hold.
 */
static void call_past_list(struct rb_thread *self, struct rb_lane *lane, int kind)
{
    struct rb_found found = FROM_CALL(self, (uint32_t)kind, 0);

    if (kind == RB_EVENT_KIND_MALLOC || kind == RB_EVENT_KIND_INPUT)
        return;
    if (lane && lane->index == rb_lanes.header->last && !blocks(kind))
        return;
    rb_lane_park(self, lane);
    if (lane && lane->index == rb_lanes.header->last)
        rb_lanes_open(lane, RB_DIVERGED_MISSED, &found);
}

static enum rb_decision call_begin(struct rb_thread *self, struct rb_call *call)
{
    struct rb_lane *lane = self->engine;
    int kind = call->event.kind;
    const struct rb_schedule_op *op;

    call->index = RB_SCHEDULE_NONE;
    if (lane && lane->counted) {
        lane->counted = 0;
    } else if (!unheld(lane)) {
        if (!lane || rb_lane_over(lane)) {
            call_past_list(self, lane, kind);
        } else if ((op = lenient(kind) ? claim_leniently(self, lane, kind) : claim(self, lane, kind))) {
            call->index = (uint32_t)(op - lane->ops);
            if (kind == RB_EVENT_KIND_INPUT || (tries(op) && op->value)) {
                call->event.value = (uint64_t)op->value;
                return RB_RETURN_VALUE;
            }
            if (op->part == RB_PART_BLOCKED)
                block_for_good(self, lane, &call->event);
            else if (op->part == RB_PART_BEGIN || (op->flags & RB_EVENT_RAN))
                rb_lane_complete(lane); /* the routine's own operations come before the call ends */
        }
    }
    if (blocks(kind))
        may_block(self, &call->event);
    return RB_CALL_REAL;
}

/* The second half of a call whose first half is complete; the operation, with nothing left to wait for. */
static const struct rb_schedule_op *claim_end(struct rb_thread *self, struct rb_lane *lane, int kind)
{
    const struct rb_schedule_op *op = rb_lane_next(lane);
    struct rb_found found = FROM_CALL(self, (uint32_t)kind, 0);

    if (op->kind != kind || op->part == RB_PART_WHOLE || op->part == RB_PART_BEGIN)
        rb_diverge(lane, RB_DIVERGED_CALL, &found, NULL);
    rb_lane_await(self, lane, op);
    return op;
}

static void call_end(struct rb_thread *self, struct rb_call *call)
{
    struct rb_lane *lane = self->engine;
    const struct rb_schedule_op *op;
    struct rb_found found;

    __atomic_store_n(&self->control->state, RB_THREAD_RUNNING, __ATOMIC_RELEASE);
    if (!lane || unheld(lane))
        return;
    found = (struct rb_found)FROM_CALL(self, call->event.kind, 0);
    if (lane->blocked) {
        rb_lanes_open(lane, RB_DIVERGED_UNBLOCKED, &found);
        return;
    }
    if (call->index == RB_SCHEDULE_NONE)
        return;
    op = &lane->ops[call->index];
    if (tries(op) && (int64_t)call->event.value != op->value)
        rb_diverge(lane, RB_DIVERGED_RESULT, &found, NULL);
    if (op->part == RB_PART_BEGIN) {
        pass_over(lane, lane->nops);
        if (rb_lane_over(lane))
            rb_lane_park(self, lane);
        else
            claim_end(self, lane, op->kind);
    } else if (op->flags & RB_EVENT_RAN && op->kind == RB_EVENT_KIND_ONCE) {
        return;
    }
    if (!unheld(lane))
        rb_lane_complete(lane);
}

/* ------------------------------------------------------------------------------------------------------------- waits
 */

static void release(const struct rb_event *event)
{
    if (event->kind == RB_EVENT_KIND_COND_WAIT)
        rb_state.real.pthread_mutex_unlock((pthread_mutex_t *)event->old);
}

static void acquire(const struct rb_event *event)
{
    if (event->kind == RB_EVENT_KIND_COND_WAIT)
        rb_state.real.pthread_mutex_lock((pthread_mutex_t *)event->old);
}

/*
 * Who waits on a condition or at a barrier is woken by the schedule: no real wait, so that no wake-up can go astray.
 * Only what was never woken waits in earnest in the end.
 */
static int wait(struct rb_thread *self, struct rb_call *call)
{
    struct rb_lane *lane = self->engine;
    struct rb_event *event = &call->event;
    const struct rb_schedule_op *op;

    if (!lane || unheld(lane) || rb_lane_over(lane))
        return 0; /* call_begin sees to it */
    lane->counted = 1;
    op = claim(self, lane, event->kind);
    if (!op)
        return 0;
    release(event);
    if (op->part == RB_PART_BEGIN) {
        rb_lane_complete(lane);
        if (rb_lane_over(lane)) {
            rb_lane_park(self, lane);
            acquire(event);
            return 0;
        }
        op = claim_end(self, lane, event->kind);
    }
    if (op->part == RB_PART_BLOCKED) {
        block_for_good(self, lane, event);
        acquire(event);
        return 0;
    }
    acquire(event);
    event->value = (uint64_t)op->value;
    rb_lane_complete(lane);
    lane->counted = 0;
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------- the end */

static void finish(struct rb_thread *self, const struct rb_event *event)
{
    struct rb_lane *lane = self->engine;
    struct rb_found found = FROM_CALL(self, event->kind, 0);

    if (unheld(lane))
        return;
    if (lane && lane->under_way && is_access(rb_lane_next(lane)->kind)) {
        if (event->kind == RB_EVENT_KIND_SIGNAL && rb_lane_next(lane)->part != RB_PART_BLOCKED)
            rb_diverge(lane, RB_DIVERGED_SIGNAL, &found, NULL); /* it was no fault in the recorded run */
        lane->under_way = 0;
        rb_lane_complete(lane);
    }
    if (lane)
        pass_over(lane, lane->nops);
    if (!lane || rb_lane_over(lane)) {
        rb_lane_park(self, lane);
        return;
    }
    if (!ends_process(rb_lane_next(lane)->kind)) {
        enum rb_divergence_reason reason = event->kind == RB_EVENT_KIND_SIGNAL ? RB_DIVERGED_SIGNAL : RB_DIVERGED_ENDED;

        rb_diverge(lane, reason, &found, NULL);
    }
    rb_lane_await(self, lane, rb_lane_next(lane));
    rb_lane_complete(lane);
    rb_lanes_await_settled(self); /* what the others did before the end is part of it */
    lane->free = 1;
}

const struct rb_engine rb_replay_engine = {
    .init = init,
    .wants_site = wants_site,
    .thread_start = thread_start,
    .thread_end = thread_end,
    .access_before = access_before,
    .access_after = access_after,
    .mark = mark,
    .call_begin = call_begin,
    .call_end = call_end,
    .wait = wait,
    .finish = finish,
};
