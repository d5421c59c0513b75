/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's or a fuser's program, counted: shared by plans, bound plans, batches and compiles.
 *
 * `refs` are of those who may launch it; when the last one goes nobody wants it any more, which
 * cancels its compiles.  `holds` are of all refs together one, and of compiles that run; when the
 * last one goes the program is destroyed, by the device layer once nothing it launched is pending.
 * Threads: any. */
#ifndef PLAN_PROGRAM_H
#define PLAN_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <frit/fuser.h>

struct program;

/* What the device layer does with a program that it prepared. */
struct program_hooks {
    void (*abandon)(struct program *program); /* nobody wants it any more */
    void (*retire)(struct program *program);  /* takes it over, to destroy it in time */
};

/* In the place of a fuser's index. */
#define PROGRAM_OF_OP UINT32_MAX

struct program {
    atomic_uint refs;
    atomic_uint holds;
    atomic_bool disabled; /* it failed: its ops run by themselves from now on */
    uint32_t fuser;       /* index among the device's fusers; PROGRAM_OF_OP */
    frit_program program;
    _Atomic(void *) prepared; /* the device layer's; NULL: nothing */
    const struct program_hooks *_Atomic hooks;
};

/* Takes the program over; NULL without memory (then the caller still has it). */
struct program *program_create(const frit_program *program, uint32_t fuser);
struct program *program_ref(struct program *program);
void program_unref(struct program *program); /* NULL does nothing */
/* Keeps the program, but it counts as abandoned where nobody else has it. */
void program_hold(struct program *program);
void program_unhold(struct program *program);
/* Of a program that is retired. */
void program_destroy(struct program *program);

/* Whose `program` it is. */
static inline struct program *program_of(const frit_program *program)
{
    return (struct program *)(void *)((char *)(uintptr_t)program -
                                      offsetof(struct program, program));
}

/* Whether the device takes launches of a program with a whole table: the driver's own as they are,
 * others as the commands that they record. */
static inline bool program_runs(const frit_program *program, const frit_fuser_device *device)
{
    return device->same_plugin ||
           (FRIT_HAS(program->table, frit_program_table, record) && program->table->record);
}

#endif
