/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows, and the cases that follow from it: row x element type x form x layout. */
#include "conform/cases.h"

#include <stdlib.h>
#include <string.h>

#include "conform/conform.h"

#define CONFORM_FORMS(list)                         static const struct conform_form list##_forms[] = {
#define CONFORM_FORM(quick, shape, operands, attrs) {shape, operands, attrs, quick},
#define CONFORM_FORMS_END(list) \
    {                           \
        NULL, NULL, NULL, false \
    }                           \
    }                           \
    ;
#include "conform/rows.def"

static const struct {
    uint32_t op;
    enum conform_rule rule;
    const struct conform_form *forms;
    const char *kinds, *types;
    uint32_t ulp;
} rows[] = {
#define CONFORM_ROW(row, list, kinds, types, RULE, ulp) \
    {FRIT_OP_##row, CONFORM_##RULE, list##_forms, kinds, types, ulp},
#include "conform/rows.def"
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool is_listed(uint32_t op)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].op == op)
            return true;
    return false;
}

/* The index-th of the functions of one float that rows.def does not list; NULL: there are fewer. */
static const frit_op_info *function_at(size_t index)
{
    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *op = frit_op_info_at(id);

        if (op && op->cls == FRIT_CLASS_MAP && op->in[0].letter == FRIT_LETTER_F &&
            !op->in[1].name && op->record == FRIT_RECORD_none && !is_listed(id) && index-- == 0)
            return op;
    }
    return NULL;
}

bool conform_row_at(size_t index, struct conform_row *out)
{
    if (index >= N_ROWS) {
        *out = (struct conform_row){.op = function_at(index - N_ROWS),
                                    .forms = one_forms,
                                    .kinds = "G",
                                    .types = "",
                                    .rule = CONFORM_NEAR,
                                    .ulp = 4};
    } else {
        *out = (struct conform_row){.op = frit_op_info_at(rows[index].op),
                                    .forms = rows[index].forms,
                                    .kinds = rows[index].kinds,
                                    .types = rows[index].types,
                                    .rule = rows[index].rule,
                                    .ulp = rows[index].ulp};
    }
    out->name = out->op ? out->op->name : NULL;
    return out->op;
}

/* ---- which element types ---- */

/* The letter of the first operand whose element type the row does not fix; D if there is none. */
static uint32_t open_letter(const frit_op_info *op)
{
    for (const frit_slot_info *slot = op->in; slot->name; slot++)
        if (slot->letter != FRIT_LETTER_BOOL && slot->letter != FRIT_LETTER_I &&
            slot->letter != FRIT_LETTER_P && slot->role != FRIT_ROLE_NUM)
            return slot->letter;
    return FRIT_LETTER_D;
}

bool conform_letter_takes(uint32_t letter, uint32_t dtype)
{
    uint32_t cls = frit_dtype_info_of(dtype).cls;

    if (cls == 0 || cls == FRIT_DTYPE_PACKED)
        return false;
    switch (letter) {
    case FRIT_LETTER_F:
        return cls == FRIT_DTYPE_FLOAT;
    case FRIT_LETTER_N:
        return cls != FRIT_DTYPE_BOOL;
    case FRIT_LETTER_Z:
        return cls == FRIT_DTYPE_INT || cls == FRIT_DTYPE_UINT;
    case FRIT_LETTER_L:
        return cls != FRIT_DTYPE_FLOAT;
    default:
        return true;
    }
}

/* Whether `list` contains the word. */
static bool lists(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static bool row_takes(const struct conform_row *row, uint32_t dtype)
{
    if (!conform_letter_takes(open_letter(row->op), dtype))
        return false;
    return !*row->types || lists(row->types, frit_dtype_name(dtype));
}

/* ---- cases ---- */

/* Whether any operand gets special values: its kind is then an upper-case letter. */
static bool has_special(const struct conform_row *row)
{
    for (const char *kind = row->kinds; *kind; kind++)
        if (*kind >= 'A' && *kind <= 'Z')
            return true;
    return false;
}

/* Whether no operand has elements that another layout would move. */
static bool has_only_dense(const struct conform_form *form)
{
    return !strchr(form->operands, '[') || strstr(form->shape, "empty") ||
           strcmp(form->shape, "rank0") == 0 || strcmp(form->shape, "single") == 0;
}

/* Bools can be neither added nor multiplied. */
static bool form_takes(const struct conform_form *form, uint32_t dtype)
{
    return dtype != FRIT_BOOL ||
           (!strstr(form->attrs, "update=add") && !strstr(form->attrs, "update=mul"));
}

static bool add(struct conform_cases *cases, const struct conform_case *one)
{
    if (cases->count == cases->capacity) {
        size_t capacity = cases->capacity ? 2 * cases->capacity : 256;
        struct conform_case *at = realloc(cases->at, capacity * sizeof(*at));

        if (!at)
            return false;
        cases->at = at;
        cases->capacity = capacity;
    }
    cases->at[cases->count++] = *one;
    return true;
}

/* The element type that most cases of --quick use.  Other types differ from it in loads, stores and
 * arithmetic, not in addressing. */
static uint32_t quick_type(const struct conform_row *row)
{
    uint32_t dtype = FRIT_F32;

    if (row_takes(row, dtype))
        return dtype;
    for (dtype = 1; dtype < FRIT_DTYPE_LIMIT - 1 && !row_takes(row, dtype);)
        dtype++;
    return dtype;
}

/* Large shapes test how work is split, which few layouts change; the other shapes test addressing.
 */
static bool layout_matters(const struct conform_form *form, uint32_t layout)
{
    return strncmp(form->shape, "large", strlen("large")) != 0 || layout == LAYOUT_DENSE ||
           layout == LAYOUT_PERMUTED || layout == LAYOUT_DYING;
}

/* Without --quick every shape is tested in all layouts that matter.  With --quick only the shape
 * "odd" in the quick type is.  Other shapes in that type, and "odd" in other types, are tested in
 * one layout besides the dense one; `rotation` picks it, so that it varies. */
static bool has_layout(const struct conform_case *one, uint32_t layout, size_t rotation, bool quick)
{
    bool first = one->dtype == quick_type(&one->row), odd = strcmp(one->form->shape, "odd") == 0;

    if (layout == LAYOUT_DENSE || has_only_dense(one->form))
        return layout == LAYOUT_DENSE;
    if (!layout_matters(one->form, layout))
        return false;
    return !quick || (first && odd) || ((first || odd) && layout == 1 + rotation % (N_LAYOUTS - 1));
}

/* Whether types other than the quick one have special values, too, with --quick. */
static bool is_typical(const struct conform_form *form)
{
    return strcmp(form->shape, "odd") == 0 || strcmp(form->shape, "pairs") == 0 ||
           strncmp(form->shape, "to-", strlen("to-")) == 0;
}

static bool add_layouts(struct conform_cases *cases, struct conform_case *one, size_t rotation,
                        bool quick)
{
    for (uint32_t layout = 0; layout < N_LAYOUTS; layout++) {
        if (!has_layout(one, layout, rotation, quick))
            continue;
        one->layout = (enum conform_layout)layout;
        if (!add(cases, one))
            return false;
    }
    one->layout = LAYOUT_DENSE;
    one->special = !has_only_dense(one->form) && has_special(&one->row) &&
                   (!quick || one->dtype == quick_type(&one->row) || is_typical(one->form));
    if (one->special && !add(cases, one))
        return false;
    one->special = false;
    return true;
}

bool conform_cases_add(struct conform_cases *cases, const struct conform_row *row, bool quick)
{
    struct conform_case one = {.row = *row};

    if (row->rule == CONFORM_NEVER)
        return true;
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++) {
        if (!row_takes(row, dtype))
            continue;
        one.dtype = dtype;
        for (one.form = row->forms; one.form->shape; one.form++) {
            size_t rotation = row->op->id + dtype + (size_t)(one.form - row->forms);

            if ((one.form->quick || !quick) && form_takes(one.form, dtype) &&
                !add_layouts(cases, &one, rotation, quick))
                return false;
        }
    }
    return true;
}

bool conform_check_add(struct conform_cases *cases, const struct conform_check *check)
{
    const struct conform_case one = {.check = check, .row = {.name = check->group}};

    return add(cases, &one);
}

bool conform_checks_add(struct conform_cases *cases)
{
    static const struct conform_check *const groups[] = {
        device_checks,    describe_checks, peer_checks,    memory_checks, heap_checks,
        queue_checks,     command_checks,  timeout_checks, clock_checks,  capture_checks,
        kernel_checks,    program_checks,  wide_checks,    spec_checks,   fuser_checks,
        candidate_checks, fault_checks};

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (const struct conform_check *check = groups[i]; check->group; check++)
            if (!conform_check_add(cases, check))
                return false;
    }
    return true;
}

const char *conform_case_name(const struct conform_case *one, char text[CONFORM_NAME])
{
    static const char *const layouts[N_LAYOUTS] = {
        [LAYOUT_DENSE] = "dense",         [LAYOUT_PERMUTED] = "permuted",
        [LAYOUT_STRIDED] = "strided",     [LAYOUT_REVERSED] = "reversed",
        [LAYOUT_STRETCHED] = "stretched", [LAYOUT_INSIDE] = "inside",
        [LAYOUT_DYING] = "dying",
    };

    if (one->check)
        snprintf(text, CONFORM_NAME, "%s/%s", one->row.name, one->check->name);
    else
        snprintf(text, CONFORM_NAME, "%s/%s/%s/%s", one->row.name, frit_dtype_name(one->dtype),
                 one->form->shape, one->special ? "special" : layouts[one->layout]);
    return text;
}
