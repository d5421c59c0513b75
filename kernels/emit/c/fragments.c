/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments.  What a team does together ends a region, and is written once for each team, with the
 * values of its first thread; an each is a loop in a region, over the elements that a thread has.
 *
 * All fragments are of 16 by 16 elements: two products of mma.sync m16n8k16.  A thread has 8
 * elements of sums and 4 words with 2 elements each of what is multiplied (words.c). */
#include "emit/c/fragments.h"

#include "base/fail.h"

#include "emit/c/rows.h"

enum { SIDE = 16, LEAST_EVEN = 8 /* elements, where ldmatrix may read */ };

static bool is_known(const struct kir_fragment *f)
{
    if (f->rows != SIDE || f->columns != SIDE)
        return false;
    return f->use == KIR_SUM ? f->dtype == FRIT_F32 : f->dtype == FRIT_F16 || f->dtype == FRIT_BF16;
}

frit_status fragments_check(const struct kir_module *module, uint32_t phase,
                            const struct ctext_target *target, frit_err *err)
{
    const struct kir_phase *p = &module->phases[phase];

    if (p->n_fragments && target->dialect != CTEXT_CUDA)
        return kir_refuse_fragments(module, err);
    for (uint32_t i = 0; i < p->n_fragments; i++)
        if (!is_known(&p->fragments[i]))
            return fail(err, FRIT_UNSUPPORTED, "kernel %s: fragment %u is none of the device's",
                        module->name, i);
    return FRIT_OK;
}

void fragments_declare(struct writer *w)
{
    if (w->phase->n_fragments)
        str_addf(w->out, "#undef TEAM\n#define TEAM %uu\n", w->target->warp);
    for (uint32_t i = 0; i < w->phase->n_fragments; i++)
        str_addf(writer_group_line(w), "%s(f%u);\n",
                 w->phase->fragments[i].use == KIR_SUM ? "SUMS" : "FACTOR", i);
}

/* ---- what a team does ---- */

/* Begins a line for each team. */
static struct str *begin_team(struct writer *w)
{
    struct str *out;

    writer_end_region(w);
    out = writer_group_line(w);
    str_addf(out, "FOR_TEAMS ");
    return out;
}

void fragments_fill(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    struct str *out = begin_team(w);

    str_addf(out, "MFILL(f%u, ", (uint32_t)inst->imm);
    writer_value(w, out, inst->a[0], 0);
    str_addf(out, ");\n");
}

static const char *index_type(const struct writer *w, uint32_t value)
{
    return writer_inst(w, value)->type == KIR_I64 ? "i64" : "i32";
}

/* How two neighbours of a fragment, along rows, lie in memory. */
static const char *access_of(const struct writer *w, const struct kir_inst *inst,
                             const struct kir_fragment_place *place)
{
    const uint32_t *even = w->shape.even;
    const bool aligned = place->is_tile || w->shape.aligned;
    const uint32_t least =
        even[inst->a[0]] < even[inst->a[1]] ? even[inst->a[0]] : even[inst->a[1]];
    const bool sums = w->phase->fragments[place->fragment].use == KIR_SUM;

    if (!sums && place->is_tile && least >= LEAST_EVEN)
        return "MATRIX";
    /* Pairs are of k, or columns of sums. */
    if (sums || (w->phase->fragments[place->fragment].use == KIR_LEFT) != place->by_columns)
        return aligned && least >= 2 && !(sums && place->by_columns) ? "PAIRS" : "SINGLE";
    return "SINGLE";
}

/* "FORM(f1, DTYPE, pointer, stride, is_right, by_columns)" */
static void write_move(struct writer *w, uint32_t at, const char *name)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const struct kir_fragment_place place = kir_fragment_place_of(inst->imm);
    const struct kir_fragment *f = &w->phase->fragments[place.fragment];
    const uint32_t dtype =
        place.is_tile ? w->phase->tiles[place.place].dtype : w->module->args[place.place].dtype;
    struct str *out = begin_team(w);

    str_addf(out, "%s_%s(f%u, %s, %s%u + (%s)", name, access_of(w, inst, &place), place.fragment,
             rows_memory_name(dtype), place.is_tile ? "t" : "a", place.place,
             index_type(w, inst->a[0]));
    writer_value(w, out, inst->a[0], 0);
    str_addf(out, ", (%s)", index_type(w, inst->a[1]));
    writer_value(w, out, inst->a[1], 0);
    str_addf(out, ", %d, %d);\n", f->use == KIR_RIGHT, place.by_columns);
}

void fragments_load(struct writer *w, uint32_t at)
{
    const struct kir_fragment_place place = kir_fragment_place_of(writer_inst(w, at)->imm);

    write_move(w, at, w->phase->fragments[place.fragment].use == KIR_SUM ? "SLOAD" : "MLOAD");
}

void fragments_store(struct writer *w, uint32_t at)
{
    write_move(w, at, "MSTORE");
}

void fragments_multiply(struct writer *w, uint32_t at)
{
    const uint64_t imm = writer_inst(w, at)->imm;

    str_addf(begin_team(w), "MMA_%s(f%u, f%u, f%u);\n",
             rows_memory_name(w->phase->fragments[kir_factor(imm, 1)].dtype), kir_factor(imm, 0),
             kir_factor(imm, 1), kir_factor(imm, 2));
}

/* ---- each ---- */

void fragments_each(struct writer *w, uint32_t at)
{
    str_addf(writer_line(w), "FOR_ELEMENTS {\n");
    w->body_deep++;
    w->each = (uint32_t)writer_inst(w, at)->imm;
    str_addf(writer_begin(w, at, 0), "ELEMENT(f%u);\n", w->each);
}

void fragments_coordinate(struct writer *w, uint32_t at)
{
    str_addf(writer_begin(w, at, 0), "%s;\n",
             writer_inst(w, at)->op == KIR_row ? "ELEMENT_ROW" : "ELEMENT_COLUMN");
}

void fragments_done(struct writer *w, uint32_t at)
{
    struct str *out = writer_line(w);

    str_addf(out, "ELEMENT(f%u) = ", w->each);
    writer_value(w, out, writer_inst(w, at)->a[0], 0);
    str_addf(out, ";\n");
    w->body_deep--;
    str_addf(writer_line(w), "}\n");
    w->each = KIR_NONE;
}
