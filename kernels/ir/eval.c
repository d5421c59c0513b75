/* SPDX-License-Identifier: Apache-2.0 */
/* Phases, groups, instructions.  Uniform control lets one counter of instructions serve all lanes;
 * what is uniform is read from lane 0. */
#include "ir/eval.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "ir/eval_fragment.h"
#include "ir/eval_memory.h"
#include "ir/eval_rows.h"
#include "ir/eval_shadow.h"
#include "ir/eval_state.h"
#include "ir/verify.h"

static uint32_t place_of(const struct eval *e)
{
    return (uint32_t)(e->inst - e->phase->inst);
}

static void fill(struct eval *e, uint32_t inst, uint64_t bits)
{
    uint64_t *out = eval_value(e, inst);

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        out[lane] = bits;
}

/* ---- leaves and the group ---- */

static frit_status run_const(struct eval *e)
{
    fill(e, place_of(e), e->inst->imm);
    return FRIT_OK;
}

static frit_status run_param(struct eval *e)
{
    uint64_t word = e->words[e->inst->imm];
    uint32_t type = e->inst->type;

    if (type == KIR_B)
        word &= 1;
    fill(e, place_of(e), type == KIR_I32 || type == KIR_F32 ? (uint32_t)word : word);
    return FRIT_OK;
}

static frit_status run_lane(struct eval *e)
{
    uint64_t *out = eval_value(e, place_of(e));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        out[lane] = lane;
    return FRIT_OK;
}

static frit_status run_group(struct eval *e)
{
    fill(e, place_of(e), e->group[e->inst->imm]);
    return FRIT_OK;
}

static frit_status run_barrier(struct eval *e)
{
    eval_tiles_barrier(e);
    return FRIT_OK;
}

static frit_status run_exchange(struct eval *e)
{
    const uint64_t *in = eval_value(e, e->inst->a[0]);
    uint64_t *out = eval_value(e, place_of(e));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        out[lane] = in[lane ^ (uint32_t)e->inst->imm];
    return FRIT_OK;
}

static frit_status run_shift(struct eval *e)
{
    const uint64_t *in = eval_value(e, e->inst->a[0]);
    uint64_t *out = eval_value(e, place_of(e));
    uint32_t by = (uint32_t)e->inst->imm;

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        out[lane] = in[lane < by ? lane : lane - by];
    return FRIT_OK;
}

static frit_status run_first(struct eval *e)
{
    fill(e, place_of(e), eval_value(e, e->inst->a[0])[0]);
    return FRIT_OK;
}

/* ---- control; these move `inst` ---- */

static int64_t counter_of(const struct eval *e, uint32_t value)
{
    uint64_t bits = eval_value(e, value)[0];

    return e->phase->inst[value].type == KIR_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

static void copy(const struct eval *e, uint64_t *to, const uint64_t *from)
{
    memcpy(to, from, e->phase->lanes * sizeof(*to));
}

static frit_status run_for(struct eval *e)
{
    const uint32_t *bounds = e->module->links + e->inst->a[0];
    uint32_t at = place_of(e);

    copy(e, eval_value(e, at), eval_value(e, bounds[0]));
    for (const struct kir_inst *phi = e->inst + 1; phi->op == KIR_phi; phi++)
        copy(e, eval_value(e, (uint32_t)(phi - e->phase->inst)), eval_value(e, phi->a[0]));
    if (counter_of(e, bounds[0]) >= counter_of(e, bounds[1]))
        e->inst = &e->phase->inst[e->inst->pair];
    return FRIT_OK;
}

static frit_status run_phi(struct eval *e)
{
    (void)e; /* `for` and `next` have set it */
    return FRIT_OK;
}

/* All values are read before a phi is set. */
static void carry(struct eval *e, uint32_t first_phi)
{
    size_t lanes = e->phase->lanes;

    for (uint32_t i = 0; i < e->inst->a[1]; i++)
        copy(e, e->carried + i * lanes, eval_value(e, e->module->links[e->inst->a[0] + i]));
    for (uint32_t i = 0; i < e->inst->a[1]; i++)
        copy(e, eval_value(e, first_phi + i), e->carried + i * lanes);
}

static frit_status run_next(struct eval *e)
{
    uint32_t opener = e->inst->pair;
    const struct kir_inst *loop = &e->phase->inst[opener];
    int64_t most = loop->type == KIR_I32 ? INT32_MAX : INT64_MAX, counter = counter_of(e, opener);

    carry(e, opener + 1);
    if (counter > most - (int64_t)loop->imm)
        return eval_fail(e, "the counter, %lld, goes beyond its type", (long long)counter);
    counter += (int64_t)loop->imm;
    fill(e, opener, loop->type == KIR_I32 ? (uint32_t)counter : (uint64_t)counter);
    if (counter < counter_of(e, e->module->links[loop->a[0] + 1]))
        e->inst = loop;
    return FRIT_OK;
}

static frit_status run_if(struct eval *e)
{
    if (!eval_value(e, e->inst->a[0])[0])
        e->inst = &e->phase->inst[e->inst->pair];
    return FRIT_OK;
}

static frit_status run_end(struct eval *e)
{
    (void)e;
    return FRIT_OK;
}

/* ---- running ---- */

typedef frit_status (*step_fn)(struct eval *e);

/* The others have a row. */
static const step_fn steps[KIR_OPS] = {
    [KIR_const] = run_const,
    [KIR_param] = run_param,
    [KIR_lane] = run_lane,
    [KIR_group] = run_group,
    [KIR_load] = eval_load,
    [KIR_load_if] = eval_load,
    [KIR_store] = eval_store,
    [KIR_store_if] = eval_store,
    [KIR_tload] = eval_tload,
    [KIR_tstore] = eval_tstore,
    [KIR_tstore_if] = eval_tstore,
    [KIR_atomic_add] = eval_atomic_add,
    [KIR_barrier] = run_barrier,
    [KIR_exchange] = run_exchange,
    [KIR_shift] = run_shift,
    [KIR_first] = run_first,
    [KIR_for] = run_for,
    [KIR_phi] = run_phi,
    [KIR_next] = run_next,
    [KIR_if] = run_if,
    [KIR_end] = run_end,
    [KIR_mfill] = eval_mfill,
    [KIR_mload] = eval_mload,
    [KIR_mstore] = eval_mstore,
    [KIR_mlargest] = eval_mlargest,
    [KIR_mtotal] = eval_mtotal,
    [KIR_mnarrow] = eval_mnarrow,
    [KIR_mscale] = eval_mscale,
    [KIR_peer] = eval_peer,
    [KIR_mma] = eval_mma,
    [KIR_each] = eval_each,
    [KIR_mbatch] = run_end,
    [KIR_mwait] = run_end,
    [KIR_row] = eval_row_of,
    [KIR_column] = eval_column_of,
    [KIR_done] = eval_done,
    [KIR_tcopy] = eval_tcopy,
    [KIR_tbatch] = eval_tbatch,
    [KIR_twait] = eval_twait,
};

static void run_row(struct eval *e)
{
    const uint32_t *a = e->inst->a;
    struct eval_lanes lanes = {
        .count = e->phase->lanes, .imm = e->inst->imm, .out = eval_value(e, place_of(e))};

    lanes.a = eval_value(e, a[0]);
    lanes.b = a[1] == KIR_NONE ? lanes.a : eval_value(e, a[1]);
    lanes.c = a[2] == KIR_NONE ? lanes.a : eval_value(e, a[2]);
    eval_row(e->inst->op, e->phase->inst[a[0]].type)(&lanes);
}

static frit_status run_group_of(struct eval *e)
{
    const struct kir_inst *end = e->phase->inst + e->phase->n;

    eval_tiles_reset(e);
    eval_fragments_reset(e);
    for (e->inst = e->phase->inst; e->inst < end; e->inst++) {
        if (steps[e->inst->op])
            TRY(steps[e->inst->op](e));
        else
            run_row(e);
    }
    return FRIT_OK;
}

static frit_status run_grid(struct eval *e, const uint32_t grid[3])
{
    e->group_number = 0;
    for (e->group[2] = 0; e->group[2] < grid[2]; e->group[2]++) {
        for (e->group[1] = 0; e->group[1] < grid[1]; e->group[1]++) {
            for (e->group[0] = 0; e->group[0] < grid[0]; e->group[0]++, e->group_number++)
                TRY(run_group_of(e));
        }
    }
    return FRIT_OK;
}

static frit_status run_phase(struct eval *e, const uint32_t grid[3])
{
    size_t bytes = ((size_t)e->phase->n + 1) * e->phase->lanes * sizeof(*e->values);
    frit_status st;

    e->values = malloc(bytes);
    e->carried = malloc(bytes);
    st = e->values && e->carried ? eval_tiles_init(e) : fail_memory(e->err, bytes);
    if (!st)
        st = eval_fragments_init(e);
    if (!st)
        st = eval_shadow_reset(e);
    if (!st)
        st = run_grid(e, grid);
    eval_tiles_fini(e);
    eval_fragments_fini(e);
    free(e->values);
    free(e->carried);
    return st;
}

frit_status eval_run(const struct kir_module *module, const uint64_t *words,
                     const struct eval_arg *args, const uint32_t (*grid)[3], frit_err *err)
{
    struct eval e = {.module = module, .words = words, .args = args, .err = err};

    frit_status st;

    TRY(kir_verify(module, NULL, err));
    st = eval_shadow_init(&e);
    for (uint32_t i = 0; !st && i < module->n_phases; i++) {
        e.phase = &module->phases[i];
        st = run_phase(&e, grid[i]);
    }
    eval_shadow_fini(&e);
    return st;
}
