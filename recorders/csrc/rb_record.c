/*
 * The recording engine: every event is appended to its thread's log with a stamp when it begins, and gets the second
 * stamp when it ends (ReCBuLC §3.1: an event is an interval of its core's clock, not a point).
 *
 * Prohibitions: reached from sites. No libc, no vector registers, no locks; system calls by rb_sys.h only.
 */
#include <limits.h>

#include "rb_log.h"
#include "rb_provoke.h"
#include "rb_site.h"

/* How far back an AFTER looks for its BEFORE: what signal handlers in between may have logged. */
#define LOOK_BACK 4096

static int init(void) { return 0; }

static int wants_site(uint32_t site, int kind)
{
    uint32_t level = rb_state.control->level;

    (void)site;
    switch (kind) {
    case RB_SITE_CALL:
        return 1;
    case RB_SITE_FUNC_ENTRY:
    case RB_SITE_FUNC_EXIT:
        return level == RB_LEVEL_FUNC || level == RB_LEVEL_FUNCLOOP;
    case RB_SITE_LOOP_ENTRY:
    case RB_SITE_LOOP_BACK:
    case RB_SITE_LOOP_EXIT:
        return level == RB_LEVEL_FUNCLOOP;
    default:
        return level == RB_LEVEL_RW;
    }
}

/* `before` goes in last: a record that has it is complete but for its end. */
static void begin(struct rb_thread *self, struct rb_event *event)
{
    uint64_t stamp;

    event->call = self->call;
    stamp = rb_stamp(self, &event->core);
    __atomic_store_n(&event->before, stamp, __ATOMIC_RELEASE);
}

static void end(struct rb_thread *self, struct rb_event *event) { event->after = rb_stamp(self, &event->core_after); }

/* An event that has no inside: one stamp for both ends. */
static struct rb_event *mark_event(struct rb_thread *self, int kind)
{
    struct rb_event *event = rb_log_append(self);

    event->kind = (uint8_t)kind;
    begin(self, event);
    event->after = event->before;
    event->core_after = event->core;
    return event;
}

static void thread_start(struct rb_thread *self)
{
    rb_log_init(self);
    rb_provoke_init(self);
    if (rb_state.control->start_us && self->number)
        rb_delay(self, rb_state.control->start_us);
    mark_event(self, RB_EVENT_KIND_THREAD_START)->value = self->control->parent;
}

static void thread_end(struct rb_thread *self)
{
    mark_event(self, RB_EVENT_KIND_THREAD_END);
    rb_log_deinit(self);
}

static void access_before(struct rb_thread *self, uint32_t site, int kind, int size, int flags, uint64_t address)
{
    struct rb_event *event;

    rb_provoke(self, rb_state.control->access_delay_ppm);
    event = rb_log_append(self);
    event->object = address;
    event->site = site;
    event->kind = (uint8_t)kind;
    event->size = (uint8_t)size;
    event->flags = (uint16_t)flags;
    self->open = event;
    begin(self, event);
}

/* The record that this AFTER ends: the last one begun, unless a signal handler has come between. */
static struct rb_event *opened(const struct rb_thread *self, uint32_t site)
{
    struct rb_event *event = self->open;

    if (!event || event->site == site)
        return event;
    if (event == &self->log.spill)
        return NULL;
    for (int back = 0; event >= self->log.first && back < LOOK_BACK; event--, back++)
        if (event->site == site && !event->after)
            return event;
    return NULL;
}

static void access_after(struct rb_thread *self, uint32_t site, int kind, int size, uint64_t value, uint64_t written)
{
    uint16_t core;
    uint64_t stamp = rb_stamp(self, &core);
    struct rb_event *event = opened(self, site);

    (void)size;
    if (!event || event->after)
        return;
    event->value = kind == RB_EVENT_KIND_RMW ? written : value;
    event->old = kind == RB_EVENT_KIND_RMW ? value : 0;
    event->core_after = core;
    event->after = stamp;
    rb_provoke(self, rb_state.control->access_delay_ppm); /* what follows need not be an access: a system call, say */
}

static void mark(struct rb_thread *self, uint32_t site, int kind) { mark_event(self, kind)->site = site; }

/* Does a call of this kind wait for other threads? */
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

/* Where a delay can change who comes first; allocations and inputs are not worth one. */
static int worth_a_delay(int kind) { return kind != RB_EVENT_KIND_MALLOC && kind != RB_EVENT_KIND_INPUT; }

static enum rb_decision call_begin(struct rb_thread *self, struct rb_call *call)
{
    struct rb_control_thread *control = self->control;
    struct rb_event *event;

    if (worth_a_delay(call->event.kind))
        rb_provoke(self, rb_state.control->sync_delay_ppm);
    event = rb_log_append(self);
    call->index = event == &self->log.spill ? UINT_MAX : (uint32_t)(event - self->log.first);
    event->object = call->event.object;
    event->value = call->event.value;
    event->old = call->event.old;
    event->kind = call->event.kind;
    event->flags = call->event.flags;
    if (blocks(call->event.kind)) {
        control->kind = call->event.kind;
        control->call = self->call;
        control->object = call->event.object;
        __atomic_store_n(&control->state, call->event.flags & RB_EVENT_TIMED ? RB_THREAD_TIMED : RB_THREAD_BLOCKED,
                         __ATOMIC_RELEASE);
    }
    begin(self, event);
    return RB_CALL_REAL;
}

static void call_end(struct rb_thread *self, struct rb_call *call)
{
    struct rb_event *event = call->index == UINT_MAX ? &self->log.spill : self->log.first + call->index;

    end(self, event);
    event->object = call->event.object;
    event->value = call->event.value;
    event->old = call->event.old;
    event->flags = call->event.flags;
    __atomic_store_n(&self->control->state, RB_THREAD_RUNNING, __ATOMIC_RELEASE);
}

static int wait(struct rb_thread *self, struct rb_call *call)
{
    (void)self;
    (void)call;
    return 0;
}

static void finish(struct rb_thread *self, const struct rb_event *event)
{
    struct rb_event *last = rb_log_append(self);

    last->object = event->object;
    last->value = event->value;
    last->kind = event->kind;
    begin(self, last);
    last->after = last->before;
    last->core_after = last->core;
}

const struct rb_engine rb_record_engine = {
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
