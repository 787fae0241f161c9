/*
 * The end of the process by a fatal signal is an event: SIGNAL, with the faulting address.
 *
 * Only where the program leaves the signal's default: it may install handlers of its own over ours. Ours runs on an
 * alternate stack (a stack that overflowed is no place), tells the engine, restores the default and lets the signal
 * happen again, so that exit status and core file are the plain program's.
 */
#ifndef RB_SIGNALS_H
#define RB_SIGNALS_H

#include "rb_runtime.h"

#define RB_SIGNAL_STACK_BYTES 65536

/* Once, before main. */
RB_HIDDEN void rb_signals_init(void);
RB_HIDDEN void rb_signals_stack_init(struct rb_thread *self);
RB_HIDDEN void rb_signals_stack_deinit(struct rb_thread *self);

#endif
