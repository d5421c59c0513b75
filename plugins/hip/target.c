/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include "ir/target.h"

#include "adapter.h"

/* A thread has LANES_PER_THREAD lanes, so that it loads 16 bytes of 32-bit elements at once. */
enum { MAX_THREADS = 1024, LANES_PER_THREAD = 4, MAX_BINDINGS = 64, GROUPS_PER_PROCESSOR = 4 };

/* Of a slab of rows that a lane keeps in registers: 512 threads of 64 words, for which a
 * multiprocessor has room beside what else they compute. */
enum { SLAB_BYTES = 64 };

enum { EXCHANGE_BYTES = 8 /* of shared memory, for a lane of those that exchange values */ };

/* An old runtime does not know the larger number. */
static uint32_t most_shared_bytes(const struct adapter *adapter)
{
    const int plain = adapter->attributes[ATTRIBUTE_SHARED_BYTES],
              most = adapter->attributes[ATTRIBUTE_MOST_SHARED_BYTES];

    return (uint32_t)(most > plain ? most : plain);
}

/* Of the compute capability: mma.sync for BF16, cp.async; wgmma. */
enum { FRAGMENTS_MAJOR = 8, WIDE_MAJOR = 9, WIDE_WARPS = 4 };

static void add_wide(struct kir_target *out, uint32_t dtype)
{
    for (uint32_t n = 64; n <= 256; n += 64) {
        const struct kir_fragment_shape wide = {.m = 64,
                                                .n = n,
                                                .k = 16,
                                                .dtype = dtype,
                                                .sum = FRIT_F32,
                                                .team = WIDE_WARPS * out->team,
                                                .from_blocks = true};

        out->shapes[out->n_shapes++] = wide;
    }
}

static void add_fragments(const struct adapter *adapter, struct kir_target *out)
{
    static const uint32_t dtypes[] = {FRIT_F16, FRIT_BF16};

    out->team = (uint32_t)adapter->attributes[ATTRIBUTE_WARP_SIZE];
    out->copies = out->folds_fragments = out->fmax = true;
    out->fragment_bytes = most_shared_bytes(adapter);
    for (uint32_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const struct kir_fragment_shape small = {
            .m = 16, .n = 16, .k = 16, .dtype = dtypes[i], .sum = FRIT_F32};

        out->shapes[out->n_shapes++] = small;
        if (adapter->attributes[ATTRIBUTE_MAJOR] == WIDE_MAJOR)
            add_wide(out, dtypes[i]);
    }
}

void target_fill_text(const struct adapter *adapter, struct ctext_target *out)
{
    const uint32_t threads = (uint32_t)adapter->attributes[ATTRIBUTE_MAX_THREADS];

    *out = (struct ctext_target){
        .dialect = vendor.dialect,
        .max_threads = threads < MAX_THREADS ? 256 : MAX_THREADS,
        .warp = (uint32_t)adapter->attributes[ATTRIBUTE_WARP_SIZE],
        .shared_bytes = most_shared_bytes(adapter),
        .value_bytes = TARGET_VALUE_WORDS * sizeof(uint64_t),
    };
}

void target_fill_kernels(const struct adapter *adapter, struct kir_target *out)
{
    *out = (struct kir_target){
        .lanes = TARGET_LANES,
        .lanes_per_row = TARGET_LANES,
        .max_lanes = TARGET_MAX_LANES,
        .near_lanes = (uint32_t)adapter->attributes[ATTRIBUTE_WARP_SIZE] * LANES_PER_THREAD,
        .units = (uint32_t)adapter->attributes[ATTRIBUTE_MULTIPROCESSORS] * GROUPS_PER_PROCESSOR,
        .group_bytes =
            (uint32_t)adapter->attributes[ATTRIBUTE_SHARED_BYTES] - TARGET_LANES * EXCHANGE_BYTES,
        .lane_bytes = EXCHANGE_BYTES,
        .tuning = {.slab_bytes = SLAB_BYTES},
        .stages_tiles = true,
        .bindings = MAX_BINDINGS,
        .launch_args = TARGET_MAX_ARGS,
        .launch_words = TARGET_MAX_WORDS,
        .align_bytes = 16,
        .fma = true,
        .exp2 = vendor.dialect == CTEXT_CUDA,
        .f64 = true,
        .i64 = true,
        .exact_div = true,
        .denormals = true,
        .atomic_f32 = true,
        .store_bytes = 1,
        .reuses_tiles = true,
    };
    if (vendor.dialect == CTEXT_CUDA && adapter->attributes[ATTRIBUTE_MAJOR] >= FRAGMENTS_MAJOR)
        add_fragments(adapter, out);
}
