/* SPDX-License-Identifier: Apache-2.0 */
/* abi/GRADIENTS.md: how each row is differentiated.  The expressions of rules.def become formulas:
 * t_mul(g, t_sign(a)) is `g * sign(x)`. */
#include "gen.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum kind { OTHER, FORMULA, WORDS, STEPS, PARTS, NONE };

static const struct entry {
    const char *row;
    uint32_t operand;
    enum kind kind;
    const char *text;
} entries[] = {
#define GRAD(op, operand, needs, rule)              {#op, operand, FORMULA, #rule},
#define GRAD_FN(op, operand, needs, function, text) {#op, operand, WORDS, text},
#define GRAD_STEPS(op, why)                         {#op, 0, STEPS, why},
#define GRAD_PARTS(op, why)                         {#op, 0, PARTS, why},
#define NO_GRAD(op, why)                            {#op, 0, NONE, why},
#include "host/grad/rules.def"
};

enum { N_ENTRIES = sizeof(entries) / sizeof(entries[0]), MAX_ARGS = 4, ATOM = 8 };

/* How a word of rules is written.  $nl stands for argument n, in parentheses if it binds less than
 * level l; `level` says how the whole binds: 1 or, 2 and, 3 comparison, 4 sum, 5 product, 8 atom.
 * A word that is not here is a function of its arguments. */
static const struct pattern {
    const char *word, *text;
    int level;
} patterns[] = {
    {"t_add", "$14 + $24", 4},
    {"t_sub", "$14 - $25", 4},
    {"t_mul", "$15 * $25", 5},
    {"t_div", "$15 / $26", 5},
    {"t_neg", "-$15", 5},
    {"t_lt", "$14 < $24", 3},
    {"t_eq", "$14 = $24", 3},
    {"t_and", "$13 and $23", 2},
    {"t_or", "$12 or $22", 1},
    {"t_square", "$18^2", 7},
    {"t_num", "$10", ATOM},
    {"t_keep", "where($10, $20, 0)", ATOM},
    {"t_share", "$10 where $20, half of it where $30", 0},
    {"t_over_square", "$15 / $28^2", 5},
    {"t_below_zero", "minimum($10, 0)", ATOM},
    {"t_silu_slope", "$25 * (1 + $15 * (1 - $25))", 5},
};

struct formula {
    char text[256];
    int level;
};

static void add_character(struct formula *f, char character)
{
    const char text[] = {character, '\0'};

    gen_add(f->text, sizeof(f->text), text);
}

static void expand(struct formula *out, const char *pattern, const struct formula *args)
{
    for (; *pattern; pattern++) {
        const struct formula *arg;
        bool loose;

        if (*pattern != '$') {
            add_character(out, *pattern);
            continue;
        }
        arg = &args[pattern[1] - '1'];
        loose = arg->level < pattern[2] - '0';
        gen_add(out->text, sizeof(out->text), loose ? "(" : "");
        gen_add(out->text, sizeof(out->text), arg->text);
        gen_add(out->text, sizeof(out->text), loose ? ")" : "");
        pattern += 2;
    }
}

static struct formula call(const char *word, const struct formula *args, int n)
{
    struct formula out = {.level = ATOM};
    int first = 0;

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(patterns[i].word, word) != 0)
            continue;
        out.level = patterns[i].level;
        expand(&out, patterns[i].text, args);
        return out;
    }
    if (!strcmp(word, "t_op2")) /* the op is its first argument */
        word = args[first++].text + strlen("FRIT_OP_");
    else
        word += strlen("t_");
    gen_add(out.text, sizeof(out.text), word);
    for (int i = first; i < n; i++) {
        gen_add(out.text, sizeof(out.text), i == first ? "(" : ", ");
        gen_add(out.text, sizeof(out.text), args[i].text);
    }
    add_character(&out, ')');
    return out;
}

/* A name of rules.h for an operand or the result: the row's own. */
static const char *name_of(const frit_op_info *row, const char *word)
{
    if (word[1] != '\0' || word[0] == 'g')
        return word;
    if (word[0] == 'y')
        return row->out[0].name;
    return word[0] >= 'a' && word[0] <= 'c' ? row->in[word[0] - 'a'].name : word;
}

/* The expression at *text, which moves behind it. */
static struct formula parse(const frit_op_info *row, const char **text)
{
    struct formula args[MAX_ARGS] = {{.level = 0}}, out = {.level = ATOM};
    char word[64] = "";
    int n = 0;

    for (; isalnum((unsigned char)**text) || (**text && strchr("_.-", **text)); ++*text)
        snprintf(word + strlen(word), sizeof(word) - strlen(word), "%c", **text);
    if (**text != '(') {
        gen_add(out.text, sizeof(out.text), name_of(row, word));
        return out;
    }
    do {
        *text += 1 + strspn(*text + 1, " ");
        args[n++] = parse(row, text);
    } while (**text == ',' && n < MAX_ARGS);
    ++*text;
    return call(word, args, n);
}

/* ---- the table ---- */

static void put_entry(FILE *out, const frit_op_info *row, const struct entry *entry)
{
    static const char *const before[] = {
        [STEPS] = "0: ", [PARTS] = "by its parts: ", [NONE] = "none: "};
    const bool has_operand = entry->kind == FORMULA || entry->kind == WORDS;
    const char *text = entry->text;

    fprintf(out, "| `%s` | %s | ", row->name, has_operand ? row->in[entry->operand].name : "");
    if (entry->kind == FORMULA)
        fprintf(out, "`%s` |\n", parse(row, &text).text);
    else
        fprintf(out, "%s%s |\n", before[entry->kind] ? before[entry->kind] : "", text);
}

/* False where the row has no entry. */
static bool put_row(FILE *out, const frit_op_info *row)
{
    bool found = false;

    for (int i = 0; i < N_ENTRIES; i++) {
        if (strcmp(entries[i].row, row->name) != 0)
            continue;
        put_entry(out, row, &entries[i]);
        found = true;
    }
    if (!found)
        fprintf(stderr, "host/grad/rules.def: no entry of %s\n", row->name);
    return found;
}

bool gen_gradients_md(FILE *out)
{
    const frit_op_info *row = NULL;
    uint32_t cls = FRIT_CLASS_NONE;
    bool good = true;

    fputs("<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->\n"
          "<!-- Generated by tools/generate from host/grad/rules.def; do not edit. -->\n\n"
          "# Gradients\n\n"
          "How `frit/grad.h` differentiates each row of `frit/ops.def`. `g` is the gradient of the "
          "result, other names are\nthose of the row's operands and results; what broadcasting "
          "repeated is summed afterwards. *By its parts*: the\nbackward pass runs the core ops "
          "again that the op consists of, and differentiates those. *None*: the op ends\na path. "
          "Rows that are gradients themselves cannot be differentiated: there are no second "
          "derivatives. Ops of\nplugins are differentiated by their parts, if they have any, or by "
          "`frit_grad_custom`.\n",
          out);
    while ((row = gen_next(row))) {
        if (row->cls == FRIT_CLASS_GRADIENT)
            continue;
        if (row->cls != cls) {
            const char *title = gen_class_title(row->cls);

            fprintf(out, "\n## %c%s\n\n| row | operand | gradient |\n|---|---|---|\n",
                    toupper((unsigned char)title[0]), title + 1);
        }
        cls = row->cls;
        good &= put_row(out, row);
    }
    return good;
}
