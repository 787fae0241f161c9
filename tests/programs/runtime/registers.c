/*
 * A site changes nothing but flags: all general and vector registers are filled, a site with a call in it is passed,
 * and they are compared. Many times over, so that the log has to grow in between; from two threads.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sites.h"

OBJECT(4);

struct image {
    uint64_t general[14];
    _Alignas(16) uint64_t vector[16][2];
};

#define GENERAL(X)                                                                                                     \
    X(rax, 0)                                                                                                          \
    X(rcx, 1)                                                                                                          \
    X(rdx, 2) X(rsi, 3) X(rdi, 4) X(r8, 5) X(r9, 6) X(r10, 7) X(r11, 8) X(r12, 9) X(r13, 10) X(r14, 11) X(rbx, 12)
#define VECTOR(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

/* r15 points to the image; filled from it, stored back into it. */
#define LOAD_GENERAL(name, n)  "movq 8*" #n "(%%r15), %%" #name "\n"
#define STORE_GENERAL(name, n) "movq %%" #name ", 8*" #n "(%%r15)\n"
#define LOAD_VECTOR(n)         "movdqa 112+16*" #n "(%%r15), %%xmm" #n "\n"
#define STORE_VECTOR(n)        "movdqa %%xmm" #n ", 112+16*" #n "(%%r15)\n"

static void pass(struct image *image)
{
    register struct image *at __asm__("r15") = image;

    __asm__ volatile(VECTOR(LOAD_VECTOR) GENERAL(
                         LOAD_GENERAL) "pushq %%rbp\n"
                                       "movq $0x7777, %%rbp\n" SITE(0, FUNC_ENTRY, 0, 0, "")
                                           SITE(1, BEFORE_WRITE, 8, 0, "leaq 64(%%r15,%%rcx,8), %%rdi")
                                               SITE(1, AFTER_WRITE, 8, 0, "movq %%rsi, %%rdi") SITE(2, CALL, 0, 0, "")
                                                   SITE(3, FUNC_EXIT, 0, 0, "") "cmpq $0x7777, %%rbp\n"
                                                                                "jne 8f\n"
                                                                                "popq %%rbp\n" GENERAL(STORE_GENERAL)
                                                                                    VECTOR(STORE_VECTOR) "jmp 9f\n"
                                                                                                         "8: ud2\n"
                                                                                                         "9:\n"
                     : "+r"(at)
                     :
                     : "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "rbx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

static void *worker(void *argument)
{
    struct image filled, found;

    (void)argument;
    memset(&filled, 0, sizeof(filled));
    for (int i = 0; i < 14; i++)
        filled.general[i] = 0x0123456789abcdefULL * (unsigned)(i + 3);
    for (int i = 0; i < 16; i++)
        filled.vector[i][0] = ~(filled.vector[i][1] = 0xfedcba9876543210ULL * (unsigned)(i + 1));
    for (int i = 0; i < 2000; i++) {
        found = filled;
        pass(&found);
        if (memcmp(&filled, &found, sizeof(filled)))
            return "changed";
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    void *other, *own;

    pthread_create(&thread, NULL, worker, NULL);
    own = worker(NULL);
    pthread_join(thread, &other);
    puts(own || other ? "changed" : "unchanged");
    return 0;
}
