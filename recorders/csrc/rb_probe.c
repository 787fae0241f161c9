/*
 * What a patched site calls.
 *
 * Prohibitions: reached from sites. No libc, no vector registers, no locks; system calls by rb_sys.h only.
 */
#include "rb_site.h"
#include "rb_trampoline.h"

void rb_probe(uint64_t first, uint64_t second, uint32_t site, uint32_t what)
{
    struct rb_thread *self = rb_enter();
    const struct rb_engine *engine = rb_state.engine;
    int size = RB_WHAT_SIZE(what), flags = RB_WHAT_FLAGS(what) & RB_SITE_ATOMIC ? RB_EVENT_ATOMIC : 0;

    if (!self)
        return;
    switch (RB_WHAT_KIND(what)) {
    case RB_SITE_BEFORE_READ:
        engine->access_before(self, site, RB_EVENT_KIND_READ, size, flags, first);
        break;
    case RB_SITE_BEFORE_WRITE:
        engine->access_before(self, site, RB_EVENT_KIND_WRITE, size, flags, first);
        break;
    case RB_SITE_BEFORE_RMW:
        engine->access_before(self, site, RB_EVENT_KIND_RMW, size, flags, first);
        break;
    case RB_SITE_AFTER_READ:
        engine->access_after(self, site, RB_EVENT_KIND_READ, size, first, 0);
        break;
    case RB_SITE_AFTER_WRITE:
        engine->access_after(self, site, RB_EVENT_KIND_WRITE, size, first, 0);
        break;
    case RB_SITE_AFTER_RMW:
        engine->access_after(self, site, RB_EVENT_KIND_RMW, size, first, second);
        break;
    case RB_SITE_FUNC_ENTRY:
        engine->mark(self, site, RB_EVENT_KIND_FUNC_ENTRY);
        break;
    case RB_SITE_FUNC_EXIT:
        engine->mark(self, site, RB_EVENT_KIND_FUNC_EXIT);
        break;
    case RB_SITE_LOOP_ENTRY:
        engine->mark(self, site, RB_EVENT_KIND_LOOP_ENTRY);
        break;
    case RB_SITE_LOOP_BACK:
        engine->mark(self, site, RB_EVENT_KIND_LOOP_BACK);
        break;
    case RB_SITE_LOOP_EXIT:
        engine->mark(self, site, RB_EVENT_KIND_LOOP_EXIT);
        break;
    }
    rb_leave(self);
}
