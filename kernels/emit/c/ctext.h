/* SPDX-License-Identifier: Apache-2.0 */
/* C-like text of a module, for compilers of devices at run time: NVRTC (CUDA C++) and HIPRTC
 * (HIP C++).  It needs no header.
 *
 * The text is in two parts.  The first are the words: types, macros and functions that differ
 * between dialects.  The second, after CTEXT_END_OF_WORDS, is the same for each of them, and
 * written so that with other words, those of ctext_host_words, it is C in which one call does a
 * whole group: every region between two of the group's ops becomes a loop over threads (loop
 * fission), and values that live longer are arrays.
 *
 * Kernels are named k_0, k_1, ... by their phase, and have one parameter, a struct of 64-bit words:
 *
 *    word 0   two uint32_t: added to the block's number in y and in z, so that grids beyond the
 *             device's limit are several launches
 *    then     where `by_value`: the device addresses of element 0 of each argument, then the
 *             module's parameter words; else one word, the device address of a block of these
 *
 * Of a module with `spaces` each space has such a block, and these follow word 0:
 *
 *    CTEXT_RECORDS  device address of the blocks, one after the other
 *    CTEXT_FIRST    of a uint32_t for each space, and one more: the groups before it
 *    CTEXT_TABLE    of a uint32_t for each 2^shift groups: the space of the first of them
 *    CTEXT_SHIFT    that shift
 *
 * A block of the launch is a group of the grid: `threads` x 1 x 1, with `shared_bytes` of dynamic
 * shared memory.  The compiler is called with contraction off (-fmad=false, -ffp-contract=off) and
 * with its defaults for division, square root and denormals: rounded correctly, and kept.  NVRTC is
 * faster with --minimal, which 12.9 and 13.5 have.  Pure; any thread. */
#ifndef EMIT_C_CTEXT_H
#define EMIT_C_CTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "base/str.h"

#include "ir/kir.h"

/* A line of its own. */
#define CTEXT_END_OF_WORDS "/* ---- end of words ---- */\n"

enum ctext_dialect { CTEXT_CUDA, CTEXT_HIP };

enum { CTEXT_RECORDS = 1, CTEXT_FIRST, CTEXT_TABLE, CTEXT_SHIFT, CTEXT_SPACE_WORDS };

struct ctext_target {
    enum ctext_dialect dialect;
    uint32_t max_threads;  /* of a block, a power of two */
    uint32_t warp;         /* threads that exchange registers: 32 or 64 */
    uint32_t shared_bytes; /* of a block */
    uint32_t value_bytes;  /* of a kernel's parameters */
};

struct ctext_phase {
    uint32_t threads, shared_bytes;
};

struct ctext_kernels {
    bool by_value;       /* never with `spaces` */
    bool same_unaligned; /* the text without `aligned` would be the same */
};

/* Appends the text of a verified module and fills phases[0 .. n_phases).  `aligned`: the address of
 * every argument is a multiple of 16.  FRIT_UNSUPPORTED: a phase needs more shared memory than
 * there is.  After a failure *out has some of the text. */
frit_status ctext_emit_gpu(const struct kir_module *module, const struct ctext_target *target,
                           bool aligned, struct str *out, struct ctext_phase *phases,
                           struct ctext_kernels *kernels, frit_err *err);

/* What a text is of. */
struct ctext_source {
    const struct kir_module *module;
    const struct ctext_target *target;
    bool aligned;
    uint32_t first, n; /* phases */
};

/* The same with some of the phases, of which it sets phases[first .. first + n). */
frit_status ctext_emit_phases(const struct ctext_source *source, struct str *out,
                              struct ctext_phase *phases, struct ctext_kernels *kernels,
                              frit_err *err);

/* Appends the words, with CTEXT_END_OF_WORDS, that make C17 (as of gcc and clang) of the second
 * part of any text.  The kernel of a phase is then
 *
 *     void k_0(const u64 *params, const u32 *group, void *shared)
 *
 * which runs the block with the number `group`, of three coordinates; `params` are the words of the
 * launch, `shared` the shared memory, aligned to 16.  Memory of the host takes the place of the
 * device's.  out->failed: there was no memory. */
void ctext_host_words(struct str *out);

#endif
