/* SPDX-License-Identifier: Apache-2.0 */
/* The tile interpreter: runs a phase without compiling machine code.
 *
 * A phase is translated once into a list of steps.  A step is one precompiled loop over the lanes
 * of a group: its operands are arrays of lanes in scratch memory, contiguous, so that the compiler
 * made vector code of the loop, for each level of the machine.  Values that are equal in all lanes
 * are single elements, values that are linear in the lane are their first two; their loads and
 * stores are plain vector copies.  Scratch registers are used again as soon as a value is dead, so
 * that a group's data stays in the first cache.
 *
 * Code is immutable: any number of threads run it, each with scratch of its own. */
#ifndef EMIT_TILE_TILE_H
#define EMIT_TILE_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

#include "ir/kir.h"

/* Instruction sets that the loops were compiled for. */
enum tile_level { TILE_BASE, TILE_AVX2, TILE_AVX512, TILE_LEVELS };

enum { TILE_ALIGN = 64 }; /* of scratch */

struct tile_code;

/* The best level of this machine. */
enum tile_level tile_level_best(void);

/* Whether this machine has dot2; its steps run on any. */
bool tile_has_dot2(void);

/* Translates a phase of a verified module, which is not needed any more afterwards.  `level` is at
 * most tile_level_best(); all levels give the same bits.  FRIT_UNSUPPORTED: group too large. */
frit_status tile_compile(const struct kir_module *module, uint32_t phase, enum tile_level level,
                         struct tile_code **out, frit_err *err);
void tile_destroy(struct tile_code *code);

/* Whether sums of products, if there are many, are register tiles: as fast as machine code, about.
 */
bool tile_multiplies(const struct tile_code *code);

/* Bytes that each running thread needs, aligned to TILE_ALIGN; a group leaves nothing in them. */
size_t tile_scratch(const struct tile_code *code);

/* Runs one group: words by number of parameter, arguments by number, all of the module. */
void tile_run(const struct tile_code *code, const uint64_t *words, void *const *args,
              const uint32_t group[3], void *scratch);

/* Bytes that an argument has, counted from its element 0: first to before end. */
struct tile_bounds {
    int64_t first, end;
};

/* The same, by number of argument within its bounds alone: elsewhere loads give 0, and stores are
 * dropped.  Returns how many elements that were. */
uint64_t tile_run_within(const struct tile_code *code, const uint64_t *words, void *const *args,
                         const struct tile_bounds *bounds, const uint32_t group[3], void *scratch);

#endif
