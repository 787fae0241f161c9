/*
 * Prohibitions: runs in the constructor, before main; writes into the program's code. No malloc, no stdio.
 */
#include "rb_patch.h"

#include <errno.h>
#include <string.h>

#include "rb_trampoline.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE            4096UL
#define REACH           (1UL << 31) /* of a call */
#define THUNK_MAX       64          /* 2 pushes, code, push, movl, jmp */
#define BEHIND_THE_HEAP (1UL << 30) /* above the program its heap grows: stay away */
#define SEARCH_STEP     (1UL << 20)

static const uint8_t nop[RB_NOP_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

/* Memory for thunks; its first word is the trampoline's address. */
struct thunks {
    uint8_t *start;
    uint8_t *next;
    size_t bytes;
};

static uint8_t *nop_of(const struct rb_site *site) { return (uint8_t *)&site->nop + site->nop; }

static int map_at(struct thunks *thunks, uintptr_t address)
{
    void *mapped = rb_sys_mmap((void *)address, thunks->bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (rb_sys_failed(mapped))
        return 0;
    if ((uintptr_t)mapped != address) { /* a kernel that does not know the flag */
        rb_sys_munmap(mapped, thunks->bytes);
        return 0;
    }
    thunks->start = mapped;
    return 1;
}

/* Every site and thunk of the module within reach of each other: below it, or above and behind the heap. */
static int map_thunks(struct thunks *thunks, const struct rb_module *module)
{
    uintptr_t low = module->low & ~(PAGE - 1), high = (module->high + PAGE - 1) & ~(PAGE - 1);
    uintptr_t lowest = high > REACH - PAGE ? high - (REACH - PAGE) : PAGE * 16;

    if (lowest < PAGE * 16)
        lowest = PAGE * 16;
    for (uintptr_t at = low - thunks->bytes; at >= lowest && at < low; at -= SEARCH_STEP)
        if (map_at(thunks, at))
            return 1;
    for (uintptr_t at = high + BEHIND_THE_HEAP; at + thunks->bytes < low + REACH - PAGE; at += SEARCH_STEP)
        if (map_at(thunks, at))
            return 1;
    return 0;
}

static void put(struct thunks *thunks, const void *bytes, size_t count)
{
    memcpy(thunks->next, bytes, count);
    thunks->next += count;
}

static void put32(struct thunks *thunks, uint32_t value) { put(thunks, &value, sizeof(value)); }

#define PUT(thunks, ...) put(thunks, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Is the site's code one that begins with lea disp32(%rip), a 64-bit register? */
static int is_rip_relative(const struct rb_site *site)
{
    return site->code_len >= 7 && (site->code[0] & 0xf8) == 0x48 && site->code[1] == 0x8d &&
           (site->code[2] & 0xc7) == 0x05;
}

/* The operand code, its address re-based to where it now stands. */
static int put_code(struct thunks *thunks, const struct rb_site *site)
{
    int32_t displacement;
    int64_t rebased;

    if (is_rip_relative(site)) {
        memcpy(&displacement, site->code + 3, sizeof(displacement));
        rebased = (intptr_t)site->code - (intptr_t)thunks->next + displacement;
        if (rebased != (int32_t)rebased)
            return ERANGE;
        put(thunks, site->code, 3);
        put32(thunks, (uint32_t)rebased);
        put(thunks, site->code + 7, site->code_len - 7u);
        return 0;
    }
    put(thunks, site->code, site->code_len);
    return 0;
}

/* A CALL site only notes where the thread is: movl $number, %fs:call; ret. */
static void put_note(struct thunks *thunks, uint32_t number)
{
    PUT(thunks, 0x64, 0xc7, 0x04, 0x25);
    put32(thunks, (uint32_t)((intptr_t)&rb_self()->call - (intptr_t)__builtin_thread_pointer()));
    put32(thunks, number);
    PUT(thunks, 0xc3);
}

/* The thunk of a site: 0, or an errno with nothing written. */
static int put_thunk(struct thunks *thunks, const struct rb_site *site, uint32_t number)
{
    uint8_t *from = thunks->next;

    if (site->kind == RB_SITE_CALL) {
        put_note(thunks, number);
        return 0;
    }
    PUT(thunks, 0x57, 0x56); /* push %rdi; push %rsi */
    if (site->code_len > RB_CODE_BYTES || put_code(thunks, site)) {
        thunks->next = from;
        return ERANGE;
    }
    PUT(thunks, 0x68); /* push $number */
    put32(thunks, number);
    PUT(thunks, 0xc7, 0x44, 0x24, 0x04); /* movl $what, 4(%rsp) */
    put32(thunks, RB_WHAT(site->kind, site->size, site->flags));
    PUT(thunks, 0xff, 0x25); /* jmp *start */
    put32(thunks, (uint32_t)(thunks->start - (thunks->next + 4)));
    return 0;
}

static int patch_site(struct thunks *thunks, const struct rb_site *site, uint32_t number)
{
    uint8_t *place = nop_of(site), *thunk = thunks->next;
    uint8_t call[RB_NOP_BYTES] = {0xe8};
    int32_t distance = (int32_t)(thunk - (place + RB_NOP_BYTES));

    if (memcmp(place, nop, sizeof(nop)))
        return EBUSY;
    if (put_thunk(thunks, site, number))
        return ERANGE;
    memcpy(call + 1, &distance, sizeof(distance));
    memcpy(place, call, sizeof(call));
    return 0;
}

/* The site's number, or 0 where its record makes no sense. */
static uint32_t number_of(const struct rb_module *module, const uint32_t *first, const struct rb_site *site)
{
    const struct rb_object *object = (const void *)((const char *)&site->object + site->object);
    size_t index = (size_t)(object - module->objects);

    if (object < module->objects || index >= module->nobjects || site->number >= object->sites)
        return 0;
    return first[index] + site->number;
}

static int wanted(const struct rb_site *site, uint32_t number)
{
    return number && rb_state.engine->wants_site(number, site->kind);
}

void rb_patch_module(const struct rb_module *module, const uint32_t *first)
{
    struct rb_control *control = rb_state.control;
    void *code = (void *)(module->code_low & ~(PAGE - 1));
    size_t code_bytes = ((module->code_high + PAGE - 1) & ~(PAGE - 1)) - (uintptr_t)code;
    uint64_t trampoline = (uint64_t)rb_trampoline;
    struct thunks thunks = {0};
    uint32_t count = 0, number;

    for (size_t i = 0; i < module->nsites; i++)
        count += (uint32_t)wanted(&module->sites[i], number_of(module, first, &module->sites[i]));
    if (!count)
        return;
    thunks.bytes = (sizeof(trampoline) + count * THUNK_MAX + PAGE - 1) & ~(PAGE - 1);
    /* a library's constructor may have started a thread that runs this code: let it, where the system allows both */
    if (!map_thunks(&thunks, module) || (rb_sys_mprotect(code, code_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) &&
                                         rb_sys_mprotect(code, code_bytes, PROT_READ | PROT_WRITE))) {
        control->sites_unpatched += count;
        return;
    }
    thunks.next = thunks.start;
    put(&thunks, &trampoline, sizeof(trampoline));
    for (size_t i = 0; i < module->nsites; i++) {
        number = number_of(module, first, &module->sites[i]);
        if (!wanted(&module->sites[i], number))
            continue;
        if (patch_site(&thunks, &module->sites[i], number))
            control->sites_unpatched++;
        else
            control->sites_patched++;
    }
    if (rb_sys_mprotect(thunks.start, thunks.bytes, PROT_READ | PROT_EXEC) ||
        rb_sys_mprotect(code, code_bytes, PROT_READ | PROT_EXEC))
        rb_die("this system does not let patched code run", EACCES);
}
