/* SPDX-License-Identifier: Apache-2.0 */
/* python/frit/ops.py and dtypes.py: a function per row with its documentation, and the element
 * types.
 *
 * Order of parameters: operands, positional attributes (dtype last), then by keyword the other
 * attributes, the results that may be absent, and the device of rows without tensors.  A name that
 * Python reserves, and an attribute with the name of an operand, end in an underscore. */
#include "gen.h"

#include <ctype.h>
#include <string.h>

static const char *const reserved[] = {"and", "or", "not", "global", "with", "in", "is", "lambda"};

static const char *py_name(const char *name, char text[40])
{
    bool taken = false;

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        taken |= !strcmp(name, reserved[i]);
    snprintf(text, 40, "%s%s", name, taken ? "_" : "");
    return text;
}

static const char *attr_name(const frit_op_info *row, const char *name, char text[40])
{
    py_name(name, text);
    for (uint32_t i = 0; row->in[i].name; i++)
        if (!strcmp(row->in[i].name, name))
            snprintf(text, 40, "%s_type", name);
    return text;
}

/* ---- parameters ---- */

static uint32_t put_item(struct gen_item *items, uint32_t n, const char *name, const char *value)
{
    snprintf(items[n].text, sizeof(items[0].text), "%s%s", name, value);
    return n + 1;
}

/* Whether operand i may be left out: no operand that has to be given follows. */
static bool is_optional(const frit_op_info *row, uint32_t i)
{
    for (; row->in[i].name; i++)
        if (row->in[i].role != FRIT_ROLE_OPT)
            return false;
    return true;
}

static uint32_t operand_params(const frit_op_info *row, struct gen_item *items, uint32_t n,
                               bool optional)
{
    char name[40];

    for (uint32_t i = 0; row->in[i].name; i++)
        if (is_optional(row, i) == optional)
            n = put_item(items, n, py_name(row->in[i].name, name), optional ? "=None" : "");
    return n;
}

/* Positional attributes, dtype last. */
static uint32_t positional_params(const frit_op_info *row, struct gen_item *items, uint32_t n)
{
    const frit_record_info *record = gen_record(row);
    char name[40];

    for (int dtype = 0; dtype < 2; dtype++)
        for (uint32_t i = 0; i < record->n_fields; i++)
            if (record->field[i].place == FRIT_PLACE_POS &&
                (record->field[i].type == FRIT_ATTR_DTYPE) == dtype)
                n = put_item(items, n, attr_name(row, record->field[i].name, name),
                             dtype && !gen_has_tensors(row) ? "=\"f32\"" : "");
    return n;
}

static uint32_t keyword_params(const frit_op_info *row, struct gen_item *items, uint32_t n)
{
    const frit_record_info *record = gen_record(row);
    uint32_t star = n;
    char name[40];

    n = put_item(items, n, "*", "");
    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].place == FRIT_PLACE_NAMED)
            n = put_item(items, n, attr_name(row, record->field[i].name, name),
                         record->field[i].type == FRIT_ATTR_FLAG ? "=False" : "=None");
    for (uint32_t i = 0; i < FRIT_OP_MAX_OUT && row->out[i].name; i++)
        if (row->out[i].role == FRIT_ROLE_XOUT)
            n = put_item(items, n, row->out[i].name, "=False");
    if (!gen_has_tensors(row))
        n = put_item(items, n, "device", "=None");
    return n > star + 1 ? n : star;
}

/* ---- documentation ---- */

static void put_paragraph(FILE *out, const char *text)
{
    fputc('\n', out);
    gen_wrap(out, "    ", "    ", text, 0);
}

static void put_attr_doc(FILE *out, const frit_op_info *row, const frit_field_info *field)
{
    char name[40], text[640], words[160];

    snprintf(text, sizeof(text), "%s: %s", attr_name(row, field->name, name), field->meaning);
    if (field->type == FRIT_ATTR_CHOICE) {
        gen_choices(field->choices, words, sizeof(words));
        gen_add(text, sizeof(text), "; one of: ");
        gen_add(text, sizeof(text), words);
    }
    put_paragraph(out, text);
}

/* The operands' types, the attributes and the results that may be absent, a line each. */
static void put_details(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);
    char text[1024] = "";

    fputc('\n', out);
    gen_operand_types(row, "None", text, sizeof(text));
    if (*text)
        put_paragraph(out, text + strspn(text, " "));
    for (uint32_t i = 0; i < record->n_fields; i++)
        put_attr_doc(out, row, &record->field[i]);
    for (uint32_t i = 0; i < FRIT_OP_MAX_OUT && row->out[i].name; i++)
        if (row->out[i].role == FRIT_ROLE_XOUT) {
            snprintf(text, sizeof(text), "%s: True: give this result, %s, too, in a tuple",
                     row->out[i].name, gen_letter_text(row->out[i].letter));
            put_paragraph(out, text);
        }
    fputs("\n    ", out);
}

static void put_doc(FILE *out, const frit_op_info *row)
{
    gen_wrap(out, "    \"\"\"", "    ", row->meaning, 3);
    if (gen_has_tensors(row) || gen_record(row)->n_fields)
        put_details(out, row);
    fputs("\"\"\"\n", out);
}

/* ---- one row ---- */

/* (a, b), or with one item (a,). */
static void add_tuple(char *text, size_t size, const struct gen_item *items, uint32_t n)
{
    gen_add(text, size, "(");
    for (uint32_t i = 0; i < n; i++) {
        gen_add(text, size, i ? ", " : "");
        gen_add(text, size, items[i].text);
    }
    gen_add(text, size, n == 1 ? ",)" : ")");
}

static const char *field_type(const frit_field_info *field, char text[40])
{
    static const char *const types[] = {
        [FRIT_ATTR_INT] = "INT",  [FRIT_ATTR_FLAG] = "INT",  [FRIT_ATTR_DTYPE] = "DTYPE",
        [FRIT_ATTR_AXIS] = "INT", [FRIT_ATTR_AXES] = "LIST", [FRIT_ATTR_DIMS] = "LIST",
        [FRIT_ATTR_VEC] = "VEC",  [FRIT_ATTR_REAL] = "REAL", [FRIT_ATTR_SLICES] = "SLICES",
    };

    if (field->type != FRIT_ATTR_CHOICE)
        return types[field->type];
    snprintf(text, 40, "%s", field->choices);
    for (char *c = text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return text;
}

/* _sum = Row("sum", 1, (("axes", LIST), ("keep", INT))) */
static void put_table(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);
    struct gen_item items[GEN_MAX_PARAMS];
    char head[64], text[1024] = "", type[40];
    uint32_t n_out = 0;

    while (n_out < FRIT_OP_MAX_OUT && row->out[n_out].name && row->out[n_out].role == FRIT_ROLE_OUT)
        n_out++;
    for (uint32_t i = 0; i < record->n_fields; i++)
        snprintf(items[i].text, sizeof(items[0].text), "(\"%s\", %s)", record->field[i].name,
                 field_type(&record->field[i], type));
    snprintf(head, sizeof(head), "_%s = Row(", row->name);
    snprintf(text, sizeof(text), "\"%s\", %u, ", row->name, n_out);
    add_tuple(text, sizeof(text), items, record->n_fields);
    gen_wrap(out, head, "    ", text, 1);
    fputs(")\n\n\n", out);
}

static void put_call(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);
    struct gen_item items[GEN_MAX_PARAMS];
    char head[64], text[1024] = "", name[40];
    uint32_t n = 0;

    for (; row->in[n].name; n++)
        put_item(items, n, row->in[n].role == FRIT_ROLE_MANY ? "*" : "",
                 py_name(row->in[n].name, name));
    add_tuple(text, sizeof(text), items, n);
    gen_add(text, sizeof(text), ", ");
    for (n = 0; n < record->n_fields; n++)
        put_item(items, n, attr_name(row, record->field[n].name, name), "");
    add_tuple(text, sizeof(text), items, n);
    n = 0;
    for (uint32_t i = 0; i < FRIT_OP_MAX_OUT && row->out[i].name; i++)
        if (row->out[i].role == FRIT_ROLE_XOUT)
            n = put_item(items, n, row->out[i].name, "");
    if (n) {
        gen_add(text, sizeof(text), ", ");
        add_tuple(text, sizeof(text), items, n);
    }
    gen_add(text, sizeof(text), gen_has_tensors(row) ? ")" : ", device=device)");
    snprintf(head, sizeof(head), "    return call(_%s, ", row->name);
    gen_wrap(out, head, "        ", text, 0);
    fputc('\n', out);
}

static void put_row(FILE *out, const frit_op_info *row)
{
    struct gen_item items[GEN_MAX_PARAMS + 4];
    char head[64], name[40];
    uint32_t n = operand_params(row, items, 0, false);

    n = positional_params(row, items, n);
    n = operand_params(row, items, n, true);
    n = keyword_params(row, items, n);
    fputs("\n\n", out);
    put_table(out, row);
    snprintf(head, sizeof(head), "def %s(", py_name(row->name, name));
    if (n)
        gen_list(out, head, items, n, "\n", "):\n");
    else
        fprintf(out, "%s):\n", head);
    put_doc(out, row);
    put_call(out, row);
}

/* ---- the files ---- */

static void put_names(FILE *out, const char *variable, bool (*has)(const frit_op_info *row))
{
    const frit_op_info *row = NULL;
    char text[8192] = "", name[40], item[64];

    while ((row = gen_next(row)))
        if (has(row)) {
            snprintf(item, sizeof(item), "%s\"%s\",", *text ? " " : "", py_name(row->name, name));
            gen_add(text, sizeof(text), item);
        }
    fprintf(out, "%s = (\n", variable);
    gen_wrap(out, "    ", "    ", text, 0);
    fputs("\n)\n", out);
}

static bool is_any(const frit_op_info *row)
{
    return row != NULL;
}

static bool is_method(const frit_op_info *row)
{
    return row->in[0].role == FRIT_ROLE_IN && row->in[0].letter != FRIT_LETTER_BOOL &&
           row->cls != FRIT_CLASS_GRADIENT && row->cls != FRIT_CLASS_COLLECTIVE;
}

/* UPDATE = {"assign": 0, ...}: the words of each enumeration. */
static void put_choices(FILE *out)
{
    const frit_choice_info *choice;
    const char *list = "";

    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (strcmp(choice->list, list)) {
            fputs(*list ? "}\n" : "", out);
            for (list = choice->list; *list; list++)
                fputc(toupper((unsigned char)*list), out);
            list = choice->list;
            fputs(" = {", out);
        } else {
            fputs(", ", out);
        }
        fprintf(out, "\"%s\": %lld", choice->name, (long long)choice->value);
    }
    fputs("}\n", out);
}

bool gen_ops_py(FILE *out)
{
    const frit_op_info *row = NULL;

    fputs("# SPDX-License-Identifier: Apache-2.0\n# " GEN_MARK ".\n"
          "\"\"\"A function for each row of Frit's op table.\n\n"
          "Operands may be Tensors or NumPy arrays, which become tensors of the same device, and "
          "numbers\n"
          "where the row takes them.  Lists of axes and dims may be one number, and so may "
          "windows, strides\n"
          "and the like: it holds for every spatial dim.  `frit ops NAME` and abi/OPS.md say the "
          "same.\n"
          "\"\"\"\n"
          "from ._call import DTYPE, INT, LIST, REAL, SLICES, VEC, Row, call\n\n",
          out);
    put_names(out, "__all__", is_any);
    fputs("# Rows that are methods of Tensor, too.\n", out);
    put_names(out, "METHODS", is_method);
    fputc('\n', out);
    put_choices(out);
    while ((row = gen_next(row)))
        put_row(out, row);
    return true;
}

bool gen_dtypes_py(FILE *out)
{
    static const char *const classes[] = {"", "float", "int", "uint", "bool", "packed"};

    fputs(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Generated by tools/generate from abi/frit/dtypes.def; do not edit.\n"
        "\"\"\"Frit's element types: name -> (number, bits, class, NumPy's name or \"\").\"\"\"\n\n"
        "DTYPES = {\n",
        out);
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    fprintf(out, "    \"%s\": (%d, %d, \"%s\", \"%s\"),  # %s\n", #name, id, bits,                 \
            classes[FRIT_DTYPE_##cls], npy, meaning);
#include <frit/dtypes.def>
    fputs("}\n", out);
    return true;
}
