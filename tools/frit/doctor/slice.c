/* SPDX-License-Identifier: Apache-2.0 */
/* Reads only what the printer of graphs writes: a line per value or op, names before " = ", then
 * the op's name, then operands and attributes, separated by ", ".  Names may stand in quotes. */
#include "doctor/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- making it ---- */

static char *copy_text(const char *text, size_t length)
{
    char *out = malloc(length + 1);

    if (out) {
        memcpy(out, text, length);
        out[length] = '\0';
    }
    return out;
}

/* The length of a text in quotes with them; 0: none begins here. */
static size_t quoted_length(const char *at)
{
    size_t n = 1;

    if (*at != '"')
        return 0;
    while (at[n] && at[n] != '"')
        n += at[n] == '\\' && at[n + 1] ? 2 : 1;
    return n + (at[n] == '"');
}

/* The first place where `what` stands outside of quotes; NULL: nowhere. */
static const char *find_outside(const char *at, const char *what)
{
    while (*at && strncmp(at, what, strlen(what)) != 0)
        at += *at == '"' ? quoted_length(at) : 1;
    return *at ? at : NULL;
}

/* UINT32_MAX: there is no such value. */
static uint32_t find_value(const struct slice_program *program, const char *name, size_t length)
{
    for (size_t i = 0; i < program->n_values; i++)
        if (strlen(program->values[i].name) == length &&
            memcmp(program->values[i].name, name, length) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

static bool add_value(struct slice_program *program, const char *name, size_t length, size_t maker)
{
    struct slice_value *value;

    if (!array_grow(&program->values, &program->values_capacity, program->n_values, 1,
                    sizeof(*program->values)))
        return false;
    value = &program->values[program->n_values++];
    *value =
        (struct slice_value){.name = copy_text(name, length), .maker = maker, .last_use = SIZE_MAX};
    return value->name;
}

static bool take_word(const char **at, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

/* "NAME : TYPE = SOURCE", the rest of an input's line. */
static bool take_input(struct slice_program *program, const char *line)
{
    const char *colon = find_outside(line, " : "), *end;

    if (!colon || !add_value(program, line, (size_t)(colon - line), SIZE_MAX))
        return false;
    colon += 3;
    end = strstr(colon, " = ");
    program->values[program->n_values - 1].type =
        copy_text(colon, end ? (size_t)(end - colon) : strlen(colon));
    return program->values[program->n_values - 1].type;
}

/* The length up to the next ", " that is in no bracket. */
static size_t operand_length(const char *at)
{
    int depth = 0;
    size_t n = 0;

    while (at[n] && !(depth == 0 && at[n] == ',')) {
        depth += (at[n] == '[') - (at[n] == ']');
        n += at[n] == '"' ? quoted_length(at + n) : 1;
    }
    return n;
}

static bool take_operands(struct slice_program *program, struct slice_op *op, const char *at)
{
    const size_t number = (size_t)(op - program->ops);

    op->in = calloc(strlen(at) / 2 + 1, sizeof(*op->in));
    if (!op->in)
        return false;
    while (*at) {
        size_t length = operand_length(at);
        uint32_t value = find_value(program, at, length);
        bool known = value == UINT32_MAX;

        for (uint32_t i = 0; i < op->n_in; i++)
            known |= op->in[i] == value;
        if (!known)
            op->in[op->n_in++] = value;
        if (value != UINT32_MAX)
            program->values[value].last_use = number;
        at += length + strspn(at + length, ", ");
    }
    return true;
}

static bool take_results(struct slice_program *program, struct slice_op *op, const char *line,
                         const char *end, bool is_output)
{
    const size_t number = (size_t)(op - program->ops);

    op->out = calloc((size_t)(end - line) / 2 + 1, sizeof(*op->out));
    if (!op->out)
        return false;
    while (line < end) {
        size_t length = *line == '"' ? quoted_length(line) : strcspn(line, ", ");

        if (length != 1 || *line != '_') {
            if (!add_value(program, line, length, number))
                return false;
            program->values[program->n_values - 1].is_output = is_output;
            op->out[op->n_out++] = program->n_values - 1;
        }
        line += length + strspn(line + length, ", ");
    }
    return true;
}

static bool take_op(struct slice_program *program, const char *line, bool is_output)
{
    const char *equals = find_outside(line, " = "), *name = equals ? equals + 3 : line;
    struct slice_op *op;

    if (!array_grow(&program->ops, &program->ops_capacity, program->n_ops, 1,
                    sizeof(*program->ops)))
        return false;
    op = &program->ops[program->n_ops++];
    *op = (struct slice_op){.text = copy_text(line, strlen(line)),
                            .is_random = strncmp(name, "random_", 7) == 0};
    name += strcspn(name, " ");
    return op->text && take_operands(program, op, name + (*name == ' ')) &&
           (!equals || take_results(program, op, line, equals, is_output));
}

/* "NAME", or "NAME = VALUE": an output that no op line defines; UINT32_MAX: the line is another. */
static uint32_t renamed_value(const struct slice_program *program, const char *line)
{
    const char *equals = find_outside(line, " = ");
    const char *value = equals ? equals + 3 : line;

    return find_value(program, value, strlen(value));
}

static bool take_line(struct slice_program *program, const char *line)
{
    uint32_t value;

    if (!*line || *line == '#')
        return true;
    if (take_word(&line, "input ") || take_word(&line, "const "))
        return take_input(program, line);
    if (!take_word(&line, "output "))
        return take_op(program, line, false);
    value = renamed_value(program, line);
    if (value == UINT32_MAX)
        return find_outside(line, " = ") && take_op(program, line, true);
    program->values[value].is_output = true;
    return true;
}

bool slice_parse(struct slice_program *program, const char *text)
{
    bool good = true;

    *program = (struct slice_program){0};
    while (*text && good) {
        size_t length = strcspn(text, "\n");
        char *line = copy_text(text, length);

        good = line && take_line(program, line);
        free(line);
        text += length + (text[length] == '\n');
    }
    if (!good)
        slice_fini(program);
    return good;
}

void slice_fini(struct slice_program *program)
{
    for (size_t i = 0; i < program->n_values; i++) {
        free(program->values[i].name);
        free(program->values[i].type);
    }
    for (size_t i = 0; i < program->n_ops; i++) {
        free(program->ops[i].text);
        free(program->ops[i].in);
        free(program->ops[i].out);
    }
    free(program->values);
    free(program->ops);
    *program = (struct slice_program){0};
}

/* ---- regions ---- */

size_t slice_inputs(const struct slice_program *program, size_t first, size_t last, uint32_t *out)
{
    size_t n = 0;

    for (uint32_t v = 0; v < program->n_values; v++) {
        const struct slice_value *value = &program->values[v];
        bool read = false;

        if (value->maker != SIZE_MAX && value->maker >= first)
            continue;
        for (size_t i = first; i <= last && !read; i++)
            for (uint32_t k = 0; k < program->ops[i].n_in; k++)
                read |= program->ops[i].in[k] == v;
        if (read)
            out[n++] = v;
    }
    return n;
}

/* Of the ops up to `last`. */
static bool is_output_of(const struct slice_value *value, size_t last)
{
    return value->is_output || (value->last_use != SIZE_MAX && value->last_use > last);
}

size_t slice_outputs(const struct slice_program *program, size_t first, size_t last, uint32_t *out)
{
    size_t n = 0;

    for (uint32_t v = 0; v < program->n_values; v++) {
        const struct slice_value *value = &program->values[v];

        if (value->maker == SIZE_MAX || value->maker < first || value->maker > last)
            continue;
        if (is_output_of(value, last))
            out[n++] = v;
    }
    return n;
}

void slice_print_ops(const struct slice_program *program, size_t first, size_t last,
                     struct str *out)
{
    for (size_t i = first; i <= last; i++)
        str_addf(out, "%s\n", program->ops[i].text);
    for (uint32_t v = 0; v < program->n_values; v++) {
        const struct slice_value *value = &program->values[v];

        if (value->maker >= first && value->maker <= last && is_output_of(value, last))
            str_addf(out, "output %s\n", value->name);
    }
}

void slice_print(const struct slice_program *program, size_t first, size_t last,
                 const uint32_t *outputs, size_t n_outputs, const char *const *types,
                 struct str *out)
{
    uint32_t *in = calloc(program->n_values + 1, sizeof(*in));
    size_t n = in ? slice_inputs(program, first, last, in) : 0;

    out->failed |= !in;
    for (size_t i = 0; i < n; i++)
        str_addf(out, "input %s : %s\n", program->values[in[i]].name, types[in[i]]);
    for (size_t i = first; i <= last; i++)
        str_addf(out, "%s\n", program->ops[i].text);
    for (size_t i = 0; i < n_outputs; i++)
        str_addf(out, "output %s\n", program->values[outputs[i]].name);
    free(in);
}
