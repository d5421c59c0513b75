/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values of the text form, one reader per field type.  A reader fills the record; where
 * an extent depends on named dims, it leaves a patch for binding. */
#include "graph/text/text_attrs.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "graph/dtype.h"
#include "graph/foreign.h"
#include "graph/scalar.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_number.h"
#include "graph/text/text_op.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

/* An attribute that is being read. */
struct attr {
    struct parser *p;
    struct script_step *step;
    const frit_field_info *field;
};

static frit_status fail_expected(const struct attr *a, const char *what)
{
    char found[80];

    return parse_fail(a->p, &a->p->token, "%s is %s, found %s", a->field->name, what,
                      lex_describe(&a->p->token, found, sizeof(found)));
}

/* ---- numbers and extents ---- */

static frit_status read_integer(const struct attr *a, int64_t *out)
{
    frit_scalar number;

    if (a->p->token.kind != TOKEN_NUMBER || number_parse(a->p->token.text, &number) ||
        number.kind != FRIT_SCALAR_I64)
        return fail_expected(a, "made of whole numbers");
    *out = (int64_t)number.bits;
    return parse_advance(a->p);
}

/* A whole number now, or one that follows from named dims once they are known. */
static frit_status read_extent(const struct attr *a, int64_t *out)
{
    struct script *s = a->p->script;
    struct script_patch patch = {.offset = (uint32_t)((char *)out - (char *)a->step->attrs),
                                 .line = a->p->token.line,
                                 .column = a->p->token.column};

    TRY(parse_extent(a->p, a->field->name, &patch.extent));
    if (extent_is_number(s, &patch.extent, out))
        return FRIT_OK;
    TRY(parse_reserve(a->p, &s->patches, &s->patches_capacity, s->n_patches, sizeof(*s->patches)));
    s->patches[s->n_patches++] = patch;
    a->step->n_patches++;
    return FRIT_OK;
}

/* [item, ...] of at most `most` items; `read` gets each. */
static frit_status read_list(const struct attr *a, uint32_t most, uint32_t *count,
                             frit_status (*read)(const struct attr *a, void *list, uint32_t index),
                             void *list)
{
    *count = 0;
    if (!parse_at_sign(a->p, '['))
        return fail_expected(a, "a list in [ ]");
    TRY(parse_advance(a->p));
    while (!parse_at_sign(a->p, ']')) {
        if (*count)
            TRY(parse_sign(a->p, ',', "or ']' in the list"));
        if (*count == most)
            return parse_fail(a->p, &a->p->token, "%s has more than %u entries%s", a->field->name,
                              most, foreign_list(a->field->name));
        TRY(read(a, list, *count));
        ++*count;
    }
    return parse_advance(a->p);
}

static frit_status read_integer_item(const struct attr *a, void *list, uint32_t index)
{
    return read_integer(a, (int64_t *)list + index);
}

static frit_status read_extent_item(const struct attr *a, void *list, uint32_t index)
{
    return read_extent(a, (int64_t *)list + index);
}

/* ---- one reader per field type ---- */

static frit_status read_int(const struct attr *a, void *at)
{
    return read_extent(a, at);
}

static frit_status read_axis(const struct attr *a, void *at)
{
    return read_integer(a, at);
}

static frit_status read_flag(const struct attr *a, void *at)
{
    int64_t *flag = at;

    if (parse_at_word(a->p, "true") || parse_at_word(a->p, "false")) {
        *flag = parse_at_word(a->p, "true");
        return parse_advance(a->p);
    }
    if (a->p->token.kind != TOKEN_NUMBER ||
        (!str_is(a->p->token.text, "0") && !str_is(a->p->token.text, "1")))
        return fail_expected(a, "0 or 1");
    *flag = str_is(a->p->token.text, "1");
    return parse_advance(a->p);
}

static frit_status fail_choice(const struct attr *a)
{
    const frit_choice_info *choice;
    struct str words = {0};
    frit_status st;

    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (strcmp(choice->list, a->field->choices) == 0)
            str_addf(&words, "%s%s", words.length ? ", " : "one of ", choice->name);
    }
    st = words.failed ? fail_memory(a->p->err, words.length) : fail_expected(a, words.text);
    str_fini(&words);
    return st;
}

static frit_status read_choice(const struct attr *a, void *at)
{
    const frit_choice_info *choice;

    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (strcmp(choice->list, a->field->choices) == 0 && parse_at_word(a->p, choice->name)) {
            memcpy(at, &choice->value, sizeof(choice->value));
            return parse_advance(a->p);
        }
    }
    return fail_choice(a);
}

static frit_status fail_dtype(const struct attr *a)
{
    const char *ours = a->p->token.kind == TOKEN_NAME ? foreign_dtype(a->p->token.text) : NULL;
    char what[64];

    snprintf(what, sizeof(what), "an element type such as %s", ours ? ours : "f32");
    return fail_expected(a, what);
}

static frit_status read_dtype(const struct attr *a, void *at)
{
    int64_t dtype =
        a->p->token.kind == TOKEN_NAME ? (int64_t)dtype_find(a->p->token.text) : FRIT_NO_DTYPE;

    if (dtype == FRIT_NO_DTYPE)
        return fail_dtype(a);
    memcpy(at, &dtype, sizeof(dtype));
    return parse_advance(a->p);
}

/* A number alone is a list of one. */
static frit_status read_axes(const struct attr *a, void *at)
{
    frit_axes *axes = at;
    uint32_t count = 1;

    if (a->p->token.kind == TOKEN_NUMBER)
        TRY(read_integer(a, axes->axis));
    else
        TRY(read_list(a, FRIT_MAX_RANK, &count, read_integer_item, axes->axis));
    axes->count = count;
    return FRIT_OK;
}

static frit_status read_dims(const struct attr *a, void *at)
{
    frit_dims *dims = at;
    uint32_t count;

    TRY(read_list(a, FRIT_MAX_RANK, &count, read_extent_item, dims->dim));
    dims->rank = count;
    return FRIT_OK;
}

static frit_status read_vec(const struct attr *a, void *at)
{
    uint32_t count;

    return read_list(a, 3, &count, read_extent_item, at);
}

/* [start] : [stop] [: [step]]; what is left out is the end that the step comes from or goes to. */
static frit_status read_range(const struct attr *a, void *list, uint32_t index)
{
    frit_range *range = (frit_range *)list + index;
    bool starts = parse_at_extent(a->p);

    *range = (frit_range){0, FRIT_SLICE_END, 1};
    if (starts)
        TRY(read_extent(a, &range->start));
    TRY(parse_sign(a->p, ':', "in a slice start:stop:step"));
    if (parse_at_extent(a->p))
        TRY(read_extent(a, &range->stop));
    if (!parse_at_sign(a->p, ':'))
        return FRIT_OK;
    TRY(parse_advance(a->p));
    if (a->p->token.kind != TOKEN_NUMBER)
        return FRIT_OK;
    if (str_is(a->p->token.text, "0"))
        return parse_fail(a->p, &a->p->token, "a slice's step cannot be 0");
    TRY(read_integer(a, &range->step));
    if (range->step < 0 && !starts)
        range->start = INT64_MAX; /* clipped to the last element */
    return FRIT_OK;
}

static frit_status read_slices(const struct attr *a, void *at)
{
    frit_slices *slices = at;
    uint32_t count;

    TRY(read_list(a, FRIT_MAX_RANK, &count, read_range, slices->dim));
    slices->count = count;
    return FRIT_OK;
}

static frit_status read_real(const struct attr *a, void *at)
{
    double *real = at;
    frit_scalar number;

    if (a->p->token.kind != TOKEN_NUMBER || number_parse(a->p->token.text, &number))
        return fail_expected(a, "a number");
    *real = scalar_number(&number);
    return parse_advance(a->p);
}

static frit_status (*const readers[])(const struct attr *a, void *at) = {
    [FRIT_ATTR_INT] = read_int,     [FRIT_ATTR_FLAG] = read_flag, [FRIT_ATTR_CHOICE] = read_choice,
    [FRIT_ATTR_DTYPE] = read_dtype, [FRIT_ATTR_AXIS] = read_axis, [FRIT_ATTR_AXES] = read_axes,
    [FRIT_ATTR_DIMS] = read_dims,   [FRIT_ATTR_VEC] = read_vec,   [FRIT_ATTR_SLICES] = read_slices,
    [FRIT_ATTR_REAL] = read_real,
};

/* ---- the list of attributes ---- */

/* `axis` also stands for a field `axes`. */
static uint32_t find_field(const frit_record_info *record, frit_str name)
{
    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (str_is(name, record->field[i].name))
            return i;
    }
    return str_is(name, "axis") ? find_field(record, FRIT_STR("axes")) : record->n_fields;
}

static frit_status fail_unknown_attr(const struct parser *p, const frit_op_info *row)
{
    const frit_record_info *record = op_record(row);
    const char *names[FRIT_OP_MAX_FIELDS], *nearest;
    char word[TEXT_MAX_NAME + 1], hint[160];
    const struct foreign *foreign;
    struct str list = {0};
    frit_status st;

    for (uint32_t i = 0; i < record->n_fields; i++) {
        names[i] = record->field[i].name;
        str_addf(&list, "%s%s", i ? ", " : "; it has ", names[i]);
    }
    nearest = str_nearest(parse_word(p->token.text, word), names, record->n_fields);
    foreign = foreign_attr(p->token.text, names, record->n_fields);
    if (foreign)
        st = parse_fail(p, &p->token, "%s has no attribute '%s'%s", row->name, word,
                        foreign_text(foreign, hint, sizeof(hint)));
    else if (nearest)
        st = parse_fail(p, &p->token, "%s has no attribute '%s'; did you mean '%s'?", row->name,
                        word, nearest);
    else
        st = parse_fail(p, &p->token, "%s has no attribute '%s'%s", row->name, word,
                        list.text ? list.text : "");
    str_fini(&list);
    return st;
}

static frit_status parse_attr(struct parser *p, struct script_step *step, uint32_t *given)
{
    const frit_op_info *row = op_row(step->op);
    const frit_record_info *record = op_record(row);
    uint32_t index = find_field(record, p->token.text);
    struct attr a = {.p = p, .step = step};

    if (index == record->n_fields)
        return fail_unknown_attr(p, row);
    a.field = &record->field[index];
    if (*given >> index & 1)
        return parse_fail(p, &p->token, "%s is given twice", a.field->name);
    *given |= 1u << index;
    TRY(parse_advance(p));
    TRY(parse_sign(p, '=', "after the attribute"));
    return readers[a.field->type](&a, (char *)step->attrs + a.field->offset);
}

/* Positional fields have no default. */
static frit_status check_given(const struct parser *p, const struct script_step *step,
                               uint32_t given)
{
    const frit_op_info *row = op_row(step->op);
    const frit_record_info *record = op_record(row);

    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (record->field[i].place == FRIT_PLACE_POS && !(given >> i & 1))
            return script_fail(p->script, step->line, step->column, p->err,
                               "%s needs the attribute %s: %s", row->name, record->field[i].name,
                               record->field[i].meaning);
    }
    return FRIT_OK;
}

frit_status parse_attrs(struct parser *p, struct script_step *step)
{
    const frit_record_info *record = op_record(op_row(step->op));
    uint64_t size = record->size;
    uint32_t given = 0;

    step->patch = p->script->n_patches;
    if (record->n_fields) {
        step->attrs = arena_alloc(&p->script->arena, record->size);
        if (!step->attrs)
            return fail_memory(p->err, record->size);
        memcpy(step->attrs, &size, sizeof(size));
    }
    while (parse_at_attr(p)) {
        TRY(parse_attr(p, step, &given));
        if (!parse_at_sign(p, ','))
            break;
        TRY(parse_advance(p));
        if (!parse_at_attr(p))
            return parse_fail(p, &p->token, "expected attribute=value; operands stand before it");
    }
    return check_given(p, step, given);
}
