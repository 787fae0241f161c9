/*
 * The end of the process by exit, _exit or main's return, as an event: EXIT.
 */
#ifndef RB_END_H
#define RB_END_H

#include "rb_runtime.h"

/*
 * main's return calls exit inside libc, where no hook is: it is seen by an on_exit function. This registers it, at most
 * twice: before main, for programs without threads, and at the first pthread_create, so that it runs before what the
 * program has registered until then.
 */
RB_HIDDEN void rb_end_register(void);

#endif
