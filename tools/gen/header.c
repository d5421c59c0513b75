/* SPDX-License-Identifier: Apache-2.0 */
/* frit/ops.h: the C and C++ declarations of every row. */
#include "gen.h"

#include <string.h>

enum { FIELD_COLUMNS = 22 };

/* The struct of the named attributes, comments in one column. */
static void put_attrs(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);

    fprintf(out, "typedef struct frit_%s_attrs {\n", row->name);
    fprintf(out, "    %-*s /* sizeof(frit_%s_attrs) */\n", FIELD_COLUMNS, "uint64_t struct_size;",
            row->name);
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        char declaration[96], head[128], next[64], text[512];
        if (field->place != FRIT_PLACE_NAMED)
            continue;
        snprintf(declaration, sizeof(declaration), "%s%s%s;", gen_field_type(field->type),
                 field->name, field->type == FRIT_ATTR_VEC ? "[3]" : "");
        snprintf(head, sizeof(head), "    %-*s /* ", FIELD_COLUMNS, declaration);
        snprintf(next, sizeof(next), "    %*s  * ", FIELD_COLUMNS, "");
        gen_field_meaning(field, text, sizeof(text));
        gen_wrap(out, head, next, text, 3);
        fputs(" */\n", out);
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

/* The short name in C: what follows the positional arguments initialises the attributes. */
static void put_macro(FILE *out, const struct gen_function *f)
{
    fprintf(out, "#define %s(...) %s_named(__VA_ARGS__, .struct_size = sizeof(frit_%s_attrs))\n",
            f->name, f->name, f->row->name);
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
        snprintf(items[count], sizeof(items[count]), "%s%s", f->params[count].type,
                 f->params[count].name);
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

bool gen_ops_h(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;

    fputs("/* SPDX-License-Identifier: Apache-2.0 */\n/* " GEN_MARK ".\n"
          " *\n"
          " * One function per row of the op table.  Each makes a tensor and returns it, also on "
          "failure (see\n"
          " * frit.h).  Where operands are tensors they lie on one device; a number takes the "
          "tensors' element type.\n"
          " * Functions with optional attributes have three forms:\n"
          " *   frit_sum(x, .axes = FRIT_AXES(1), .keep = 1)  in C, what is left out is 0, the "
          "default;\n"
          " *   frit_sum(x, attrs)                            in C++, attrs {} if left out;\n"
          " *   frit_sum_with(x, &attrs)                      in both, with struct_size set; NULL: "
          "all defaults.\n"
          " * _f and _i: the same with numbers, double or int64_t, for operands that are not the "
          "first. */\n"
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
    fputs("\n#endif\n\n#endif\n", out);
    return true;
}
