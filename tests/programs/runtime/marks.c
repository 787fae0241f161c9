/* Function, loop and call sites; one of the nops is no nop any more. */
#include <pthread.h>

#include "sites.h"

OBJECT(6);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Two copies of site 1, as code generation makes them when it duplicates a block. */
__attribute__((noinline)) static void function(int way)
{
    __asm__ volatile(SITE(0, FUNC_ENTRY, 0, 0, "")::: "memory", "cc");
    if (way)
        __asm__ volatile(SITE(1, LOOP_BACK, 0, 0, "")::: "memory", "cc");
    else
        __asm__ volatile(SITE(1, LOOP_BACK, 0, 0, "") "nop\n" ::: "memory", "cc");
    __asm__ volatile(SITE(2, CALL, 0, 0, "")::: "memory", "cc");
    pthread_mutex_lock(&mutex);
    __asm__ volatile(SITE(3, CALL, 0, 0, "")::: "memory", "cc");
    pthread_mutex_unlock(&mutex);
    __asm__ volatile(SITE(4, FUNC_EXIT, 0, 0, "")::: "memory", "cc");
}

/* A site on whose nop a debugger has set a breakpoint. */
__attribute__((noinline, used)) static void broken(void)
{
    __asm__ volatile(".pushsection recbulc_sites, \"a\", @progbits\n"
                     ".long 8f - .\n.long test_object - .\n.long 5\n.byte 1, 0, 0, 0\n.skip 20, 0\n"
                     ".popsection\n"
                     "jmp 9f\n"
                     "8: .byte 0xcc, 0x1f, 0x44, 0x00, 0x00\n"
                     "9:\n" ::
                         : "memory", "cc");
}

int main(void)
{
    function(0);
    function(1);
    broken();
    return test_pieces;
}
