/*
 * Lanes: one per thread of the schedule, with the count of its completed operations, which others wait for.
 *
 * Only the lane's own thread advances it. Everything here may be called from sites.
 */
#ifndef RB_LANE_H
#define RB_LANE_H

#include "rb_replay.h"
#include "rb_runtime.h"

/* How often a thread has come by a site or made a call of a kind, and where the next such instance is in its list. */
struct rb_key {
    uint32_t count;
    uint32_t next; /* index of the operation, plus 1; 0: none */
};

#define RB_KEYS_OF_KINDS 256

struct rb_lane {
    _Alignas(64) uint32_t done; /* operations completed: also the index of the next one; a futex */
    uint32_t wake_at;           /* the least count that someone sleeps for; UINT32_MAX: nobody */
    uint32_t settled;           /* 1: its list is done, or stands at what never completed */
    uint16_t core;              /* where its thread is pinned */

    _Alignas(64) const struct rb_schedule_op *ops;
    uint32_t nops;
    uint32_t index;
    struct rb_key *keys; /* rb_schedule_op.key */
    uint32_t under_way;  /* site of the listed access that has begun; 0: none */
    uint32_t free;       /* 1: this thread is held no more */
    uint32_t counted;    /* 1: the wait that call_begin will see has been dealt with */
    uint32_t blocked;    /* 1: inside the call that never returned in the recorded run */
};

struct rb_lanes {
    const struct rb_schedule_header *header;
    const uint32_t *sites;
    const struct rb_schedule_thread *threads;
    const struct rb_schedule_op *ops;
    const struct rb_schedule_wait *waits;
    struct rb_lane *lanes;
    uint32_t *gates;   /* by global site number: its index in `sites`, plus 1; 0: not gated */
    uint32_t ngates;   /* of those numbers */
    uint32_t open;     /* 1: the schedule holds nobody any more */
    uint32_t diverged; /* 1: the first divergence has been written, or is just being */
    struct rb_lane *by_number[RB_CONTROL_THREADS];

    _Alignas(64) uint32_t unsettled; /* lanes; a futex */
    uint32_t active;                 /* lanes whose thread is there, and not settled */
};

extern RB_HIDDEN struct rb_lanes rb_lanes;

/* Maps the compiled schedule; 0 or an errno. */
RB_HIDDEN int rb_lanes_init(const char *path);
/* The lane of a thread that starts, or NULL: the schedule does not know it. */
RB_HIDDEN struct rb_lane *rb_lane_find(const struct rb_thread *self);

/* The gate of a site, plus 1; 0: it has none. */
static inline uint32_t rb_gate(uint32_t site) { return site < rb_lanes.ngates ? rb_lanes.gates[site] : 0; }

static inline const struct rb_schedule_op *rb_lane_next(const struct rb_lane *lane) { return &lane->ops[lane->done]; }

static inline int rb_lane_over(const struct rb_lane *lane) { return lane->done == lane->nops; }

/* Returns when all that `op` waits for is complete (or the schedule holds nobody any more). */
RB_HIDDEN void rb_lane_await(struct rb_thread *self, struct rb_lane *lane, const struct rb_schedule_op *op);
/* The next operation is complete. */
RB_HIDDEN void rb_lane_complete(struct rb_lane *lane);
/* The lane will not advance any more. */
RB_HIDDEN void rb_lane_settle(struct rb_lane *lane);
/* Returns when every list is settled. */
RB_HIDDEN void rb_lanes_await_settled(struct rb_thread *self);
/* Holds a thread past the end of its list (NULL: it never had one), as long as it is to be held. */
RB_HIDDEN void rb_lane_park(struct rb_thread *self, struct rb_lane *lane);

/* What a thread did instead of what its list says. */
struct rb_found {
    uint32_t kind;
    uint32_t site;
    uint32_t count;
    uint32_t call;
};

/* The run has left its schedule: says so in the control page, once, and ends the process. */
RB_HIDDEN __attribute__((noreturn)) void rb_diverge(const struct rb_lane *lane, enum rb_divergence_reason reason,
                                                    const struct rb_found *found,
                                                    const struct rb_schedule_wait *awaited);
/* The schedule was followed, but the recorded end did not come: says so, once, and holds nobody any more. */
RB_HIDDEN void rb_lanes_open(const struct rb_lane *lane, enum rb_divergence_reason reason,
                             const struct rb_found *found);

#endif
