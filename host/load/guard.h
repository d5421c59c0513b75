/* SPDX-License-Identifier: Apache-2.0 */
/* Around calls of a plugin that may take long: load, open, enumerate, close.  Afterwards the
 * calling thread has the floating-point modes and the signal mask, and the process the current
 * folder, that it had before; what a plugin changed is restored with a warning that names it. */
#ifndef LOAD_GUARD_H
#define LOAD_GUARD_H

#include <fenv.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* On the caller's stack; one thread. */
struct guard {
    const char *path, *slot; /* the plugin's file, and what is called */
    fenv_t floating_point;
    sigset_t mask;
    int folder; /* descriptor, -1: it could not be opened */
};

/* Both texts outlive the call. */
void guard_enter(struct guard *guard, const char *path, const char *slot);
void guard_leave(struct guard *guard);

/* Rounding, denormals, masks of exceptions: not the flags that computing sets. */
uint64_t guard_modes_of(const fenv_t *floating_point);
/* Of the signals that programs use. */
bool guard_same_masks(const sigset_t *a, const sigset_t *b);

#endif
