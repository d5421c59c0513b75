/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments.  Products are added in order of k, each rounded once; accesses count as those of the
 * team's first lane. */
#include "ir/eval_fragment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval_memory.h"
#include "ir/eval_state.h"
#include "ir/half.h"

/* ---- memory ---- */

static uint32_t teams_of(const struct eval *e)
{
    return e->phase->lanes / e->phase->team;
}

static uint64_t *elements_of(const struct eval *e, uint32_t fragment, uint32_t team)
{
    return e->fragments[fragment] + (size_t)team * eval_elements(e, fragment);
}

frit_status eval_fragments_init(struct eval *e)
{
    uint32_t n = e->phase->n_fragments;

    e->each = (struct eval_each){0};
    e->fragments = calloc((size_t)n + 1, sizeof(*e->fragments));
    if (!e->fragments)
        return fail_memory(e->err, n * sizeof(*e->fragments));
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = (size_t)teams_of(e) * eval_elements(e, i) * sizeof(**e->fragments);

        e->fragments[i] = malloc(bytes);
        if (!e->fragments[i])
            return fail_memory(e->err, bytes);
    }
    return FRIT_OK;
}

void eval_fragments_fini(struct eval *e)
{
    for (uint32_t i = 0; e->fragments && i < e->phase->n_fragments; i++)
        free(e->fragments[i]);
    free(e->fragments);
    e->fragments = NULL;
}

static bool is_wide(const struct eval *e, uint32_t fragment)
{
    enum kir_type type = kir_type_of(e->phase->fragments[fragment].dtype);

    return type == KIR_F64 || type == KIR_I64;
}

void eval_fragments_reset(struct eval *e)
{
    for (uint32_t f = 0; f < e->phase->n_fragments; f++)
        for (size_t i = 0; i < (size_t)teams_of(e) * eval_elements(e, f); i++)
            e->fragments[f][i] = is_wide(e, f) ? UINT64_MAX : UINT32_MAX;
}

/* ---- loads and stores ---- */

/* The value that the lanes of a team have. */
static frit_status team_value(const struct eval *e, uint32_t value, uint32_t team, int64_t *out)
{
    const uint64_t *bits = eval_value(e, value) + (size_t)team * e->phase->team;

    for (uint32_t i = 1; i < e->phase->team; i++)
        if (bits[i] != bits[0])
            return eval_fail(e, "%%%u is not the same in all lanes of team %u", value, team);
    *out = e->phase->inst[value].type == KIR_I32 ? (int32_t)(uint32_t)bits[0] : (int64_t)bits[0];
    return FRIT_OK;
}

static frit_status move_element(struct eval *e, const struct kir_fragment_place *place,
                                uint32_t lane, int64_t at, uint64_t *element)
{
    if (e->inst->op == KIR_mload)
        return place->is_tile ? eval_tread(e, lane, at, element) : eval_read(e, lane, at, element);
    return place->is_tile ? eval_twrite(e, lane, at, *element) : eval_write(e, lane, at, *element);
}

static frit_status move_elements(struct eval *e, uint32_t team)
{
    const struct kir_fragment_place place = kir_fragment_place_of(e->inst->imm);
    const struct kir_fragment *f = &e->phase->fragments[place.fragment];
    uint64_t *elements = elements_of(e, place.fragment, team);
    int64_t first, stride;

    TRY(team_value(e, e->inst->a[0], team, &first));
    TRY(team_value(e, e->inst->a[1], team, &stride));
    for (uint32_t r = 0; r < f->rows; r++)
        for (uint32_t c = 0; c < f->columns; c++) {
            int64_t at = kir_fragment_at(&place, r, c, first, stride);

            TRY(move_element(e, &place, team * e->phase->team, at, &elements[r * f->columns + c]));
        }
    return FRIT_OK;
}

frit_status eval_mload(struct eval *e)
{
    for (uint32_t team = 0; team < teams_of(e); team++)
        TRY(move_elements(e, team));
    return FRIT_OK;
}

frit_status eval_mstore(struct eval *e)
{
    return eval_mload(e);
}

frit_status eval_mfill(struct eval *e)
{
    uint32_t fragment = (uint32_t)e->inst->imm, value = e->inst->a[0];

    for (uint32_t team = 0; team < teams_of(e); team++) {
        uint64_t bits = eval_value(e, value)[(size_t)team * e->phase->team];

        for (uint32_t i = 0; i < eval_elements(e, fragment); i++)
            elements_of(e, fragment, team)[i] = bits;
    }
    return FRIT_OK;
}

/* ---- products ---- */

static double as_double(uint64_t bits)
{
    double real;

    memcpy(&real, &bits, sizeof(real));
    return real;
}

static uint64_t add_product(enum kir_type type, uint64_t sum, uint64_t a, uint64_t b)
{
    double wide;

    if (type == KIR_I32)
        return (uint32_t)((uint32_t)sum + (uint32_t)a * (uint32_t)b);
    if (type == KIR_F32)
        return half_bits_of(fmaf(half_real_of((uint32_t)a), half_real_of((uint32_t)b),
                                 half_real_of((uint32_t)sum)));
    wide = fma(as_double(a), as_double(b), as_double(sum));
    memcpy(&sum, &wide, sizeof(sum));
    return sum;
}

frit_status eval_mma(struct eval *e)
{
    const uint32_t sum = kir_factor(e->inst->imm, 0), left = kir_factor(e->inst->imm, 1),
                   right = kir_factor(e->inst->imm, 2);
    const struct kir_fragment *f = e->phase->fragments;
    const enum kir_type type = kir_type_of(f[sum].dtype);

    for (uint32_t team = 0; team < teams_of(e); team++) {
        uint64_t *to = elements_of(e, sum, team), *a = elements_of(e, left, team),
                 *b = elements_of(e, right, team);

        for (uint32_t i = 0; i < eval_elements(e, sum); i++)
            for (uint32_t k = 0; k < f[left].columns; k++)
                to[i] = add_product(type, to[i], a[i / f[sum].columns * f[left].columns + k],
                                    b[k * f[right].columns + i % f[sum].columns]);
    }
    return FRIT_OK;
}

/* ---- rows ---- */

static double real_of(enum kir_type type, uint64_t bits)
{
    return type == KIR_I32   ? (double)(int32_t)(uint32_t)bits
           : type == KIR_F32 ? (double)half_real_of((uint32_t)bits)
                             : as_double(bits);
}

static uint64_t larger(enum kir_type type, uint64_t a, uint64_t b)
{
    return real_of(type, a) < real_of(type, b) ? b : a;
}

static uint64_t total(enum kir_type type, uint64_t a, uint64_t b)
{
    double sum = as_double(a) + as_double(b);

    if (type == KIR_I32)
        return (uint32_t)(a + b);
    if (type == KIR_F32)
        return half_bits_of(half_real_of((uint32_t)a) + half_real_of((uint32_t)b));
    memcpy(&a, &sum, sizeof(sum));
    return a;
}

static frit_status fold_rows(struct eval *e, uint64_t (*fold)(enum kir_type, uint64_t, uint64_t))
{
    const uint32_t to = kir_factor(e->inst->imm, 0), from = kir_factor(e->inst->imm, 1);
    const struct kir_fragment *f = &e->phase->fragments[from];

    for (uint32_t team = 0; team < teams_of(e); team++)
        for (uint32_t r = 0; r < f->rows; r++) {
            const uint64_t *row = elements_of(e, from, team) + (size_t)r * f->columns;
            uint64_t folded = row[0];

            for (uint32_t c = 1; c < f->columns; c++)
                folded = fold(kir_type_of(f->dtype), folded, row[c]);
            for (uint32_t c = 0; c < f->columns; c++)
                elements_of(e, to, team)[r * f->columns + c] = folded;
        }
    return FRIT_OK;
}

frit_status eval_mlargest(struct eval *e)
{
    return fold_rows(e, larger);
}

frit_status eval_mtotal(struct eval *e)
{
    return fold_rows(e, total);
}

static uint64_t narrowed(uint32_t dtype, uint64_t bits)
{
    uint32_t fraction = frit_dtype_info_of(dtype).fraction;

    if (!kir_is_16_bit_float(dtype))
        return bits;
    return half_bits_of(half_load(half_store(half_real_of((uint32_t)bits), fraction), fraction));
}

frit_status eval_mnarrow(struct eval *e)
{
    const uint32_t to = kir_factor(e->inst->imm, 0), from = kir_factor(e->inst->imm, 1);

    for (uint32_t team = 0; team < teams_of(e); team++)
        for (uint32_t i = 0; i < eval_elements(e, from); i++)
            elements_of(e, to, team)[i] =
                narrowed(e->phase->fragments[to].dtype, elements_of(e, from, team)[i]);
    return FRIT_OK;
}

static uint64_t product(enum kir_type type, uint64_t a, uint64_t b)
{
    double product = as_double(a) * as_double(b);

    if (type == KIR_I32)
        return (uint32_t)((uint32_t)a * (uint32_t)b);
    if (type == KIR_F32)
        return half_bits_of(half_real_of((uint32_t)a) * half_real_of((uint32_t)b));
    memcpy(&a, &product, sizeof(product));
    return a;
}

frit_status eval_mscale(struct eval *e)
{
    const uint32_t to = kir_factor(e->inst->imm, 0), by = kir_factor(e->inst->imm, 1);
    const enum kir_type type = kir_type_of(e->phase->fragments[to].dtype);

    for (uint32_t team = 0; team < teams_of(e); team++)
        for (uint32_t i = 0; i < eval_elements(e, to); i++)
            elements_of(e, to, team)[i] =
                product(type, elements_of(e, to, team)[i], elements_of(e, by, team)[i]);
    return FRIT_OK;
}

/* ---- each ---- */

/* The element of a lane in this round; NULL: it has none. */
static uint64_t *element_of(const struct eval *e, uint32_t lane)
{
    uint32_t team = lane / e->phase->team, fragment = (uint32_t)e->each.inst->imm;

    return eval_is_idle(e, lane) ? NULL
                                 : elements_of(e, fragment, team) + e->each.round * e->phase->team +
                                       lane % e->phase->team;
}

static void begin_round(struct eval *e)
{
    uint64_t *out = eval_value(e, (uint32_t)(e->each.inst - e->phase->inst));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++) {
        const uint64_t *element = element_of(e, lane);

        out[lane] = element ? *element : 0;
    }
}

frit_status eval_each(struct eval *e)
{
    e->each = (struct eval_each){.inst = e->inst};
    begin_round(e);
    return FRIT_OK;
}

frit_status eval_peer(struct eval *e)
{
    const uint32_t team = e->phase->team;
    uint64_t *out = eval_value(e, (uint32_t)(e->inst - e->phase->inst));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        out[lane] = eval_is_idle(e, lane)
                        ? 0
                        : elements_of(e, (uint32_t)e->inst->imm,
                                      lane / team)[e->each.round * team + lane % team];
    return FRIT_OK;
}

/* Rows, or columns, of the lanes' elements. */
static frit_status coordinates(struct eval *e, bool rows)
{
    const uint32_t columns = e->phase->fragments[e->each.inst->imm].columns, team = e->phase->team;
    uint64_t *out = eval_value(e, (uint32_t)(e->inst - e->phase->inst));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++) {
        uint32_t number = e->each.round * team + lane % team;

        out[lane] = rows ? number / columns : number % columns;
    }
    return FRIT_OK;
}

frit_status eval_row_of(struct eval *e)
{
    return coordinates(e, true);
}

frit_status eval_column_of(struct eval *e)
{
    return coordinates(e, false);
}

frit_status eval_done(struct eval *e)
{
    const uint64_t *values = eval_value(e, e->inst->a[0]);

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        if (!eval_is_idle(e, lane))
            *element_of(e, lane) = values[lane];
    e->each.round++;
    if (e->each.round * e->phase->team >= eval_elements(e, (uint32_t)e->each.inst->imm)) {
        e->each = (struct eval_each){0};
        return FRIT_OK;
    }
    e->inst = e->each.inst;
    begin_round(e);
    return FRIT_OK;
}
