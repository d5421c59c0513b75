/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text.  Attributes are printed as op_check left them; a named one whose zeroes mean the
 * same as its absence is left out. */
#include <inttypes.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/scalar.h"
#include "graph/text/text_const.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_number.h"
#include "graph/text/text_script.h"

static void print_text(struct str *out, const char *text)
{
    str_add(out, text, strlen(text));
}

static void print_quoted(const char *text, struct str *out)
{
    print_text(out, "\"");
    for (; *text; text++)
        str_addf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    print_text(out, "\"");
}

static void print_word(const char *name, struct str *out)
{
    if (lex_is_name(str_of(name)) && !lex_is_reserved(str_of(name)))
        print_text(out, name);
    else
        print_quoted(name, out);
}

static void print_name(const struct graph *graph, uint32_t value, struct str *out)
{
    if (graph->values[value].name)
        print_word(graph->values[value].name, out);
    else
        str_addf(out, "%%%" PRIu32, value);
}

/* ---- attributes, one printer per field type ---- */

/* A field that is being printed. */
struct field {
    const struct graph *graph;
    const struct graph_op *op;
    const frit_field_info *info;
    struct str *out;
};

static void print_list(struct str *out, const int64_t *items, int64_t count)
{
    print_text(out, "[");
    for (int64_t i = 0; i < count; i++)
        str_addf(out, "%s%" PRId64, i ? ", " : "", items[i]);
    print_text(out, "]");
}

static void print_int(const struct field *f, const void *at)
{
    str_addf(f->out, "%" PRId64, *(const int64_t *)at);
}

static void print_choice(const struct field *f, const void *at)
{
    const frit_choice_info *choice;

    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (choice->value == *(const int64_t *)at && strcmp(choice->list, f->info->choices) == 0)
            print_text(f->out, choice->name);
    }
}

static void print_dtype(const struct field *f, const void *at)
{
    print_text(f->out, dtype_name((uint32_t) * (const int64_t *)at));
}

static void print_axes(const struct field *f, const void *at)
{
    const frit_axes *axes = at;

    print_list(f->out, axes->axis, axes->count);
}

static void print_dims(const struct field *f, const void *at)
{
    const frit_dims *dims = at;

    print_list(f->out, dims->dim, dims->rank);
}

/* Prints one number per spatial dim of the first operand, which is x[n, c, spatial...] in every
 * core row with such a field; more if later numbers are not 0, which happens in custom ops. */
static void print_vec(const struct field *f, const void *at)
{
    const int64_t *vec = at;
    uint32_t rank = 0, count;

    if (f->op->n_in && f->op->in[0].kind == FRIT_OPERAND_TENSOR)
        rank = f->graph->values[f->op->in[0].value].type.rank;
    count = rank < 3 ? 1 : rank > 5 ? 3 : rank - 2;
    for (uint32_t i = count; i < 3; i++)
        count = vec[i] ? i + 1 : count;
    print_list(f->out, vec, count);
}

static void print_slices(const struct field *f, const void *at)
{
    const frit_slices *slices = at;

    print_text(f->out, "[");
    for (int64_t i = 0; i < slices->count; i++) {
        const frit_range *range = &slices->dim[i];

        str_addf(f->out, "%s%" PRId64 ":", i ? ", " : "", range->start);
        if (range->stop != FRIT_SLICE_END)
            str_addf(f->out, "%" PRId64, range->stop);
        if (range->step != 1)
            str_addf(f->out, ":%" PRId64, range->step);
    }
    print_text(f->out, "]");
}

static void print_real(const struct field *f, const void *at)
{
    frit_scalar scalar = scalar_f(*(const double *)at);

    number_print(f->out, &scalar, FRIT_F64);
}

static void (*const printers[])(const struct field *f, const void *at) = {
    [FRIT_ATTR_INT] = print_int,       [FRIT_ATTR_FLAG] = print_int,
    [FRIT_ATTR_CHOICE] = print_choice, [FRIT_ATTR_DTYPE] = print_dtype,
    [FRIT_ATTR_AXIS] = print_int,      [FRIT_ATTR_AXES] = print_axes,
    [FRIT_ATTR_DIMS] = print_dims,     [FRIT_ATTR_VEC] = print_vec,
    [FRIT_ATTR_SLICES] = print_slices, [FRIT_ATTR_REAL] = print_real,
};

/* Whether the field may be left out: parsing the text gives the same value. */
static bool is_default(const frit_field_info *info, const void *at)
{
    static const unsigned char zeroes[sizeof(frit_slices)];
    size_t counts = info->type == FRIT_ATTR_DIMS ? sizeof(int64_t) : 0;

    return info->place == FRIT_PLACE_NAMED &&
           memcmp((const char *)at + counts, zeroes, info->size - counts) == 0;
}

/* `axes` of one axis is printed as people write it. */
static void print_attr(const struct field *f, const void *at)
{
    const frit_axes *axes = at;

    if (f->info->type == FRIT_ATTR_AXES && strcmp(f->info->name, "axes") == 0 && axes->count == 1) {
        str_addf(f->out, "axis=%" PRId64, axes->axis[0]);
        return;
    }
    str_addf(f->out, "%s=", f->info->name);
    printers[f->info->type](f, at);
}

/* ---- lines ---- */

/* Only a scalar in the place of a tensor has the tensor's precision. */
static uint32_t precision_of(const struct graph_op *op, uint32_t index)
{
    uint32_t dtype = op->in[index].dtype;
    bool number = op_slot(op_row(op->op), op->n_in, index)->role == FRIT_ROLE_NUM;

    return number && dtype_class(dtype) == FRIT_DTYPE_FLOAT ? FRIT_F64 : dtype;
}

static void print_operand(const struct graph *graph, const struct graph_op *op, uint32_t index,
                          struct str *out)
{
    const struct graph_operand *operand = &op->in[index];

    if (operand->kind == FRIT_OPERAND_TENSOR)
        print_name(graph, operand->value, out);
    else if (operand->kind == FRIT_OPERAND_SCALAR)
        number_print(out, &operand->scalar, precision_of(op, index));
    else
        print_text(out, "none");
}

/* Names of the wanted results with _ for the others before the last. */
static void print_results(const struct graph *graph, const struct graph_op *op, struct str *out)
{
    uint32_t n = op->n_out;

    while (n && op->out[n - 1] == GRAPH_NO_VALUE)
        n--;
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            print_text(out, ", ");
        if (op->out[i] == GRAPH_NO_VALUE)
            print_text(out, "_");
        else
            print_name(graph, op->out[i], out);
    }
    if (n)
        print_text(out, " = ");
}

void graph_print_op(const struct graph *graph, const struct graph_op *op, struct str *out)
{
    const frit_op_info *row = op_row(op->op);
    const frit_record_info *record = op_record(row);
    const char *before = " ";
    uint32_t n = op->n_in;

    print_results(graph, op, out);
    print_text(out, row->name);
    while (n && op->in[n - 1].kind == FRIT_OPERAND_ABSENT)
        n--;
    for (uint32_t i = 0; i < n; i++, before = ", ") {
        print_text(out, before);
        print_operand(graph, op, i, out);
    }
    for (uint32_t i = 0; i < record->n_fields; i++) {
        struct field field = {graph, op, &record->field[i], out};
        const char *at = (const char *)op->attrs + record->field[i].offset;

        if (is_default(&record->field[i], at))
            continue;
        print_text(out, before);
        print_attr(&field, at);
        before = ", ";
    }
}

static void print_source(const struct graph *graph, uint32_t value, struct str *out)
{
    const struct graph_value *v = &graph->values[value];
    char type[256];

    print_text(out, v->kind == GRAPH_CONST ? "const " : "input ");
    print_name(graph, value, out);
    str_addf(out, " : %s", op_type_text(&v->type, type, sizeof(type)));
    if (v->file) {
        print_text(out, " = ");
        print_quoted(v->file, out);
    } else if (v->data) {
        print_text(out, " = ");
        constant_print(&v->type, v->data, out);
    }
    print_text(out, "\n");
}

/* The number of the op's results if all of them are the next outputs of the graph, else 0. */
static uint32_t next_outputs(const struct graph *graph, const struct graph_op *op, uint32_t next)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < op->n_out; i++) {
        if (op->out[i] == GRAPH_NO_VALUE)
            continue;
        if (next + n >= graph->n_outputs || graph->outputs[next + n] != op->out[i] ||
            graph->output_names[next + n])
            return 0;
        n++;
    }
    return n;
}

void graph_print(const struct graph *graph, struct str *out)
{
    uint32_t printed = 0;

    for (uint32_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind != GRAPH_RESULT)
            print_source(graph, i, out);
    }
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        uint32_t n = next_outputs(graph, &graph->ops[i], printed);

        if (n)
            print_text(out, "output ");
        graph_print_op(graph, &graph->ops[i], out);
        print_text(out, "\n");
        printed += n;
    }
    for (; printed < graph->n_outputs; printed++) {
        print_text(out, "output ");
        if (graph->output_names[printed]) {
            print_word(graph->output_names[printed], out);
            print_text(out, " = ");
        }
        print_name(graph, graph->outputs[printed], out);
        print_text(out, "\n");
    }
}
