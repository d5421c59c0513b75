/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/program.h"

#include <stdlib.h>

struct program *program_create(const frit_program *program, uint32_t fuser)
{
    struct program *shared = calloc(1, sizeof(*shared));

    if (!shared)
        return NULL;
    atomic_init(&shared->refs, 1);
    atomic_init(&shared->holds, 1);
    shared->fuser = fuser;
    shared->program = *program;
    return shared;
}

struct program *program_ref(struct program *program)
{
    atomic_fetch_add_explicit(&program->refs, 1, memory_order_relaxed);
    return program;
}

void program_hold(struct program *program)
{
    atomic_fetch_add_explicit(&program->holds, 1, memory_order_relaxed);
}

void program_destroy(struct program *program)
{
    program->program.table->destroy(program->program.self);
    free(program->digest);
    free(program);
}

void program_unhold(struct program *program)
{
    if (atomic_fetch_sub_explicit(&program->holds, 1, memory_order_acq_rel) != 1)
        return;
    if (program->prepared)
        program->hooks->retire(program);
    else
        program_destroy(program);
}

void program_unref(struct program *program)
{
    if (!program || atomic_fetch_sub_explicit(&program->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (program->prepared)
        program->hooks->abandon(program);
    program_unhold(program);
}
