/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/fail.h"
#include "kernels/ir/rig.h"

uint64_t bits_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

uint64_t bits_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

uint32_t rig_load(struct kir_module *m, enum kir_type type, uint32_t n, uint32_t at)
{
    return kir_emit_as(m, KIR_load, type, n, at, KIR_NONE, KIR_NONE);
}

void rig_store(struct kir_module *m, uint32_t n, uint32_t at, uint32_t value)
{
    kir_emit_imm(m, KIR_store, n, at, value, KIR_NONE);
}

uint32_t rig_tload(struct kir_module *m, enum kir_type type, uint32_t n, uint32_t at)
{
    return kir_emit_as(m, KIR_tload, type, n, at, KIR_NONE, KIR_NONE);
}

void rig_tstore(struct kir_module *m, uint32_t n, uint32_t at, uint32_t value)
{
    kir_emit_imm(m, KIR_tstore, n, at, value, KIR_NONE);
}

uint32_t rig_int(struct kir_module *m, int32_t value)
{
    return kir_const_i(m, KIR_I32, value);
}

void rig_run(const struct kir_module *m, const uint64_t *words, const struct eval_arg *args,
             uint32_t groups)
{
    const uint32_t grid[1][3] = {{groups, 1, 1}};
    frit_err err = ERR_INIT;
    frit_status st = eval_run(m, words, args, grid, &err);

    if (st)
        fail_msg("%s", err.text);
}

void rig_run_bad(const struct kir_module *m, const uint64_t *words, const struct eval_arg *args,
                 uint32_t groups, const char *text)
{
    const uint32_t grid[1][3] = {{groups, 1, 1}};
    frit_err err = ERR_INIT;

    assert_int_equal(eval_run(m, words, args, grid, &err), FRIT_INVALID);
    assert_string_equal(err.text, text);
}

/* Each of 4 lanes sums every 4th element; the sums are added through a tile and an exchange; lane 0
 * stores the total. */
void rig_row_sum(struct kir_module *m)
{
    uint32_t tile, n, lane, row, sum, i, next, at, total, other;

    kir_init(m, "row_sum");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, 4);
    tile = kir_tile(m, KIR_GROUP, KIR_F32, 4);
    n = kir_param(m, KIR_I32);
    lane = OP0(m, lane);
    row = OP2(m, mul, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE), n);
    sum = kir_const_f(m, KIR_F32, 0.0);
    i = kir_for(m, rig_int(m, 0), n, 4);
    sum = kir_phi(m, sum);
    at = OP2(m, add, i, lane);
    next = kir_emit_as(m, KIR_load_if, KIR_F32, 0, OP2(m, add, row, at), OP2(m, lt, at, n),
                       kir_const_f(m, KIR_F32, 0.0));
    next = OP2(m, add, sum, next);
    kir_next(m, &next, 1);
    rig_tstore(m, tile, lane, sum);
    OP0(m, barrier);
    other = rig_tload(m, KIR_F32, tile, OP2(m, xor, lane, rig_int(m, 2)));
    total = OP2(m, add, sum, other);
    total = OP2(m, add, total, kir_emit_imm(m, KIR_exchange, 1, total, KIR_NONE, KIR_NONE));
    kir_if(m, OP2(m, lt, rig_int(m, 0), n));
    kir_emit_imm(m, KIR_store_if, 1, kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE),
                 total, OP2(m, eq, lane, rig_int(m, 0)));
    kir_end(m);
}
