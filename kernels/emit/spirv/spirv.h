/* SPDX-License-Identifier: Apache-2.0 */
/* One phase of a module as SPIR-V 1.5 words for Vulkan 1.2, with no library.
 *
 * The shader's entry point is "main"; there are no descriptors.  What a launch gives it is one
 * block of 64-bit words: the device address of element 0 of each argument, in order, then the
 * module's parameter words.  Push constants:
 *
 *    offset 0   uint32_t base[3]   added to the workgroup's number: grids beyond the device's limit
 *                                  are several dispatches
 *          12   uint32_t 0         which is read: zeros that a compiler must not see come from here
 *          16   the block itself, where `block_is_pushed`; else its device address, a multiple
 * of 16. If the target has `split_block` too: that address, then the parameters
 *
 * Of a module with `spaces` each space has such a block.  Then these are at offset 16, as words:
 *
 *    SPIRV_RECORDS  device address of the blocks, one after the other
 *    SPIRV_FIRST    of a uint32_t for each space, and one more: the groups before it
 *    SPIRV_TABLE    of a uint32_t for each 2^shift groups: the space of the first of them
 *    SPIRV_SHIFT    that shift
 *
 * A workgroup is a group of the grid; `threads` x 1 x 1 of its invocations have `per_thread` lanes.
 * Wanted of every device: shaderInt64, bufferDeviceAddress.  Floats are not contracted; NaNs,
 * signed zeros, denormals and rounding to nearest are requested where the target has them.
 * Threads: any. */
#ifndef EMIT_SPIRV_SPIRV_H
#define EMIT_SPIRV_SPIRV_H

#include <frit/status.h>

#include "ir/kir.h"

enum { SPIRV_HEAD = 16, SPIRV_LEAST_PUSH = 24, SPIRV_ALIGN = 16 };
enum { SPIRV_RECORDS, SPIRV_FIRST, SPIRV_TABLE, SPIRV_SHIFT, SPIRV_SPACE_WORDS };

/* Facts of a device.  Zero is always right, but for the first two. */
struct spirv_target {
    uint32_t max_threads;  /* of a workgroup, along x too */
    uint32_t shared_bytes; /* of a workgroup; what lanes exchange takes up to 12 per lane of it */
    uint32_t push_bytes;   /* up to this many the block is in push constants; 0: never */
    bool split_block; /* the addresses of arguments are loaded from the block in memory, and only
                      its address and the parameters are pushed */
    /* Invocations of a subgroup, where shuffle, shuffle up and ballot are there and pipelines are
     * made with this size required, full subgroups, and invocations in their order; else 0. */
    uint32_t subgroup;
    bool float64;    /* shaderFloat64 */
    bool store8;     /* storageBuffer8BitAccess: without, modules with such arguments are refused */
    bool store16;    /* storageBuffer16BitAccess: likewise */
    bool atomic_i64; /* shaderBufferInt64Atomics; without, refused */
    bool atomic_f32; /* shaderBufferFloat32AtomicAdd; without, a loop of exchanges */
    bool keep_special32; /* shaderSignedZeroInfNanPreserveFloat32; likewise the others */
    bool keep_special64;
    bool keep_denormal32; /* shaderDenormPreserveFloat32; both where the device wants both equal */
    bool keep_denormal64;
    bool round_even32; /* shaderRoundingModeRTEFloat32 */
    bool round_even64;
    bool float16; /* shaderFloat16, and all three of the above for 16 bits: conversions are exact */
    bool matrices; /* cooperativeMatrix and vulkanMemoryModel, with `subgroup`; without, refused */
    bool matrices_f16;  /* shaderFloat16: matrices of these */
    bool matrices_bf16; /* shaderBFloat16CooperativeMatrix */
    bool shares_tiles;  /* workgroupMemoryExplicitLayout and its 16BitAccess: tiles beside fragments
                           that are never used at the same time share memory */
};

struct spirv_code {
    uint32_t *words;
    uint32_t n_words;
    uint32_t threads;    /* invocations of a workgroup */
    uint32_t per_thread; /* lanes of an invocation */
    uint32_t push_bytes;
    uint32_t shared_bytes;
    bool block_is_pushed; /* the block is in the push constants */
    bool subgroups;       /* it shuffles: the pipeline needs what `subgroup` promises */
};

/* `aligned`: the address of every argument is a multiple of SPIRV_ALIGN; where that is not known
 * of a launch, it needs code made without.  FRIT_UNSUPPORTED: the device lacks something that the
 * phase needs; the text says what.  `out` is to be ended by spirv_fini. */
frit_status spirv_emit(const struct kir_module *module, uint32_t phase,
                       const struct spirv_target *target, bool aligned, struct spirv_code *out,
                       frit_err *err);
void spirv_fini(struct spirv_code *code);

#endif
