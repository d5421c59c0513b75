/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a driver or a fuser, shared by plans, bound plans, batches and compilations.
 *
 * There are two counters.  `refs` counts users that may launch it; when it reaches 0 the program's
 * compilations are cancelled.  `holds` counts running compilations, plus one for all refs; when it
 * reaches 0 the device layer destroys the program once its pending launches are done.  Thread-safe.
 */
#ifndef PLAN_PROGRAM_H
#define PLAN_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <frit/fuser.h>

struct program;

/* Callbacks of the device layer for a program that it prepared. */
struct program_hooks {
    void (*abandon)(struct program *program); /* called when refs reaches 0 */
    void (*retire)(struct program *program);  /* called when holds reaches 0; takes the program */
};

/* Value of `fuser` for a driver's program. */
#define PROGRAM_OF_OP UINT32_MAX

struct program {
    atomic_uint refs;
    atomic_uint holds;
    atomic_bool disabled; /* it failed: its ops are run singly from now on */
    uint32_t fuser;       /* index among the device's fusers, or PROGRAM_OF_OP */
    frit_program program;
    _Atomic(void *) prepared;        /* data of the device layer, or NULL */
    _Atomic(unsigned char *) digest; /* of its ops, see tune/key.h; owned; NULL: not computed */
    const struct program_hooks *_Atomic hooks;
};

/* Takes the program; returns NULL if out of memory, and then the caller keeps it. */
struct program *program_create(const frit_program *program, uint32_t fuser);
struct program *program_ref(struct program *program);
void program_unref(struct program *program); /* NULL does nothing */
/* Keeps the program from being destroyed, but not from being abandoned. */
void program_hold(struct program *program);
void program_unhold(struct program *program);
/* Destroys a retired program. */
void program_destroy(struct program *program);

/* The struct that contains `program`. */
static inline struct program *program_of(const frit_program *program)
{
    return (struct program *)(void *)((char *)(uintptr_t)program -
                                      offsetof(struct program, program));
}

/* Whether the device can launch the program: programs of the driver's plugin directly, others by
 * the commands that they record. */
static inline bool program_runs(const frit_program *program, const frit_fuser_device *device)
{
    return device->same_plugin ||
           (FRIT_HAS(program->table, frit_program_table, record) && program->table->record);
}

#endif
