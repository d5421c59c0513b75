/* SPDX-License-Identifier: Apache-2.0 */
/* abi/OPS.md: the op table for readers, and where each operation kind of burn went. */
#include "gen.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *group;
    const char *kind;
    const char *rows;
    const char *how;
} kinds[] = {
#define FRIT_KIND(group, kind, rows, how) {#group, #kind, rows, how},
#include "kinds.def"
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Text in a cell of a table. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '|' || *text == '*' ? "\\%c" : "%c", *text);
}

static void put_slots(FILE *out, const frit_slot_info *slots)
{
    static const char *const marks[] = {
        [FRIT_ROLE_IN] = "",    [FRIT_ROLE_OPT] = "?", [FRIT_ROLE_NUM] = "#",
        [FRIT_ROLE_MANY] = "+", [FRIT_ROLE_OUT] = "",  [FRIT_ROLE_XOUT] = "?",
    };

    for (uint32_t i = 0; slots[i].name; i++)
        fprintf(out, "%s%s%s:%s", i ? " " : "", slots[i].name, marks[slots[i].role],
                gen_letter(slots[i].letter));
}

static void put_default(FILE *out, const frit_field_info *field)
{
    const frit_choice_info *choice;

    if (field->type == FRIT_ATTR_AXES || field->type == FRIT_ATTR_DIMS) {
        fputs("none", out);
        return;
    }
    for (uint32_t i = 0; field->type == FRIT_ATTR_CHOICE && (choice = frit_choice_info_at(i)); i++)
        if (!strcmp(choice->list, field->choices) && choice->value == 0) {
            fputs(choice->name, out);
            return;
        }
    fputc('0', out);
}

static void put_attrs(FILE *out, const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);

    for (uint32_t i = 0; i < record->n_fields; i++) {
        fprintf(out, "%s%s", i ? " " : "", record->field[i].name);
        if (record->field[i].place == FRIT_PLACE_NAMED) {
            fputc('=', out);
            put_default(out, &record->field[i]);
        }
    }
}

static void put_traits(FILE *out, uint32_t traits)
{
    static const char *const words[] = {"commutes", "assoc", "scalars", "seeded", "ordered"};
    const char *blank = "";

    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (traits >> i & 1) {
            fprintf(out, "%s%s", blank, words[i]);
            blank = " ";
        }
}

static void put_row(FILE *out, const frit_op_info *row)
{
    fprintf(out, "| %u | `%s` | %s | ", row->id, row->name,
            row->level == FRIT_LEVEL_CORE ? "core" : "composite");
    put_slots(out, row->in);
    fputs(row->in[0].name ? " → " : "→ ", out);
    put_slots(out, row->out);
    fputs(" | ", out);
    put_attrs(out, row);
    fputs(" | ", out);
    put_traits(out, row->traits);
    fprintf(out, " | %u | ", row->rev);
    put_cell(out, row->meaning);
    fputs(" |\n", out);
}

static void put_rows(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;

    while ((row = gen_next(row))) {
        if (row->cls != cls) {
            const char *title = gen_class_title(row->cls);
            fprintf(out, "\n### %c%s\n\n", toupper((unsigned char)title[0]), title + 1);
            fputs(
                "| id | row | level | operands → results | attributes | traits | rev | meaning |\n"
                "|---|---|---|---|---|---|---|---|\n",
                out);
        }
        cls = row->cls;
        put_row(out, row);
    }
}

static void put_records(FILE *out)
{
    static const char *const uses[] = {
        [FRIT_USE_KEY] = "key", [FRIT_USE_LAUNCH] = "launch", [FRIT_USE_SHAPE] = "shape"};
    static const char *const types[] = {
        [FRIT_ATTR_INT] = "integer", [FRIT_ATTR_FLAG] = "flag", [FRIT_ATTR_CHOICE] = "choice",
        [FRIT_ATTR_DTYPE] = "dtype", [FRIT_ATTR_AXIS] = "axis", [FRIT_ATTR_AXES] = "axes",
        [FRIT_ATTR_DIMS] = "dims",   [FRIT_ATTR_VEC] = "vec",   [FRIT_ATTR_SLICES] = "slices",
        [FRIT_ATTR_REAL] = "real",
    };

    fputs("| record | attribute | type | use | meaning |\n|---|---|---|---|---|\n", out);
    for (uint32_t i = 0; i < FRIT_RECORD_COUNT; i++) {
        const frit_record_info *record = frit_record_info_at(i);
        for (uint32_t k = 0; k < record->n_fields; k++) {
            const frit_field_info *field = &record->field[k];
            char text[512];
            gen_field_meaning(field, text, sizeof(text));
            fprintf(out, "| %s | `%s` | %s | %s | ", k ? "" : record->name, field->name,
                    types[field->type], uses[field->use]);
            put_cell(out, text);
            fputs(" |\n", out);
        }
    }
}

/* The rows of a kind, each checked against the table. */
static bool put_kind_rows(FILE *out, const char *kind, const char *rows)
{
    bool good = true;

    while (*rows) {
        size_t length = strcspn(rows, " ");
        fprintf(out, "`%.*s` ", (int)length, rows);
        if (!gen_find(rows, length)) {
            fprintf(stderr, "abi/kinds.def: %s: no row %.*s\n", kind, (int)length, rows);
            good = false;
        }
        rows += length;
        rows += strspn(rows, " ");
    }
    return good;
}

static bool put_kinds(FILE *out)
{
    bool good = true;

    fputs("| group | kind | rows | |\n|---|---|---|---|\n", out);
    for (uint32_t i = 0; i < N_KINDS; i++) {
        fprintf(out, "| %s | %s | ",
                i && !strcmp(kinds[i].group, kinds[i - 1].group) ? "" : kinds[i].group,
                kinds[i].kind);
        good &= put_kind_rows(out, kinds[i].kind, kinds[i].rows);
        fputs("| ", out);
        put_cell(out, kinds[i].how);
        fputs(" |\n", out);
    }
    return good;
}

bool gen_ops_md(FILE *out)
{
    const frit_op_info *row = NULL;
    unsigned n_rows = 0, n_core = 0;

    while ((row = gen_next(row))) {
        n_rows++;
        n_core += row->level == FRIT_LEVEL_CORE;
    }
    fputs("<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->\n<!-- " GEN_MARK ". -->\n\n"
          "# Ops\n\n",
          out);
    fprintf(
        out,
        "%u rows: %u core, which drivers and fusers meet, and %u composite, which the host also "
        "knows as\ncore ops. The common rules (broadcasting, rounding, NaN, indices) stand at the "
        "top of "
        "`frit/ops.def`.\n\n",
        n_rows, n_core, n_rows - n_core);
    fputs("An operand is written `name:type`; `?` may be absent (a result: computed where it is "
          "wanted), `#` is "
          "always a\nnumber, `+` is one or more tensors. Operands with the same letter have the "
          "same element "
          "type:\n\n",
          out);
    fputs("| letter | element type |\n|---|---|\n", out);
    for (uint32_t i = FRIT_LETTER_NONE; i <= FRIT_LETTER_P; i++)
        fprintf(out, "| %s | %s |\n", gen_letter(i),
                i == FRIT_LETTER_D ? "the attribute `dtype`" : gen_letter_text(i));
    fputs("\nAttributes without a default are positional in C. Traits: *commutes* operands may "
          "be swapped, "
          "*assoc* may be\nregrouped where rounding allows, *scalars* an operand may be a number "
          "if another of "
          "its letter is a tensor,\n*seeded* draws from the generator's counter, *ordered* has "
          "effects.\n\n"
          "## Rows\n",
          out);
    put_rows(out);
    fputs("\n## Attributes\n\n"
          "Use: *key* is fixed when a program is made, *launch* is given at launch only, *shape* "
          "only says what "
          "the\nresult's dims are.\n\n",
          out);
    put_records(out);
    fprintf(out,
            "\n## From burn's operations\n\n"
            "The %d kinds of operation in burn's intermediate form (crate burn-ir) and the rows "
            "that do the same. "
            "Types are\noperand types here, so float, int and bool forms are one row; so are the "
            "forms with a scalar. "
            "A full reduction\ngives rank 0 here and rank 1 there; index results are i64.\n\n",
            N_KINDS);
    return put_kinds(out);
}
