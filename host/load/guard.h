/* SPDX-License-Identifier: Apache-2.0 */
/* Around calls of a plugin that may take long.  Afterwards the calling thread has the
 * floating-point modes and the signal mask, and the process the current folder, that it had before;
 * what a plugin changed is restored with a warning that names it. */
#ifndef LOAD_GUARD_H
#define LOAD_GUARD_H

#include <fenv.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct plugin;
struct suspect;

/* On the caller's stack; one thread. */
struct guard {
    const char *who, *slot;  /* the plugin, for people, and what is called */
    struct suspect *suspect; /* NULL: no process died in it */
    unsigned place;          /* of the breadcrumb */
    fenv_t floating_point;
    sigset_t mask;
    int folder; /* descriptor, -1: it is not looked at */
};

/* Around load, entry, open, enumerate, device_open and close.  `slot` outlives the call. */
void guard_enter(struct guard *guard, const struct plugin *plugin, const char *slot);
/* Around what runs beside other calls, such as compiles: the folder is not looked at, which another
 * thread of the program may change, and nobody is blamed for a death.  Texts outlive the call. */
void guard_enter_beside(struct guard *guard, const char *who, const char *slot);
void guard_leave(struct guard *guard);

/* Rounding, denormals, masks of exceptions: not the flags that computing sets. */
uint64_t guard_modes_of(const fenv_t *floating_point);
/* Of the signals that programs use. */
bool guard_same_masks(const sigset_t *a, const sigset_t *b);

#endif
