/* SPDX-License-Identifier: Apache-2.0 */
/* A float of a field of four bits is one of 16, which a register of AVX-512 holds: a permutation,
 * which takes the low four bits of its indices, in place of two shifts and a conversion. */
#include "emit/llvm/nibble.h"

#include "emit/llvm/value.h"

#include <string.h>

enum { FIELD = 4, SPARE = 32 - FIELD, VALUES = 1 << FIELD };

/* The number of a constant I32; false: it is none. */
static bool const_of(const struct ll *l, uint32_t at, uint64_t *out)
{
    const struct kir_inst *inst = ll_inst(l, at);

    *out = inst->imm & UINT32_MAX;
    return inst->op == KIR_const && inst->type == KIR_I32;
}

/* f32(x << SPARE - position >> SPARE), all in one region: x and the position. */
static bool match(const struct ll *l, uint32_t at, uint32_t *x, uint64_t *position)
{
    const struct kir_inst *inst = ll_inst(l, at), *down, *up;
    const uint32_t *region = l->regions.region;
    uint64_t number;

    if (inst->op != KIR_f32)
        return false;
    down = ll_inst(l, inst->a[0]);
    if (down->op != KIR_sar || !const_of(l, down->a[1], &number) || number != SPARE)
        return false;
    up = ll_inst(l, down->a[0]);
    if (up->op != KIR_shl || !const_of(l, up->a[1], &number) || number > SPARE)
        return false;
    if (region[inst->a[0]] != region[at] || region[down->a[0]] != region[at])
        return false;
    *x = up->a[0];
    *position = SPARE - number;
    return true;
}

bool ll_is_nibble(const struct ll *l, uint32_t at)
{
    uint64_t position;
    uint32_t x;

    return l->cpu.isa >= LLVM_AVX512 && l->width == VALUES && ll_is(l, at, FACT_VARYING) &&
           match(l, at, &x, &position);
}

static ll_value table_of(const struct ll *l)
{
    uint64_t bits[VALUES];

    for (int32_t i = 0; i < VALUES; i++) {
        float value = (float)(i < VALUES / 2 ? i : i - VALUES);
        uint32_t word;

        memcpy(&word, &value, sizeof(word));
        bits[i] = word;
    }
    return BUILD(l, BitCast, ll_lanes(l, l->types.of[KIR_I32], bits),
                 ll_vector_of(l, l->types.of[KIR_F32]));
}

void ll_nibble(struct ll *l, uint32_t at)
{
    ll_value args[2] = {table_of(l), NULL};
    uint64_t position = 0;
    uint32_t x = 0;

    (void)match(l, at, &x, &position);
    l->wide = true;
    for (uint32_t u = 0; u < l->units; u++) {
        args[1] = ll_at(l, x, u);
        if (position)
            args[1] = BUILD(l, LShr, args[1], ll_num(l, l->types.of[KIR_I32], position));
        l->vector[(size_t)at * l->units + u] =
            ll_call(l, "llvm.x86.avx512.permvar.sf.512", NULL, 0, args, 2);
    }
}
