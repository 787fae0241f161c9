/*
 * A probe site: five bytes of nop in the code and one record about it in the section `recbulc_sites`.
 *
 * `recbulc cc` writes both; the runtime turns the nops that a run wants into calls before main. A record is found by
 * nobody but the runtime and costs nothing while dormant. All links in it are relative to the field itself, so that a
 * record needs no relocation at run time.
 *
 * An object file numbers its sites from 0 (on the IR, before any probe is inserted, alike at all levels) and has one
 * rb_object in `recbulc_objects`. In a linked file the objects stand in the order of that section, and a site's number
 * there is the sum of `sites` of all earlier objects, plus its own number, plus 1: 0 is "no site". Further loaded
 * modules count on from there, in load order.
 */
#ifndef RB_SITE_H
#define RB_SITE_H

#include <stdint.h>

#define RB_SECTION_SITES   "recbulc_sites"
#define RB_SECTION_OBJECTS "recbulc_objects"
#define RB_SECTION_META    ".recbulc.meta" /* not loaded; see recorders/sitetable.py */

#define RB_NOP_BYTES  5 /* 0f 1f 44 00 00 */
#define RB_CODE_BYTES 20

/*
 * X(name, number). An access has a BEFORE site, whose code leaves the address in rdi, and an AFTER site, whose code
 * leaves the value read in rdi (READ), the value written in rdi (WRITE), or the value read in rdi and the value then in
 * memory in rsi (RMW). Pieces of wider accesses are accesses of their own. CALL stands before a call that leaves the
 * user's own code; it only notes where the thread is.
 */
#define RB_SITE_KINDS(X)                                                                                               \
    X(FUNC_ENTRY, 1)                                                                                                   \
    X(FUNC_EXIT, 2)                                                                                                    \
    X(LOOP_ENTRY, 3)                                                                                                   \
    X(LOOP_BACK, 4)                                                                                                    \
    X(LOOP_EXIT, 5)                                                                                                    \
    X(CALL, 6)                                                                                                         \
    X(BEFORE_READ, 8)                                                                                                  \
    X(BEFORE_WRITE, 9)                                                                                                 \
    X(BEFORE_RMW, 10)                                                                                                  \
    X(AFTER_READ, 12)                                                                                                  \
    X(AFTER_WRITE, 13)                                                                                                 \
    X(AFTER_RMW, 14)

enum rb_site_kind {
#define X(name, number) RB_SITE_##name = number,
    RB_SITE_KINDS(X)
#undef X
};

#define RB_SITE_ATOMIC 1 /* flag: an atomic access */

struct rb_site {
    int32_t nop;      /* the five bytes: address of this field + nop */
    int32_t object;   /* the rb_object: address of this field + object */
    uint32_t number;  /* of the site in its object; the BEFORE and AFTER of an access share it */
    uint8_t kind;     /* enum rb_site_kind */
    uint8_t size;     /* bytes accessed: 1, 2, 4 or 8; 0 for what is no access */
    uint8_t flags;    /* RB_SITE_ATOMIC */
    uint8_t code_len; /* of code: fetches the operands, as above; 0 where there are none */
    /*
     * Position-dependent only by a leading rip-relative `lea sym(%rip), %rdi` (REX 8d, mod 00, rm 101), which the
     * runtime re-bases. May use the stack below rsp (no red zone) but not address anything relative to rsp; leaves
     * everything else as it is but flags, which every site clobbers. Padded with anything.
     */
    uint8_t code[RB_CODE_BYTES];
};
_Static_assert(sizeof(struct rb_site) == 36, "rb_site is laid out by recorders/instrument");

struct rb_object {
    uint8_t id[12];  /* as in .recbulc.meta: joins the two */
    uint32_t sites;  /* how many it numbers */
    int32_t pieces;  /* 0, or a byte (this field's address + pieces) to set to 1 in runs that record or gate accesses */
    uint32_t unused; /* 0 */
};
_Static_assert(sizeof(struct rb_object) == 24, "rb_object is laid out by recorders/instrument");

#endif
