/* SPDX-License-Identifier: Apache-2.0 */
/* How the lanes of a phase become threads of a device, and where neighbouring lanes of a thread
 * make one access.  A thread has `per_thread` lanes: where `striped`, lane j of thread t is
 * j * threads + t, else t * per_thread + j.  For every emitter whose target has threads. */
#ifndef EMIT_SHAPE_H
#define EMIT_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "base/arena.h"

#include "ir/facts.h"

struct shape_target {
    uint32_t max_threads;   /* of a group */
    uint32_t least_threads; /* a thread gets several lanes only if this many threads are left */
    bool aligned;           /* the address of every argument is a multiple of 16 */
    uint32_t team;          /* threads that hold a fragment together */
};

struct shape {
    uint32_t threads, per_thread;
    bool striped;
    bool aligned;
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct facts *facts; /* borrowed */
    uint32_t *even;            /* per instruction: a power of two that divides it in lane 0 */
};

/* `facts` are those of the phase; arrays are taken from the arena. */
frit_status shape_init(struct shape *out, const struct kir_module *module, uint32_t phase,
                       const struct facts *facts, const struct shape_target *target,
                       struct arena *arena, frit_err *err);
/* How many neighbouring elements one access of a thread has, for an argument, or a tile of the
 * group, at this offset. */
uint32_t shape_chunk(const struct shape *shape, uint32_t arg, uint32_t offset);
uint32_t shape_tile_chunk(const struct shape *shape, uint32_t tile, uint32_t offset);
/* How many neighbouring elements of a tile of the group this and other instructions next to it
 * load, each the same in all lanes of a thread, with one aligned access; *first: the instruction
 * that loads the first of them.  1: this one is by itself. */
uint32_t shape_tile_together(const struct shape *shape, uint32_t at, uint32_t *first);
/* How many lanes of a thread, from each multiple of it on, have one value. */
uint32_t shape_run(const struct shape *shape, uint32_t value);
/* Whether any access has several elements, or would have if arguments were aligned. */
bool shape_has_chunks(const struct shape *shape);

#endif
