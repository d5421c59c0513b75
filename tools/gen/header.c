/* SPDX-License-Identifier: Apache-2.0 */
/* frit/ops.h: the C and C++ declarations of every row. */
#include "gen.h"

#include <string.h>

static void declare_field(const frit_field_info *field, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s;", gen_field_type(field->type), field->name,
             field->type == FRIT_ATTR_VEC ? "[3]" : "");
}

/* One member and its comment, which begins in the given column. */
static void put_member(FILE *out, int column, const char *declaration, const char *meaning)
{
    char head[128], next[64];

    snprintf(head, sizeof(head), "    %-*s /* ", column, declaration);
    snprintf(next, sizeof(next), "    %*s  * ", column, "");
    gen_wrap(out, head, next, meaning, 3);
    fputs(" */\n", out);
}

/* The struct of the named attributes. */
static void put_attrs(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);
    char declaration[64], meaning[512];
    int column = (int)strlen("uint64_t struct_size;");

    for (uint32_t i = 0; i < record->n_fields; i++) {
        declare_field(&record->field[i], declaration, sizeof(declaration));
        if (record->field[i].place == FRIT_PLACE_NAMED && (int)strlen(declaration) > column)
            column = (int)strlen(declaration);
    }
    fprintf(out, "typedef struct frit_%s_attrs {\n", row->name);
    snprintf(meaning, sizeof(meaning), "sizeof(frit_%s_attrs)", row->name);
    put_member(out, column, "uint64_t struct_size;", meaning);
    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (record->field[i].place != FRIT_PLACE_NAMED)
            continue;
        declare_field(&record->field[i], declaration, sizeof(declaration));
        gen_field_meaning(&record->field[i], meaning, sizeof(meaning));
        put_member(out, column, declaration, meaning);
    }
    fprintf(out, "} frit_%s_attrs;\n", row->name);
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
            gen_prototype(out, &f, ");\n");
    fputc('\n', out);
}

static uint32_t name_params(const struct gen_function *f, struct gen_item *items)
{
    for (uint32_t i = 0; i < f->n_params; i++)
        snprintf(items[i].text, sizeof(items[0].text), "%s", f->params[i].name);
    return f->n_params;
}

/* The short name in C: what follows the positional arguments initialises the attributes. */
static void put_macro(FILE *out, const struct gen_function *f)
{
    char head[96];
    struct gen_item items[GEN_MAX_PARAMS + 1];
    uint32_t count = 2;

    fprintf(out, "#define %s(...) \\\n", f->name);
    snprintf(head, sizeof(head), "    %s_named(", f->name);
    snprintf(items[0].text, sizeof(items[0].text), "__VA_ARGS__");
    snprintf(items[1].text, sizeof(items[0].text), ".struct_size = sizeof(frit_%s_attrs)",
             f->row->name);
    gen_list(out, head, items, count, " \\\n", ")\n");

    snprintf(head, sizeof(head), "#define %s_named(", f->name);
    count = name_params(f, items);
    snprintf(items[count++].text, sizeof(items[0].text), "...");
    gen_list(out, head, items, count, " \\\n", ") \\\n");

    snprintf(head, sizeof(head), "    %s_with(", f->name);
    count = name_params(f, items);
    snprintf(items[count++].text, sizeof(items[0].text), "&(frit_%s_attrs){__VA_ARGS__}",
             f->row->name);
    gen_list(out, head, items, count, " \\\n", ")\n");
}

static void put_overload(FILE *out, const struct gen_function *f)
{
    char head[96];
    struct gen_item items[GEN_MAX_PARAMS + 1];
    uint32_t count = 0;

    snprintf(head, sizeof(head), "inline frit_tensor *%s(", f->name);
    for (; count < f->n_params; count++)
        snprintf(items[count].text, sizeof(items[0].text), "%s%s", f->params[count].type,
                 f->params[count].name);
    snprintf(items[count++].text, sizeof(items[0].text), "frit_%s_attrs attrs = {}", f->row->name);
    gen_list(out, head, items, count, "\n", ")\n");
    fputs("{\n    attrs.struct_size = sizeof(attrs);\n", out);
    snprintf(head, sizeof(head), "    return %s_with(", f->name);
    count = name_params(f, items);
    snprintf(items[count++].text, sizeof(items[0].text), "&attrs");
    gen_list(out, head, items, count, "\n", ");\n}\n\n");
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

bool gen_ops_h(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;

    fputs(
        "/* SPDX-License-Identifier: Apache-2.0 */\n/* " GEN_MARK ".\n"
        " *\n"
        " * One function per row of the op table.  Each makes a tensor and returns it, also on\n"
        " * failure (see frit.h).  The tensors of a call lie on one device; a number takes the "
        "element\n"
        " * type of the tensors.  Functions with optional attributes have three forms:\n"
        " *   frit_sum(x, .axes = FRIT_AXES(1), .keep = 1)  in C; what is left out is 0, the "
        "default\n"
        " *   frit_sum(x, attrs)                            in C++; attrs may be left out\n"
        " *   frit_sum_with(x, &attrs)                      in both, with struct_size set, or "
        "NULL\n"
        " * _f and _i: the same with numbers, double or int64_t, for operands after the first. */\n"
        "#ifndef FRIT_OPS_H\n#define FRIT_OPS_H\n\n#include <frit/frit.h>\n\n"
        "/* clang-format off */\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
        out);
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
    fputs("\n#endif /* C */\n\n#endif\n", out);
    return true;
}
