/* SPDX-License-Identifier: Apache-2.0 */
/* frit/ops.h: the C and C++ declarations of every row. */
#include "gen.h"

#include <string.h>

/* Appends to a text that is known to fit. */
static void add(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", more);
}

/* "a, b: integer or float, of one type.": the operands of each letter, in the row's order. */
static void operand_types(const frit_op_info *row, char *text, size_t size)
{
    for (uint32_t i = 0; row->in[i].name; i++) {
        uint32_t letter = row->in[i].letter, count = 0;
        bool seen = row->in[i].role == FRIT_ROLE_NUM;
        for (uint32_t k = 0; k < i; k++)
            seen |= row->in[k].letter == letter && row->in[k].role != FRIT_ROLE_NUM;
        if (seen)
            continue;
        add(text, size, "  ");
        for (uint32_t k = i; row->in[k].name; k++) {
            if (row->in[k].letter != letter || row->in[k].role == FRIT_ROLE_NUM)
                continue;
            add(text, size, count++ ? ", " : "");
            add(text, size, row->in[k].name);
            add(text, size, row->in[k].role == FRIT_ROLE_OPT ? " (or NULL)" : "");
        }
        add(text, size, ": ");
        add(text, size, gen_letter_text(letter));
        add(text, size, count > 1 || row->in[i].role == FRIT_ROLE_MANY ? ", of one type." : ".");
    }
}

/* What the result is where no operand tells, and which further outputs there are. */
static void result_types(const frit_op_info *row, char *text, size_t size)
{
    bool told = false;

    for (uint32_t k = 0; row->out[0].name && row->in[k].name; k++)
        told |= row->in[k].letter == row->out[0].letter && row->in[k].role != FRIT_ROLE_NUM;
    if (row->out[0].name && !told && row->out[0].letter != FRIT_LETTER_D) {
        add(text, size, "  Gives ");
        add(text, size, gen_letter_text(row->out[0].letter));
        add(text, size, ".");
    }
    for (uint32_t i = 1; row->out[0].name && i <= FRIT_OP_MAX_OUT && row->out[i].name; i++) {
        add(text, size, "  *");
        add(text, size, row->out[i].name);
        if (row->out[i].letter != row->out[0].letter) {
            add(text, size, " is ");
            add(text, size, gen_letter_text(row->out[i].letter));
            add(text, size, ";");
        }
        add(text, size, " NULL: not wanted.");
    }
}

static void positional(const frit_op_info *row, char *text, size_t size)
{
    const frit_record_info *record = gen_record(row);

    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (record->field[i].place != FRIT_PLACE_POS)
            continue;
        add(text, size, "  ");
        add(text, size, record->field[i].name);
        add(text, size, ": ");
        add(text, size, record->field[i].meaning);
        add(text, size, ".");
    }
}

void gen_describe(const frit_op_info *row, char *text, size_t size)
{
    text[0] = 0;
    add(text, size, row->meaning);
    operand_types(row, text, size);
    result_types(row, text, size);
    positional(row, text, size);
}

/* "assign, add, mul" */
void gen_choices(const char *list, char *text, size_t size)
{
    const frit_choice_info *choice;

    text[0] = 0;
    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (strcmp(choice->list, list))
            continue;
        add(text, size, *text ? ", " : "");
        add(text, size, choice->name);
    }
}

static void put_attrs(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);

    fprintf(out, "typedef struct frit_%s_attrs {\n    uint64_t struct_size; /* sizeof(frit_%s_attrs) */\n", row->name, row->name);
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        char head[128], text[512], words[128];
        if (field->place != FRIT_PLACE_NAMED)
            continue;
        snprintf(head, sizeof(head), "    %s%s%s; /* ", gen_field_type(field->type), field->name,
                 field->type == FRIT_ATTR_VEC ? "[3]" : "");
        snprintf(text, sizeof(text), "%s", field->meaning);
        if (field->type == FRIT_ATTR_CHOICE) {
            gen_choices(field->choices, words, sizeof(words));
            snprintf(text, sizeof(text), "FRIT_CHOICE_%s_...: %s; %s", field->choices, words, field->meaning);
        }
        gen_wrap(out, head, "                             * ", text, 3);
        fputs(" */\n", out);
    }
    fprintf(out, "} frit_%s_attrs;\n", row->name);
}

static void put_prototype(FILE *out, const struct gen_function *f)
{
    bool named = gen_has_named(f->row);
    char head[160], items[GEN_MAX_PARAMS + 1][96];
    uint32_t count = 0;

    snprintf(head, sizeof(head), "%s%s%s(", f->row->out[0].name ? "frit_tensor *" : "frit_status ", f->name, named ? "_with" : "");
    for (; count < f->n_params; count++)
        snprintf(items[count], sizeof(items[count]), "%s%s", f->params[count].type, f->params[count].name);
    if (named)
        snprintf(items[count++], sizeof(items[0]), "const frit_%s_attrs *attrs", f->row->name);
    gen_list(out, head, (const char(*)[96])items, count, ");\n");
}

static void put_row(FILE *out, const frit_op_info *row)
{
    struct gen_function f;
    char text[2048];

    gen_describe(row, text, sizeof(text));
    gen_wrap(out, "/* ", " * ", text, 3);
    fputs(" */\n", out);
    if (gen_has_named(row))
        put_attrs(out, row);
    for (enum gen_form form = GEN_PLAIN; form <= GEN_INTEGER; form++)
        if (gen_function(row, form, &f))
            put_prototype(out, &f);
    fputc('\n', out);
}

/* The short name in C: what follows the positional arguments initialises the attributes. */
static void put_macro(FILE *out, const struct gen_function *f)
{
    fprintf(out, "#define %s(...) %s_named(__VA_ARGS__, .struct_size = sizeof(frit_%s_attrs))\n", f->name, f->name, f->row->name);
    fprintf(out, "#define %s_named(", f->name);
    for (uint32_t i = 0; i < f->n_params; i++)
        fprintf(out, "%s, ", f->params[i].name);
    fprintf(out, "...) \\\n    %s_with(", f->name);
    for (uint32_t i = 0; i < f->n_params; i++)
        fprintf(out, "%s, ", f->params[i].name);
    fprintf(out, "&(frit_%s_attrs){__VA_ARGS__})\n", f->row->name);
}

static void put_overload(FILE *out, const struct gen_function *f)
{
    char head[160], items[GEN_MAX_PARAMS + 1][96];
    uint32_t count = 0;

    snprintf(head, sizeof(head), "inline frit_tensor *%s(", f->name);
    for (; count < f->n_params; count++)
        snprintf(items[count], sizeof(items[count]), "%s%s", f->params[count].type, f->params[count].name);
    snprintf(items[count++], sizeof(items[0]), "frit_%s_attrs attrs = {}", f->row->name);
    gen_list(out, head, (const char(*)[96])items, count, ")\n");
    fprintf(out, "{\n    attrs.struct_size = sizeof(attrs);\n    return %s_with(", f->name);
    for (uint32_t i = 0; i < f->n_params; i++)
        fprintf(out, "%s, ", f->params[i].name);
    fputs("&attrs);\n}\n", out);
}

static void put_short(FILE *out, void (*put)(FILE *, const struct gen_function *))
{
    const frit_op_info *row = NULL;
    struct gen_function f;

    while ((row = gen_next(row)))
        for (enum gen_form form = GEN_PLAIN; form <= GEN_INTEGER; form++)
            if (gen_has_named(row) && gen_function(row, form, &f))
                put(out, &f);
}

void gen_ops_h(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;

    fputs("/* SPDX-License-Identifier: Apache-2.0 */\n/* " GEN_MARK ".\n"
          " *\n"
          " * One function per row of the op table.  Each makes a tensor and returns it, also on failure (see\n"
          " * frit.h).  Where operands are tensors they lie on one device; a number takes the tensors' element type.\n"
          " * Functions with optional attributes have three forms:\n"
          " *   frit_sum(x, .axes = FRIT_AXES(1), .keep = 1)  in C, what is left out is 0, the default;\n"
          " *   frit_sum(x, attrs)                            in C++, attrs {} if left out;\n"
          " *   frit_sum_with(x, &attrs)                      in both, with struct_size set; NULL: all defaults.\n"
          " * _f and _i: the same with numbers, double or int64_t, for operands that are not the first. */\n"
          "#ifndef FRIT_OPS_H\n#define FRIT_OPS_H\n\n#include <frit/frit.h>\n\n"
          "/* clang-format off */\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", out);
    while ((row = gen_next(row))) {
        if (row->cls != cls)
            fprintf(out, "/* ---- %s ---- */\n\n", gen_class_title(row->cls));
        cls = row->cls;
        put_row(out, row);
    }
    fputs("#ifdef __cplusplus\n} /* extern \"C\" */\n\n", out);
    put_short(out, put_overload);
    fputs("#else\n\n", out);
    put_short(out, put_macro);
    fputs("\n#endif\n\n#endif\n", out);
}
