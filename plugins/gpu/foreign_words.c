/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/foreign_words.h"

#include <string.h>

#include "gpu/command.h"
#include "gpu/memory.h"

/* Number of words of frit_launch_spec.driver. */
enum { DRIVER_WORDS = sizeof((frit_launch_spec *)0)->driver / sizeof(uint64_t) };

uint64_t foreign_words_count(const frit_launch *launch)
{
    uint64_t n = DRIVER_WORDS + 1 + launch->n_args + 2 * (uint64_t)launch->n_derived +
                 launch->n_scalars + launch->n_bounds;

    for (uint32_t i = 0; i < launch->n_args; i++)
        n += 2 * (uint64_t)frit_arg_at(launch, i)->rank;
    return n;
}

static uint64_t address_in(const frit_memory *memory, uint64_t offset)
{
    return memory ? memory->address + offset : 0;
}

/* Writes addresses, then dims and strides; returns the position after them. */
static uint64_t *write_args(uint64_t *to, const frit_launch *launch)
{
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);

        *to++ = address_in(arg->memory, arg->offset + arg->origin);
    }
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);

        memcpy(to, arg->dims, arg->rank * sizeof *to);
        memcpy(to + arg->rank, arg->strides, arg->rank * sizeof *to);
        to += 2 * (size_t)arg->rank;
    }
    return to;
}

void foreign_words_write(uint64_t *to, const frit_launch *launch)
{
    memcpy(to, launch->spec->driver, sizeof launch->spec->driver);
    to += DRIVER_WORDS;
    *to++ = address_in(launch->workspace, launch->workspace_offset);
    to = write_args(to, launch);
    for (uint32_t i = 0; i < launch->n_derived; i++) {
        *to++ = address_in(launch->derived[i].memory, launch->derived[i].offset);
        *to++ = launch->derived[i].fill;
    }
    for (uint32_t i = 0; i < launch->n_scalars; i++)
        *to++ = launch->scalars[i].bits;
    if (launch->n_bounds)
        memcpy(to, launch->bounds, launch->n_bounds * sizeof *to);
}
