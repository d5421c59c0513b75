/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lower/ctc_rig.h"

static const frit_attrs_ctc attrs[CTC_CLASSES] = {
    {.struct_size = sizeof(attrs[0]), .blank = 0},
    {.struct_size = sizeof(attrs[0]), .blank = 1},
    {.struct_size = sizeof(attrs[0]), .blank = 2},
};

static void fill(struct rig *rig, const uint32_t *in, const struct ctc *c)
{
    uint64_t state = 7;

    for (int64_t i = 0; i < rig_count(rig, in[LOG_PROBS]); i++)
        rig_set_real(rig, in[LOG_PROBS], i,
                     (c->negated ? 1 : -1) * (double)(rig_random(&state, 64) + 1) / 32);
    for (int64_t i = 0; i < rig_count(rig, in[TARGETS]); i++) {
        int64_t class = (int64_t)rig_random(&state, CTC_CLASSES - 1);

        rig_set_int(rig, in[TARGETS], i, class < c->blank ? class : class + 1);
    }
    for (int64_t i = 0; i < c->items; i++) {
        rig_set_int(rig, in[STEPS], i, i == 0 ? 99 : (int64_t)rig_random(&state, 7));
        rig_set_int(rig, in[LABELS], i, i == 1 ? 99 : (int64_t)rig_random(&state, 4) - 1);
        rig_set_real(rig, in[GRAD], i, (double)(rig_random(&state, 16) + 1) / 8 - 1);
    }
    if (c->items && c->labels) /* beyond the classes: the last one */
        rig_set_int(rig, in[TARGETS], 0, c->blank == CTC_CLASSES - 1 ? -4 : 77);
}

uint32_t ctc_rig(struct rig *rig, const struct ctc *c, uint32_t in[CTC_OPERANDS])
{
    const int64_t of_x[] = {c->steps, c->items, CTC_CLASSES}, of_targets[] = {c->items, c->labels};
    struct rig_in operands[CTC_OPERANDS];

    rig_init(rig);
    rig->target.f64 = c->f64;
    rig->index_width = c->width ? c->width : 32;
    in[LOG_PROBS] = rig_input(rig, c->dtype, 3, of_x);
    in[TARGETS] = rig_input(rig, c->int_dtype, 2, of_targets);
    in[STEPS] = rig_input(rig, FRIT_I64, 1, &c->items);
    in[LABELS] = rig_input(rig, c->int_dtype, 1, &c->items);
    in[GRAD] = rig_input(rig, c->dtype, 1, &c->items);
    fill(rig, in, c);
    for (uint32_t i = 0; i < CTC_OPERANDS; i++)
        operands[i] = rig_value(in[i]);
    if (c->negated)
        operands[LOG_PROBS] =
            rig_value(rig_op(rig, FRIT_OP_neg, 1, &operands[LOG_PROBS], NULL, c->dtype, 3, of_x));
    if (c->gradient)
        return rig_op(rig, FRIT_OP_ctc_loss_backward, CTC_OPERANDS, operands, &attrs[c->blank],
                      c->dtype, 3, of_x);
    return rig_op(rig, FRIT_OP_ctc_loss, GRAD, operands, &attrs[c->blank], c->dtype, 1, &c->items);
}

uint32_t ctc_twice(struct rig *rig, uint32_t value)
{
    const struct rig_value v = rig->values[value];

    return rig_op(rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(value), rig_value(value)}, NULL,
                  v.dtype, v.rank, v.dims);
}
