/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, description, compilation and saving of programs. */
#include "fuse/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "fuse/codes.h"
#include "fuse/op.h"
#include "fuse/prepare.h"
#include "fuse/prepared.h"
#include "fuse/variation.h"
#include "ir/kir.h"
#include "kernels.h"
#include "lower/contract/contract_product.h"

/* ---- life ---- */

/* Whether results of an op may differ between schedules, because they add or multiply floats in
 * different orders.  Elementwise results are computed by the same instructions in every schedule.
 */
static bool may_reorder(const struct block *block, const struct block_op *op)
{
    static const bool elementwise[] = {
        [FRIT_CLASS_VIEW] = true, [FRIT_CLASS_COPY] = true,   [FRIT_CLASS_CAST] = true,
        [FRIT_CLASS_INIT] = true, [FRIT_CLASS_RANDOM] = true, [FRIT_CLASS_MAP] = true,
        [FRIT_CLASS_JOIN] = true, [FRIT_CLASS_SORT] = true};
    const frit_op_info *info = frit_op_info_at(op->id);
    const uint32_t n = sizeof(elementwise) / sizeof(elementwise[0]);
    bool floats = false;

    for (uint32_t k = 0; k < op->n_out; k++) {
        uint32_t dtype = op->out[k] == BLOCK_NONE ? FRIT_NO_DTYPE : block->values[op->out[k]].dtype;

        floats |= kir_type_of(dtype) == KIR_F32 || kir_type_of(dtype) == KIR_F64;
    }
    return floats && (!info || info->cls >= n || !elementwise[info->cls]) &&
           op->id != FRIT_OP_max && op->id != FRIT_OP_min;
}

static uint32_t other_candidates_class(const struct block *block)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (may_reorder(block, &block->ops[i]))
            return FRIT_NUMERIC_REORDERED;
    }
    return FRIT_NUMERIC_EXACT;
}

/* `schedule` is NULL for a candidate of the vendor's library. */
static void add_candidate(struct program *p, const struct schedule *schedule, const char *identity,
                          uint32_t numeric_class)
{
    uint32_t i = p->n_candidates++;

    p->schedules[i] = schedule;
    p->variations[i] = NULL;
    p->candidates[i] = (frit_candidate){.struct_size = sizeof(frit_candidate),
                                        .version = PROGRAM_VERSION,
                                        .numeric_class = numeric_class,
                                        .identity = str_of(identity)};
}

static void add_schedule(struct program *p, const struct schedule *schedule)
{
    add_candidate(p, schedule, schedule->name,
                  p->n_candidates ? other_candidates_class(&p->block) : FRIT_NUMERIC_EXACT);
}

/* Those of one candidate.  One that keeps the bits of a schedule has those of the first candidate
 * only if that is the schedule. */
static void add_variations(struct program *p, uint32_t candidate)
{
    const struct schedule *schedule = p->schedules[candidate];

    for (uint32_t i = 0; schedule && i < n_variations; i++) {
        const struct variation *variation = &variations[i];
        bool is_exact = candidate == 0 && variation->numeric_class == FRIT_NUMERIC_EXACT;

        if (strcmp(variation->schedule, schedule->name) != 0)
            continue;
        add_candidate(p, schedule, variation->identity,
                      is_exact ? FRIT_NUMERIC_EXACT : other_candidates_class(&p->block));
        p->variations[p->n_candidates - 1] = variation;
    }
}

/* The library, and where the result is of F32 the library with reduced products. */
static void add_library(struct program *p)
{
    const struct kernels_device *device = p->device;

    p->product = device->library ? contract_product_find(&p->block) : BLOCK_NONE;
    if (p->product == BLOCK_NONE)
        return;
    if (device->reduced_library && p->block.values[p->block.outputs[0]].dtype == FRIT_F32)
        add_candidate(p, NULL, device->reduced_library, FRIT_NUMERIC_REDUCED);
    add_candidate(p, NULL, device->library, other_candidates_class(&p->block));
}

static frit_status accepts_whole(const struct schedule *schedule, const struct kir_target *target,
                                 const struct block *block, bool *out, frit_err *err)
{
    uint32_t covered;
    bool open;

    TRY(match_block(schedule, target, block, &covered, &open, err));
    *out =
        covered == block->n_ops && (schedule->of_components || block->n_outputs <= SCHED_OUTPUTS);
    return FRIT_OK;
}

static frit_status choose_candidates(struct program *p, const struct schedule *first, frit_err *err)
{
    const uint32_t most = n_schedules + 2 + n_variations;
    uint32_t n_unvaried;

    p->schedules = arena_array(&p->block.arena, most, sizeof(const struct schedule *));
    p->variations = arena_array(&p->block.arena, most, sizeof(const struct variation *));
    p->candidates = arena_array(&p->block.arena, most, sizeof(*p->candidates));
    if (!p->schedules || !p->variations || !p->candidates)
        return fail_memory(err, most * sizeof(*p->candidates));
    if (first)
        add_schedule(p, first);
    for (uint32_t i = 0; i < n_schedules; i++) {
        bool accepts = false;

        if (!first || strcmp(schedules[i]->name, first->name) != 0)
            TRY(accepts_whole(schedules[i], &p->device->target, &p->block, &accepts, err));
        if (accepts)
            add_schedule(p, schedules[i]);
    }
    if (!p->n_candidates)
        return fail(err, FRIT_UNSUPPORTED, "no schedule accepts these ops");
    p->name = p->schedules[0]->name;
    add_library(p);
    n_unvaried = p->n_candidates;
    for (uint32_t i = 0; i < n_unvaried; i++)
        add_variations(p, i);
    return FRIT_OK;
}

static frit_status number_args(struct program *p, frit_err *err)
{
    uint32_t n = p->block.n_inputs + p->block.n_outputs;

    p->n_in = p->block.n_inputs;
    p->n_out = p->block.n_outputs;
    p->arg_numbers = arena_array(&p->block.arena, (size_t)n + 1, sizeof(*p->arg_numbers));
    if (!p->arg_numbers)
        return fail_memory(err, n * sizeof(*p->arg_numbers));
    for (uint32_t i = 0; i < n; i++)
        p->arg_numbers[i] = i;
    return FRIT_OK;
}

frit_status program_create(const struct kernels_device *device, const struct schedule *first,
                           struct block *block, struct program **out, frit_err *err)
{
    struct program *p = calloc(1, sizeof(*p));
    frit_status st;

    *out = NULL;
    if (!p) {
        block_fini(block);
        return fail_memory(err, sizeof(*p));
    }
    p->device = device;
    p->block = *block;
    pthread_mutex_init(&p->lock, NULL);
    st = choose_candidates(p, first, err);
    if (!st)
        st = number_args(p, err);
    if (st)
        program_destroy(p);
    else
        *out = p;
    return st;
}

void program_destroy(struct program *program)
{
    if (!program)
        return;
    map_fini(&program->prepared, prepared_destroy);
    if (program->released)
        prepared_destroy(program->released);
    map_fini(&program->variants, free);
    pthread_mutex_destroy(&program->lock);
    block_fini(&program->block);
    free(program);
}

/* ---- slots ---- */

static frit_status slot_describe(void *self, frit_program_info *out, frit_err *err)
{
    const struct program *p = self;

    (void)err;
    out->n_candidates = p->n_candidates;
    out->candidate_stride = sizeof(frit_candidate);
    out->n_ops = p->block.n_ops;
    out->name = str_of(p->name);
    out->candidates = p->candidates;
    out->serial = p->device->serial;
    return FRIT_OK;
}

/* Any cached result of this variant.  Requires the lock. */
static const struct prepared *find_result(const struct program *p, const frit_variant *variant)
{
    const struct program_variant *found =
        variant->n_bytes == KIR_DIGEST ? map_get(&p->variants, variant->bytes, KIR_DIGEST) : NULL;

    return found ? found->first : NULL;
}

static uint64_t slot_generation(void *self, uint32_t candidate, const frit_variant *variant)
{
    struct program *p = self;
    const struct prepared *result;
    uint64_t generation = 0;

    (void)candidate;
    pthread_mutex_lock(&p->lock);
    result = find_result(p, variant);
    for (uint32_t i = 0; result && i < result->n_bodies; i++)
        generation += result->bodies[i].code ? code_generation(result->bodies[i].code) : 0;
    pthread_mutex_unlock(&p->lock);
    return generation;
}

/* Returns references to the code of a variant, since its results may be released meanwhile. */
static frit_status take_codes(struct program *p, const frit_variant *variant, struct code ***out,
                              uint32_t *n, frit_err *err)
{
    const struct prepared *result;

    pthread_mutex_lock(&p->lock);
    result = find_result(p, variant);
    *n = result ? result->n_bodies : 0;
    *out = calloc(*n + 1u, sizeof(struct code *));
    for (uint32_t i = 0; *out && i < *n; i++)
        (*out)[i] = result->bodies[i].code ? code_ref(result->bodies[i].code) : NULL;
    pthread_mutex_unlock(&p->lock);
    if (!*out)
        return fail_memory(err, *n * sizeof(struct code *));
    return *n ? FRIT_OK
              : fail(err, FRIT_INVALID, "%s: compile for a variant that prepare did not return",
                     p->name);
}

static frit_status slot_compile(void *self, uint32_t candidate, const frit_variant *variant,
                                const frit_cancel *cancel, frit_err *err)
{
    struct code **codes;
    uint32_t n;
    frit_status st = take_codes(self, variant, &codes, &n, err);

    (void)candidate;
    for (uint32_t i = 0; i < n && codes; i++) {
        if (!codes[i])
            continue;
        if (!st)
            st = code_compile(codes[i], cancel, err);
        code_unref(codes[i]);
    }
    free(codes);
    return st;
}

/* The library first: for which products it is better than a schedule the driver's plan decides.
 * Reduced products are the fastest.  Variations are last: that one is better only a measurement
 * shows. */
enum {
    PRIORITY_NONE = -1,
    PRIORITY_VARIATION,
    PRIORITY_SCHEDULE,
    PRIORITY_LIBRARY,
    PRIORITY_REDUCED
};

static int32_t slot_priority(void *self, uint32_t candidate, const frit_signature *sig)
{
    const struct program *p = self;
    const struct variation *variation = p->variations[candidate];

    if (variation)
        return variation_applies(variation, sig) ? PRIORITY_VARIATION : PRIORITY_NONE;
    if (p->schedules[candidate])
        return PRIORITY_SCHEDULE;
    return p->candidates[candidate].numeric_class == FRIT_NUMERIC_REDUCED ? PRIORITY_REDUCED
                                                                          : PRIORITY_LIBRARY;
}

static void slot_destroy(void *self)
{
    program_destroy(self);
}

/* ---- saving ---- */

enum { SCHEDULE_NAME = 24 };

/* A saved program: the name of the first schedule, and a hash of the block. */
struct state {
    uint32_t version;
    uint32_t reserved;
    char schedule[SCHEDULE_NAME];
    uint64_t block[2]; /* XXH3 of block_write's bytes */
    uint64_t seal;     /* XXH3 of the preceding fields */
};

static frit_status state_of(const struct schedule *schedule, const struct block *block,
                            struct state *out, frit_err *err)
{
    struct str bytes = {0};
    XXH128_hash_t digest;

    memset(out, 0, sizeof(*out));
    block_write(block, &bytes);
    if (bytes.failed) {
        str_fini(&bytes);
        return fail_memory(err, bytes.length);
    }
    digest = XXH3_128bits(bytes.text, bytes.length);
    str_fini(&bytes);
    out->version = PROGRAM_VERSION;
    snprintf(out->schedule, sizeof(out->schedule), "%s", schedule->name);
    out->block[0] = digest.low64;
    out->block[1] = digest.high64;
    out->seal = XXH3_64bits(out, offsetof(struct state, seal));
    return FRIT_OK;
}

static frit_status slot_to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct program *p = self;
    uint64_t capacity = *n_bytes;
    struct state state;

    *n_bytes = sizeof(state);
    if (!capacity)
        return FRIT_OK;
    TRY(state_of(p->schedules[0], &p->block, &state, err));
    memcpy(bytes, &state, capacity < sizeof(state) ? capacity : sizeof(state));
    return FRIT_OK;
}

static const struct schedule *schedule_named(const char *name, uint32_t length)
{
    for (uint32_t i = 0; i < n_schedules; i++) {
        if (str_is((frit_str){name, length}, schedules[i]->name))
            return schedules[i];
    }
    return NULL;
}

/* ---- from blocks ---- */

const frit_program_table program_of_fuser = {
    .struct_size = sizeof(program_of_fuser),
    .describe = slot_describe,
    .prepare = program_prepare,
    .compile = slot_compile,
    .destroy = slot_destroy,
    .to_state = slot_to_state,
    .spec_release = program_spec_release,
    .generation = slot_generation,
    .priority = slot_priority,
};

const frit_program_table program_of_op = {
    .struct_size = sizeof(program_of_op),
    .describe = slot_describe,
    .prepare = program_prepare,
    .compile = slot_compile,
    .destroy = slot_destroy,
    .spec_release = program_spec_release,
    .generation = slot_generation,
    .priority = slot_priority,
};

bool kernels_owns(const frit_program *program)
{
    return program->table == &program_of_fuser || program->table == &program_of_op;
}

frit_status program_of_block(const struct kernels_device *device, const struct schedule *schedule,
                             struct block *block, uint32_t n_ops, frit_program *out, frit_err *err)
{
    struct program *program;
    frit_status st = block_close(block, n_ops, err);

    if (st) {
        block_fini(block);
        return st;
    }
    TRY(program_create(device, schedule, block, &program, err));
    out->table = &program_of_fuser;
    out->self = program;
    return FRIT_OK;
}

/* Pushes all ops and closes the block. */
static frit_status push_all(const struct kernels_device *device, const frit_op_desc *ops,
                            uint32_t n_ops, uint32_t stride, struct block *block, frit_err *err)
{
    for (uint32_t i = 0; i < n_ops; i++) {
        const frit_op_desc *op =
            (const frit_op_desc *)(const void *)((const char *)ops + (size_t)i * stride);

        if (!op_types_fit(&device->target, op))
            return fail(err, FRIT_INCOMPATIBLE, "the device does not compute with these types");
        TRY(block_push(block, op, err));
    }
    return block_close(block, n_ops, err);
}

static frit_status check_state(const struct kernels_device *device, const struct schedule *schedule,
                               const struct block *block, const struct state *saved, frit_err *err)
{
    struct state expected;
    bool accepts;

    TRY(state_of(schedule, block, &expected, err));
    if (memcmp(&expected, saved, sizeof(expected)) != 0)
        return fail(err, FRIT_INCOMPATIBLE, "%s: the program was saved for other ops",
                    schedule->name);
    TRY(accepts_whole(schedule, &device->target, block, &accepts, err));
    return accepts ? FRIT_OK
                   : fail(err, FRIT_INCOMPATIBLE, "%s: the schedule does not accept these ops",
                          schedule->name);
}

frit_status kernels_from_state(const struct kernels_device *device, const frit_op_desc *ops,
                               uint32_t n_ops, uint32_t op_stride, const void *bytes,
                               uint64_t n_bytes, frit_program *out, frit_err *err)
{
    const struct schedule *schedule = NULL;
    struct program *program;
    struct block block;
    struct state saved;
    frit_status st;

    if (device && n_bytes == sizeof(saved)) {
        memcpy(&saved, bytes, sizeof(saved));
        if (saved.seal == XXH3_64bits(&saved, offsetof(struct state, seal)) &&
            saved.version == PROGRAM_VERSION)
            schedule =
                schedule_named(saved.schedule, (uint32_t)strnlen(saved.schedule, SCHEDULE_NAME));
    }
    if (!schedule || !n_ops)
        return fail(err, FRIT_INCOMPATIBLE, "not a saved program of this version and driver");
    block_init(&block);
    st = push_all(device, ops, n_ops, op_stride, &block, err);
    if (!st)
        st = check_state(device, schedule, &block, &saved, err);
    if (st) {
        block_fini(&block);
        return st == FRIT_NO_HOST_MEMORY ? st : FRIT_INCOMPATIBLE;
    }
    TRY(program_create(device, schedule, &block, &program, err));
    out->table = &program_of_fuser;
    out->self = program;
    return FRIT_OK;
}

/* ---- devices ---- */

frit_status kernels_open(struct kernels_device *device, frit_err *err)
{
    return codes_create(device, &device->codes, err);
}

void kernels_close(struct kernels_device *device)
{
    codes_destroy(device->codes);
    device->codes = NULL;
}
