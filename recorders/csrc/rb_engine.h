/*
 * The seam between what intercepts a program (sites and hooked calls: rb_probe.c, rb_hooks.c) and what is done about it
 * (recording: rb_record.c; enforcing a schedule: replay/csrc/rb_replay.c). One engine is chosen before main.
 *
 * All functions are called on the thread concerned, never re-entered on it (`rb_self()->inside` guards that), with
 * the general registers saved and, from sites, without leave to touch vector registers: no libc but raw system calls.
 */
#ifndef RB_ENGINE_H
#define RB_ENGINE_H

#include <stdint.h>

#include "rb_event.h"

struct rb_thread; /* rb_runtime.h */

enum rb_decision {
    RB_CALL_REAL,   /* make the real call, then `end` with its result */
    RB_RETURN_VALUE /* make no call: rb_call.event.value is the result; `end` all the same */
};

/* A hooked call under way. The hook fills in kind, object, value and old as RB_EVENT_KINDS says. */
struct rb_call {
    struct rb_event event;
    uint32_t index; /* of the engine's own: the record in the log, or the position in the schedule */
};

struct rb_engine {
    /* Once, before main and before any site is patched. Returns 0, or an errno that ends the program with a message. */
    int (*init)(void);
    /* Does this run want this site patched? `site` is the global number. */
    int (*wants_site)(uint32_t site, int kind);
    /* A thread's first and last words; `thread_start` runs on the new thread before the program's start routine. */
    void (*thread_start)(struct rb_thread *self);
    void (*thread_end)(struct rb_thread *self);

    /* An access: `before` with its address, `after` with its value(s); kind is READ, WRITE or RMW. */
    void (*access_before)(struct rb_thread *self, uint32_t site, int kind, int size, int flags, uint64_t address);
    void (*access_after)(struct rb_thread *self, uint32_t site, int kind, int size, uint64_t value, uint64_t written);
    /* A function or loop site; kind is an event kind. */
    void (*mark)(struct rb_thread *self, uint32_t site, int kind);

    /* A hooked call. */
    enum rb_decision (*call_begin)(struct rb_thread *self, struct rb_call *call);
    void (*call_end)(struct rb_thread *self, struct rb_call *call);
    /*
     * A wait on a condition or barrier, which an engine may carry out itself: returns 1 when it did (value is the
     * result, the mutex is held again), 0 when the hook is to make the real call between call_begin and call_end.
     */
    int (*wait)(struct rb_thread *self, struct rb_call *call);
    /* The process ends: EXIT or SIGNAL, as an event; does not return from a replay that holds this thread back. */
    void (*finish)(struct rb_thread *self, const struct rb_event *event);
};

extern const struct rb_engine rb_record_engine; /* recorders/csrc/rb_record.c */
extern const struct rb_engine rb_replay_engine; /* replay/csrc/rb_replay.c */

#endif
