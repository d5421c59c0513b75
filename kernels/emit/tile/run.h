/* SPDX-License-Identifier: Apache-2.0 */
/* What running a step and running a product loop share. */
#ifndef EMIT_TILE_RUN_H
#define EMIT_TILE_RUN_H

#include "emit/tile/code.h"

static inline int64_t tile_read_int(const char *at, bool wide)
{
    return wide ? *(const int64_t *)at : *(const int32_t *)at;
}

static inline char *tile_memory(const struct tile_step *step, void *const *args, char *scratch)
{
    return step->in_tile ? scratch + step->base : args[step->base];
}

static inline size_t tile_lane_bytes(uint32_t type)
{
    return type == KIR_I64 || type == KIR_F64 ? 8 : 4;
}

/* Of an element in memory. */
static inline size_t tile_element_bytes(const struct tile_step *step)
{
    return step->bytes;
}

/* Loads of several rounds into registers that lie after each other, the mask included: elements lie
 * in lines that begin at `first`, or at `offsets` on from there, and `by` further each round. */
struct tile_rounds {
    size_t n;
    int64_t first, by;
    const void *offsets;
};

void tile_load_rounds(const struct tile_step *step, const struct tile_rounds *rounds,
                      void *const *args, char *scratch, char *out);

#endif
