/* SPDX-License-Identifier: Apache-2.0 */
/* man/frit.h.3: the ops of the C API as a manual page.  Text of the rows is escaped, so that troff
 * sees no request and no hyphenation in it. */
#include "gen.h"

#include <ctype.h>
#include <string.h>

static void put_text(FILE *out, const char *text)
{
    if (*text == '.')
        fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else if (*text == '^')
            fputs("\\(ha", out);
        else
            fputc(*text, out);
    }
}

/* A prototype as one bold line that is not filled. */
static void put_prototype(FILE *out, const struct gen_function *f)
{
    fprintf(out, "\\fB%s%s(", f->row->out[0].name ? "frit_tensor *" : "frit_status ", f->name);
    for (uint32_t i = 0; i < f->n_params; i++)
        fprintf(out, "%s%s\\fI%s\\fB", i ? ", " : "", f->params[i].type, f->params[i].name);
    fputs(gen_has_named(f->row) ? ", ...);\\fR\n" : ");\\fR\n", out);
}

static void put_attrs(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);
    char text[512];

    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        if (field->place != FRIT_PLACE_NAMED)
            continue;
        fprintf(out, ".br\n.I %s%s\n(", field->name, field->type == FRIT_ATTR_VEC ? "[3]" : "");
        gen_field_meaning(field, text, sizeof(text));
        put_text(out, text);
        fputs(")\n", out);
    }
}

static void put_row(FILE *out, const frit_op_info *row)
{
    struct gen_function f;
    char text[2048];

    fputs(".PP\n.nf\n", out);
    for (enum gen_form form = GEN_PLAIN; form <= GEN_INTEGER; form++)
        if (gen_function(row, form, &f))
            put_prototype(out, &f);
    fputs(".fi\n.RS\n", out);
    gen_describe(row, text, sizeof(text));
    put_text(out, text);
    fputc('\n', out);
    put_attrs(out, row);
    fputs(".RE\n", out);
}

bool gen_man(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;

    fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" " GEN_MARK ".\n"
          ".TH FRIT.H 3 \"\" frit \"Frit\"\n"
          ".SH NAME\nfrit.h \\- tensors on whatever device a plugin offers\n"
          ".SH SYNOPSIS\n.nf\n.B #include <frit/frit.h>\n.fi\n.PP\nLink with \\fI\\-lfrit\\fP.\n"
          ".SH DESCRIPTION\n"
          "Calls are recorded and run later: at\n.BR frit_read (),\n.BR frit_sync (),\n.BR "
          "frit_flush (),\n"
          "at the end of a scope, or when a queue is long enough.\n"
          "Every function that makes a tensor returns one, also when it fails: then the tensor "
          "carries the error,\n"
          "further operations on it return it unchanged, and\n.BR frit_tensor_status ()\nand\n"
          ".BR frit_tensor_error ()\ntell.\n"
          "Any function may be called from any thread.\n"
          "Hosts, devices, transfers and lifetimes are documented in the header itself; this page "
          "lists the "
          "operations.\n"
          ".PP\nThe tensors of one call lie on one device.  A number in place of a tensor "
          "(\\fB_f\\fP double,\n"
          "\\fB_i\\fP int64_t) takes the tensors\\(aq element type.  Where a prototype ends in "
          "dots, named\n"
          "attributes follow:\n"
          ".PP\n.nf\n.RS\nfrit_sum(x, .axes = FRIT_AXES(1), .keep = 1)\n.RE\n.fi\n"
          ".PP\nWhat is left out is 0, the default.  In C++ they are one struct argument,\n"
          ".BR frit_sum_attrs ,\nthat may be left out; in both languages\n.B frit_sum_with(x, "
          "&attrs)\n"
          "takes a pointer to it, with\n.I struct_size\nset, or NULL.\n",
          out);
    while ((row = gen_next(row))) {
        const char *title = gen_class_title(row->cls);
        if (row->cls != cls)
            fprintf(out, ".SS %c%s\n", toupper((unsigned char)title[0]), title + 1);
        cls = row->cls;
        put_row(out, row);
    }
    fputs(".SH SEE ALSO\n.BR frit (1)\n", out);
    return true;
}
