/* SPDX-License-Identifier: Apache-2.0 */
/* docs/reference.md: every op as text programs write it, with the names that it has elsewhere. */
#include "gen.h"

#include <ctype.h>
#include <string.h>

struct elsewhere {
    const char *theirs, *ours, *note;
};

static const struct elsewhere foreign_ops[] = {
#define FRIT_FOREIGN_OP(theirs, ours, note) {theirs, ours, note},
#include "../../host/graph/foreign.def"
};

static const struct elsewhere foreign_attrs[] = {
#define FRIT_FOREIGN_ATTR(theirs, ours, note) {theirs, ours, note},
#include "../../host/graph/foreign.def"
};

static const struct elsewhere foreign_dtypes[] = {
#define FRIT_FOREIGN_DTYPE(theirs, ours) {theirs, ours, ""},
#include "../../host/graph/foreign.def"
};

static const struct {
    const char *name, *cls, *meaning;
    uint32_t bits;
} dtypes[] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    {#name, #cls, meaning, bits},
#include <frit/dtypes.def>
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* How a value is written, and what an example of it looks like. */
static const struct {
    const char *kind, *sample;
} kinds[] = {
    [FRIT_ATTR_INT] = {"whole number or extent", "1"},
    [FRIT_ATTR_FLAG] = {"true or false", "true"},
    [FRIT_ATTR_CHOICE] = {"a word", ""},
    [FRIT_ATTR_DTYPE] = {"element type", "f32"},
    [FRIT_ATTR_AXIS] = {"axis", "-1"},
    [FRIT_ATTR_AXES] = {"list of axes, or one", "[0, -1]"},
    [FRIT_ATTR_DIMS] = {"list of extents", "[n, 4]"},
    [FRIT_ATTR_VEC] = {"list of extents, one per spatial dim", "[2, 2]"},
    [FRIT_ATTR_SLICES] = {"list of start:stop:step", "[:, 0:n]"},
    [FRIT_ATTR_REAL] = {"number", "0.5"},
};

/* The names elsewhere, a list of words; false: there is none, and nothing is written. */
static bool put_elsewhere(FILE *out, const char *before, const struct elsewhere *rows, size_t count,
                          const char *ours)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].ours, ours) != 0)
            continue;
        fprintf(out, "%s`%s`", before, rows[i].theirs);
        if (*rows[i].note)
            fprintf(out, " (%s)", rows[i].note);
        before = ", ";
        found = true;
    }
    return found;
}

/* ---- rows ---- */

static void put_results(FILE *out, const frit_op_info *row)
{
    for (uint32_t i = 0; i < FRIT_OP_MAX_OUT && row->out[i].name; i++) {
        bool wanted = row->out[i].role == FRIT_ROLE_XOUT;

        fprintf(out, "%s%s%s%s", wanted ? "[" : "", i ? ", " : "", row->out[i].name,
                wanted ? "]" : "");
    }
    fputs(row->out[0].name ? " = " : "", out);
}

static const char *put_operands(FILE *out, const frit_op_info *row)
{
    const char *before = " ";

    for (uint32_t i = 0; row->in[i].name; i++) {
        bool optional = row->in[i].role == FRIT_ROLE_OPT;

        fprintf(out, "%s%s%s%s%s", optional ? "[" : "", before, row->in[i].name,
                row->in[i].role == FRIT_ROLE_MANY ? ", ..." : "", optional ? "]" : "");
        before = ", ";
    }
    return before;
}

/* Those that must be given, with a sample. */
static void put_signature(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);
    const char *before;
    bool named = false;

    put_results(out, row);
    fputs(row->name, out);
    before = put_operands(out, row);
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];

        named |= field->place == FRIT_PLACE_NAMED;
        if (field->place == FRIT_PLACE_NAMED)
            continue;
        fprintf(out, "%s%s=%s", before, field->name, kinds[field->type].sample);
        before = ", ";
    }
    if (named)
        fprintf(out, "[%sATTRIBUTE=VALUE]...", before);
    fputc('\n', out);
}

/* A text in a cell. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '|' || *text == '*' || *text == '<' ? "\\%c" : "%c", *text);
}

static void put_attrs(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);

    if (record->n_fields)
        fputs("\n| attribute | written as | meaning | elsewhere |\n|---|---|---|---|\n", out);
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        char words[160] = "";

        if (field->type == FRIT_ATTR_CHOICE)
            gen_choices(field->choices, words, sizeof(words));
        fprintf(out, "| `%s` | %s%s | ", field->name, *words ? words : kinds[field->type].kind,
                field->place == FRIT_PLACE_NAMED ? "" : "; required");
        put_cell(out, field->meaning);
        fputs(" | ", out);
        put_elsewhere(out, "", foreign_attrs, COUNT_OF(foreign_attrs), field->name);
        fputs(" |\n", out);
    }
}

static void put_row(FILE *out, const frit_op_info *row)
{
    char text[1024];

    fprintf(out, "\n### `%s`\n\n```\n", row->name);
    put_signature(out, row);
    fputs("```\n\n", out);
    snprintf(text, sizeof(text), "%s", row->meaning);
    gen_operand_types(row, "none", text, sizeof(text));
    put_cell(out, text);
    fputc('\n', out);
    if (row->traits & FRIT_OP_SCALARS)
        fputs("A number may stand for an operand if another one of its type is a tensor.\n", out);
    put_attrs(out, row);
    if (put_elsewhere(out, "\nElsewhere: ", foreign_ops, COUNT_OF(foreign_ops), row->name))
        fputs(".\n", out);
}

static void put_rows(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;

    while ((row = gen_next(row))) {
        if (row->cls != cls) {
            const char *title = gen_class_title(row->cls);

            fprintf(out, "\n## %c%s\n", toupper((unsigned char)title[0]), title + 1);
        }
        cls = row->cls;
        put_row(out, row);
    }
}

/* ---- the other tables ---- */

static void put_dtypes(FILE *out)
{
    fputs("\n## Element types\n\n| name | bits | | elsewhere |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        fprintf(out, "| `%s` | %u | %s%s | ", dtypes[i].name, dtypes[i].bits, dtypes[i].meaning,
                strcmp(dtypes[i].cls, "PACKED") ? ""
                                                : "; packed: computed on through `dequantize`");
        put_elsewhere(out, "", foreign_dtypes, COUNT_OF(foreign_dtypes), dtypes[i].name);
        fputs(" |\n", out);
    }
}

/* What has no op of its own, and how it is written; false: a row names what does not exist. */
static bool put_compositions(FILE *out)
{
    bool good = true;

    fputs("\n## What is several ops here\n\n| elsewhere | here |\n|---|---|\n", out);
    for (size_t i = 0; i < COUNT_OF(foreign_ops); i++) {
        const struct elsewhere *row = &foreign_ops[i];

        if (!*row->ours || !strcmp(row->ours, "const"))
            fprintf(out, "| `%s` | %s%s |\n", row->theirs, *row->ours ? "`const`: " : "",
                    row->note);
        else if (!gen_find(row->ours, strlen(row->ours))) {
            fprintf(stderr, "host/graph/foreign.def: %s: no row %s\n", row->theirs, row->ours);
            good = false;
        }
    }
    return good;
}

bool gen_reference_md(FILE *out)
{
    fputs(
        "<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->\n<!-- " GEN_MARK ". -->\n\n"
        "# Ops of text programs\n\n"
        "The language itself is in `text.md`: statements, types, numbers, how attributes are "
        "written. This page has\nevery op, as `frit ops NAME` shows it, and the names that NumPy, "
        "PyTorch and ONNX have for it; case and\nunderscores aside, names that are equal are not "
        "repeated.\n\n"
        "In the line on top of an op, results stand before the `=`; what stands in `[ ]` may be "
        "left out. Attributes\nthat are required have a sample value. Dims broadcast as in NumPy, "
        "axes count from the end where they are\nnegative; an extent is a whole number, a named "
        "dim, or arithmetic on them.\n",
        out);
    put_dtypes(out);
    put_rows(out);
    return put_compositions(out);
}
