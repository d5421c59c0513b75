/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lower/contract_rig.h"

#include <math.h>

#include "unit.h"

const struct contract_target contract_targets[] = {
    {64, 64, 4, true, false, true, 0, 0},      {256, 32, 1, false, false, true, 0, 0},
    {16, 16, 64, true, false, true, 0, 0},     {256, 64, 1, true, true, false, 32, 0},
    {256, 64, 64, false, true, false, 128, 0}, {64, 64, 4, true, false, false, 16, 0},
    {32, 32, 8, false, false, false, 0, 0}};

void contract_fill(struct rig *rig, uint32_t value, uint64_t seed)
{
    for (int64_t i = 0; i < rig_count(rig, value); i++) {
        if (rig_is_real(rig->values[value].dtype))
            rig_set_real(rig, value, i, ((double)rig_random(&seed, 33) - 16) / 16);
        else
            rig_set_int(rig, value, i, (int64_t)rig_random(&seed, 2001) - 1000);
    }
}

double contract_get(const struct rig *rig, uint32_t value, int64_t number)
{
    return rig_is_real(rig->values[value].dtype) ? rig_get_real(rig, value, number)
                                                 : (double)rig_get_int(rig, value, number);
}

double contract_at(const struct rig *rig, uint32_t value, uint32_t rank, const int64_t *place)
{
    const struct rig_value *v = &rig->values[value];
    int64_t number = 0;

    for (uint32_t d = 0; d < v->rank; d++)
        number = number * v->dims[d] + (v->dims[d] == 1 ? 0 : place[rank - v->rank + d]);
    return contract_get(rig, value, number);
}

void contract_place(const struct rig_value *v, int64_t number, int64_t *place)
{
    for (uint32_t d = v->rank; d-- > 0; number /= v->dims[d])
        place[d] = number % v->dims[d];
}

void contract_same(const char *what, uint32_t dtype, int64_t number, double seen, double want,
                   double size)
{
    double tolerance = dtype == FRIT_F16    ? 0x1p-11
                       : dtype == FRIT_BF16 ? 0x1p-8
                       : dtype == FRIT_F32  ? 0x1p-22
                                            : 0;

    if (dtype == FRIT_I8)
        want = (double)(int8_t)(int64_t)want;
    if (fabs(seen - want) > tolerance * (dtype == FRIT_F32 ? size : fabs(want)))
        fail_msg("%s of type %u: element %lld is %.9g, not %.9g", what, dtype, (long long)number,
                 seen, want);
}

uint32_t contract_operand(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                          bool turned)
{
    uint32_t order[5] = {0, 1, 2, 3, 4}, value;

    if (turned) {
        order[rank - 2] = rank - 1;
        order[rank - 1] = rank - 2;
    }
    value = rig_laid(rig, dtype, rank, dims, order, 0, 1);
    contract_fill(rig, value, 7 + rank + (uint64_t)dims[0]);
    return value;
}

void contract_set_target(struct rig *rig, const struct contract_target *target)
{
    rig->target.lanes = target->lanes;
    rig->target.lanes_per_row = target->lanes_per_row;
    rig->target.units = target->units;
    rig->target.fma = target->fma;
    rig->target.stages_tiles = target->stages;
    rig->target.lanes_interleaved = target->interleaved;
    rig->target.near_lanes = target->near_lanes;
    if (target->max_lanes)
        rig->target.max_lanes = target->max_lanes;
}
