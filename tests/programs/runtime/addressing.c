/* Accesses by every addressing mode; prints what the log must say: site, address, value, one access a line. */
#include <stdio.h>
#include <string.h>

#include "sites.h"

OBJECT(20);

static long cells[64];
static char arena[4096];

/* An 8-byte store through `operand`, which uses the given registers, and what it must be logged as. */
#define STORE(number, operand, base, index, value)                                                                     \
    do {                                                                                                               \
        uint64_t address_;                                                                                             \
        register uint64_t b_ __asm__(base) = (uint64_t)arena;                                                          \
        register uint64_t i_ __asm__(index) = 16;                                                                      \
        __asm__ volatile(SITE(number, BEFORE_WRITE, 8, 0, "leaq " operand ", %%rdi") "movq %[v], " operand "\n" SITE(  \
                             number, AFTER_WRITE, 8, 0, "movq %[v], %%rdi") "leaq " operand ", %[a]\n"                 \
                         : [a] "=r"(address_)                                                                          \
                         : [v] "r"((uint64_t)(value)), "r"(b_), "r"(i_)                                                \
                         : "memory", "cc");                                                                            \
        printf("%d %lx %lx\n", (number) + 1, address_, (uint64_t)(value));                                             \
    } while (0)

int main(void)
{
    long old, new = 5;
    char byte;

    STORE(0, "(%%rax)", "rax", "rcx", 0x1111111122222222);
    STORE(1, "(%%rdi)", "rdi", "rsi", 3);
    STORE(2, "8(%%rsi,%%rdi,4)", "rsi", "rdi", 4);
    STORE(3, "(%%r12)", "r12", "r13", 5);
    STORE(4, "(%%r13)", "r13", "r12", 6);
    STORE(5, "1000(%%r13,%%r12,8)", "r13", "r12", 7);
    STORE(6, "-8(%%rbx,%%r8,2)", "rbx", "r8", 8);
    STORE(7, "128(%%r10,%%r11,1)", "r10", "r11", 9);
    STORE(8, "arena+24(%%rip)", "rax", "rcx", 10);
    STORE(9, "cells+8(%%rip)", "r9", "r14", -1);

    __asm__ volatile(
        SITE(10, BEFORE_RMW, 8, 1, "leaq cells+16(%%rip), %%rdi") /* atomic, both values */
        "movq %[new], %[old]\n"
        "lock xaddq %[old], cells+16(%%rip)\n"
        "addq %[old], %[new]\n" SITE(10, AFTER_RMW, 8, 1, "pushq %[new]; pushq %[old]; popq %%rdi; popq %%rsi")
        : [old] "=&r"(old), [new] "+r"(new)
        :
        : "memory", "cc");
    printf("11 %lx %lx\n", (uint64_t)&cells[2], new);
    __asm__ volatile(SITE(11, BEFORE_READ, 1, 0, "leaq cells+8(%%rip), %%rdi") "movb cells+8(%%rip), %b[v]\n" SITE(
                         11, AFTER_READ, 1, 0, "movzbl %b[v], %%edi")
                     : [v] "=r"(byte)
                     :
                     : "memory", "cc");
    printf("12 %lx %x\n", (uint64_t)&cells[1], (uint8_t)byte);
    return test_pieces;
}
