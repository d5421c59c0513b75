/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments.  What a team does together ends a region, and is written once for each team, with the
 * values of its first thread; an each is a loop in a region, over the elements that a thread has.
 *
 * Small ones are of 16 by 16 elements, in a warp: two products of mma.sync m16n8k16.  A thread has
 * 8 elements of sums and 4 words with 2 elements each of what is multiplied (words.c).
 *
 * Wide ones have sums of 64 rows and up to 256 columns, in 4 warps: wgmma.  What is multiplied
 * stays in tiles, of which a fragment is a descriptor.  They go on until the next barrier, or
 * another use of sums. */
#include "emit/c/fragments.h"

#include "base/fail.h"

#include "emit/c/rows.h"

enum {
    SIDE = 16,
    LEAST_EVEN = 8, /* elements, where a matrix may begin */
    WIDE_ROWS = 64,
    WIDE_STEP = 8,
    WIDE_MAX = 256, /* columns */
    WIDE_WARPS = 4
};

static bool is_factor_dtype(uint32_t dtype)
{
    return dtype == FRIT_F16 || dtype == FRIT_BF16;
}

static bool is_small(const struct kir_fragment *f)
{
    return f->rows == SIDE && f->columns == SIDE &&
           (f->use == KIR_SUM ? f->dtype == FRIT_F32 : is_factor_dtype(f->dtype));
}

static bool is_wide_columns(uint32_t columns)
{
    return columns % WIDE_STEP == 0 && columns <= WIDE_MAX;
}

static bool is_wide(const struct kir_fragment *f)
{
    switch (f->use) {
    case KIR_SUM:
        return f->rows == WIDE_ROWS && is_wide_columns(f->columns) && f->dtype == FRIT_F32;
    case KIR_LEFT:
        return f->rows == WIDE_ROWS && f->columns == SIDE && is_factor_dtype(f->dtype);
    default:
        return f->rows == SIDE && is_wide_columns(f->columns) && is_factor_dtype(f->dtype);
    }
}

/* Products of 64 rows, of 4 warps: those of fragments of which one has as many. */
static bool has_wide(const struct kir_phase *phase)
{
    for (uint32_t i = 0; i < phase->n_fragments; i++)
        if (phase->fragments[i].rows == WIDE_ROWS)
            return true;
    return false;
}

uint32_t fragments_team(const struct kir_phase *phase, const struct ctext_target *target)
{
    return has_wide(phase) ? WIDE_WARPS * target->warp : target->warp;
}

/* How the one load of a fragment of a wide product finds its elements; false: there are others. */
static bool find_layout(const struct kir_phase *phase, uint32_t fragment, bool *by_columns)
{
    bool found = false;

    for (uint32_t i = 0; i < phase->n; i++) {
        const struct kir_fragment_place place = kir_fragment_place_of(phase->inst[i].imm);

        if (phase->inst[i].op != KIR_mload || place.fragment != fragment)
            continue;
        if (!place.in_blocks || (found && place.by_columns != *by_columns))
            return false;
        found = true;
        *by_columns = place.by_columns;
    }
    return found;
}

static bool is_known(const struct kir_phase *phase, uint32_t fragment)
{
    const struct kir_fragment *f = &phase->fragments[fragment];
    bool by_columns = false;

    if (!has_wide(phase))
        return is_small(f);
    return is_wide(f) && (f->use == KIR_SUM || find_layout(phase, fragment, &by_columns));
}

frit_status fragments_check(const struct kir_module *module, uint32_t phase,
                            const struct ctext_target *target, frit_err *err)
{
    const struct kir_phase *p = &module->phases[phase];

    if (p->n_fragments && target->dialect != CTEXT_CUDA)
        return kir_refuse_fragments(module, err);
    for (uint32_t i = 0; i < p->n_fragments; i++)
        if (!is_known(p, i))
            return fail(err, FRIT_UNSUPPORTED, "kernel %s: fragment %u is none of the device's",
                        module->name, i);
    for (uint32_t i = 0; i < p->n && has_wide(p); i++)
        if (kir_op_info(p->inst[i].op)->imm == KIR_IMM_PAIR)
            return fail(err, FRIT_UNSUPPORTED, "kernel %s: folds rows of wide fragments",
                        module->name);
    return FRIT_OK;
}

static bool is_factor(const struct kir_fragment *f)
{
    return f->use != KIR_SUM;
}

void fragments_declare(struct writer *w)
{
    const char *prefix = has_wide(w->phase) ? "WIDE_" : "";

    if (w->phase->n_fragments)
        str_addf(w->out, "#undef TEAM\n#define TEAM %uu\n", fragments_team(w->phase, w->target));
    for (uint32_t i = 0; i < w->phase->n_fragments; i++) {
        const struct kir_fragment *f = &w->phase->fragments[i];

        str_addf(writer_group_line(w), "%s%s(fr%u, %u);\n", is_factor(f) ? prefix : "",
                 is_factor(f) ? "FACTOR" : "SUMS", i, f->rows * f->columns);
    }
}

/* ---- wide products ---- */

static void write_factors(struct str *out, uint64_t imm)
{
    str_addf(out, "fr%u, fr%u, fr%u", kir_factor(imm, 0), kir_factor(imm, 1), kir_factor(imm, 2));
}

/* Writes the products that are pending, of one fragment of sums, as one: compilers take long for
 * each that has as many operands.  Matrices lie along k, or turned. */
static void write_products(struct writer *w)
{
    const uint64_t imm = writer_inst(w, w->products[0])->imm;
    const uint32_t left = kir_factor(imm, 1), right = kir_factor(imm, 2);
    bool by_columns[2] = {false, false};
    struct str *out;

    if (!w->n_products)
        return;
    (void)find_layout(w->phase, left, &by_columns[0]);
    (void)find_layout(w->phase, right, &by_columns[1]);
    writer_end_region(w);
    out = writer_group_line(w);
    str_addf(out, "FOR_TEAMS WIDE_MMA_%u_%u(%s, %d, %d, fr%u", w->phase->fragments[right].columns,
             w->n_products, rows_memory_name(w->phase->fragments[left].dtype), by_columns[0],
             !by_columns[1], kir_factor(imm, 0));
    for (uint32_t i = 0; i < w->n_products; i++)
        str_addf(out, ", fr%u, fr%u", kir_factor(writer_inst(w, w->products[i])->imm, 1),
                 kir_factor(writer_inst(w, w->products[i])->imm, 2));
    str_addf(out, ");\n");
    w->n_products = 0;
}

void fragments_control(struct writer *w)
{
    w->multiplies = has_wide(w->phase);
}

/* Whether a product may be one with those pending: of the same sums, and of matrices that lie
 * likewise. */
static bool is_like_pending(const struct writer *w, uint64_t imm)
{
    const uint64_t first = writer_inst(w, w->products[0])->imm;
    bool mine[2] = {false, false}, theirs[2] = {false, false};

    for (uint32_t i = 0; i < 2; i++) {
        (void)find_layout(w->phase, kir_factor(imm, i + 1), &mine[i]);
        (void)find_layout(w->phase, kir_factor(first, i + 1), &theirs[i]);
    }
    return w->n_products < WRITER_PRODUCTS && kir_factor(imm, 0) == kir_factor(first, 0) &&
           mine[0] == theirs[0] && mine[1] == theirs[1];
}

static void add_product(struct writer *w, uint32_t at)
{
    if (w->n_products && !is_like_pending(w, writer_inst(w, at)->imm))
        write_products(w);
    w->products[w->n_products++] = at;
    w->multiplies = true;
}

static bool is_pending(const struct writer *w, uint32_t fragment)
{
    for (uint32_t i = 0; i < w->n_products; i++)
        if (kir_factor(writer_inst(w, w->products[i])->imm, 1) == fragment ||
            kir_factor(writer_inst(w, w->products[i])->imm, 2) == fragment)
            return true;
    return false;
}

void fragments_flush(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const bool is_pure =
        inst->op < KIR_load || inst->op == KIR_mma ||
        (inst->op == KIR_mload && !is_pending(w, kir_fragment_place_of(inst->imm).fragment));

    if (!is_pure)
        write_products(w);
}

void fragments_batch(struct writer *w, uint32_t at)
{
    (void)at;
    if (!has_wide(w->phase))
        return;
    writer_end_region(w);
    str_addf(writer_group_line(w), "WIDE_BATCH;\n");
}

static void write_wait(struct writer *w, uint32_t n)
{
    writer_end_region(w);
    str_addf(writer_group_line(w), "WIDE_WAIT(%u);\n", n);
}

void fragments_wait(struct writer *w, uint32_t at)
{
    if (has_wide(w->phase))
        write_wait(w, (uint32_t)writer_inst(w, at)->imm);
    w->multiplies = writer_inst(w, at)->imm > 0 && w->multiplies;
}

/* Sums are used otherwise: products go on until here. */
static void end_products(struct writer *w)
{
    if (!w->multiplies)
        return;
    fragments_batch(w, 0);
    write_wait(w, 0);
    w->multiplies = false;
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
    const struct kir_fragment *f = &w->phase->fragments[inst->imm];
    struct str *out;

    end_products(w);
    out = begin_team(w);
    str_addf(out, "MFILL(fr%u, %u, ", (uint32_t)inst->imm, f->rows * f->columns);
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

    if (!sums && has_wide(w->phase))
        return "WIDE";
    if (!sums && place->is_tile && !place->in_blocks && least >= LEAST_EVEN)
        return "MATRIX";
    if (place->in_blocks)
        return "BLOCKS";
    /* Pairs are of k, or columns of sums. */
    if (sums || (w->phase->fragments[place->fragment].use == KIR_LEFT) != place->by_columns)
        return aligned && least >= 2 && !(sums && place->by_columns) ? "PAIRS" : "SINGLE";
    return "SINGLE";
}

/* "FORM(f1, DTYPE, pointer, stride, is_right, by_columns, in_blocks, rows, columns)"; in blocks the
 * tile and the offset in it in place of the pointer. */
static void write_move(struct writer *w, uint32_t at, const char *name)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const struct kir_fragment_place place = kir_fragment_place_of(inst->imm);
    const struct kir_fragment *f = &w->phase->fragments[place.fragment];
    const uint32_t dtype =
        place.is_tile ? w->phase->tiles[place.place].dtype : w->module->args[place.place].dtype;
    struct str *out = begin_team(w);

    str_addf(out, "%s_%s(fr%u, %s, %s%u%s(%s)", name, access_of(w, inst, &place), place.fragment,
             rows_memory_name(dtype), place.is_tile ? "t" : "a", place.place,
             place.in_blocks ? ", " : " + ", index_type(w, inst->a[0]));
    writer_value(w, out, inst->a[0], 0);
    str_addf(out, ", (%s)", index_type(w, inst->a[1]));
    writer_value(w, out, inst->a[1], 0);
    str_addf(out, ", %d, %d, %d, %u, %u);\n", f->use == KIR_RIGHT, place.by_columns,
             place.in_blocks, f->rows, f->columns);
}

void fragments_load(struct writer *w, uint32_t at)
{
    const struct kir_fragment_place place = kir_fragment_place_of(writer_inst(w, at)->imm);

    if (!is_factor(&w->phase->fragments[place.fragment]))
        end_products(w);
    write_move(w, at, w->phase->fragments[place.fragment].use == KIR_SUM ? "SLOAD" : "MLOAD");
}

void fragments_store(struct writer *w, uint32_t at)
{
    end_products(w);
    write_move(w, at, "MSTORE");
}

void fragments_multiply(struct writer *w, uint32_t at)
{
    const uint64_t imm = writer_inst(w, at)->imm;
    struct str *out;

    if (has_wide(w->phase)) {
        add_product(w, at);
        return;
    }
    out = begin_team(w);
    str_addf(out, "MMA_%s(", rows_memory_name(w->phase->fragments[kir_factor(imm, 1)].dtype));
    write_factors(out, imm);
    str_addf(out, ");\n");
}

void fragments_fold(struct writer *w, uint32_t at)
{
    const uint64_t imm = writer_inst(w, at)->imm;

    str_addf(begin_team(w), "MFOLD(fr%u, fr%u, %s);\n", kir_factor(imm, 0), kir_factor(imm, 1),
             writer_inst(w, at)->op == KIR_mlargest ? "LARGER" : "TOTAL");
}

void fragments_narrow(struct writer *w, uint32_t at)
{
    const uint64_t imm = writer_inst(w, at)->imm;

    str_addf(begin_team(w), "MNARROW_%s(fr%u, fr%u);\n",
             rows_memory_name(w->phase->fragments[kir_factor(imm, 0)].dtype), kir_factor(imm, 0),
             kir_factor(imm, 1));
}

void fragments_scale(struct writer *w, uint32_t at)
{
    const uint32_t to = kir_factor(writer_inst(w, at)->imm, 0);
    const struct kir_fragment *f = &w->phase->fragments[to];

    end_products(w);
    str_addf(begin_team(w), "MSCALE(fr%u, %u, fr%u);\n", to, f->rows * f->columns,
             kir_factor(writer_inst(w, at)->imm, 1));
}

/* ---- each ---- */

void fragments_each(struct writer *w, uint32_t at)
{
    const uint32_t fragment = (uint32_t)writer_inst(w, at)->imm;
    const struct kir_fragment *f = &w->phase->fragments[fragment];

    end_products(w);
    str_addf(writer_line(w), "FOR_ELEMENTS(%u) {\n", f->rows * f->columns);
    w->body_deep++;
    w->each = fragment;
    str_addf(writer_begin(w, at, 0), "ELEMENT(fr%u);\n", w->each);
}

void fragments_peer(struct writer *w, uint32_t at)
{
    str_addf(writer_begin(w, at, 0), "ELEMENT(fr%u);\n", (uint32_t)writer_inst(w, at)->imm);
}

void fragments_coordinate(struct writer *w, uint32_t at)
{
    str_addf(writer_begin(w, at, 0), "%s(%u);\n",
             writer_inst(w, at)->op == KIR_row ? "ELEMENT_ROW" : "ELEMENT_COLUMN",
             w->phase->fragments[w->each].columns);
}

void fragments_done(struct writer *w, uint32_t at)
{
    struct str *out = writer_line(w);

    str_addf(out, "ELEMENT(fr%u) = ", w->each);
    writer_value(w, out, writer_inst(w, at)->a[0], 0);
    str_addf(out, ";\n");
    w->body_deep--;
    str_addf(writer_line(w), "}\n");
    w->each = KIR_NONE;
}
