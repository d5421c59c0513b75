/* SPDX-License-Identifier: Apache-2.0 */
/* An instruction is a line, and becomes a statement; a register is a variable. */
#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { MAX_OPERANDS = 4, OPERAND_BYTES = 64 };

/* $0, $1, .. in the statement stand for the operands. */
static const struct instruction {
    const char *name, *statement;
} instructions[] = {
    {"ld.param.u64", "$0 = *(const u64 *)((const char *)params + $1);"},
    {"ld.global.u64", "$0 = *(const u64 *)($1);"},
    {"ld.global.f32", "$0 = *(const f32 *)($1);"},
    {"st.global.f32", "*(f32 *)($0) = $1;"},
    {"mov.u32", "$0 = $1;"},
    {"mul.wide.u32", "$0 = (u64)$1 * $2;"},
    {"cvt.u64.u32", "$0 = $1;"},
    {"add.u64", "$0 = $1 + $2;"},
    {"shl.b64", "$0 = $1 << $2;"},
    {"add.rn.f32", "$0 = $1 + $2;"},
    {"sub.rn.f32", "$0 = $1 - $2;"},
    {"mul.rn.f32", "$0 = $1 * $2;"},
    {"neg.f32", "$0 = -$1;"},
    {"setp.ge.u64", "$0 = $1 >= $2;"},
    {"setp.gtu.f32", "$0 = !($1 <= $2);"}, /* unordered: true with NaN */
    {"selp.f32", "$0 = $3 ? $1 : $2;"},
    {"@%p0 ret", "if (p0) continue;"},
    {"ret", "continue;"},
};

/* ---- operands ---- */

/* An operand as C: "[params+8]" is the offset, "[%d0+8]" the sum, "%ctaid.x" the block's number. */
static void convert_operand(const char *operand, char out[OPERAND_BYTES])
{
    char reg[16] = "";
    int offset = 0;
    unsigned bits;

    if (strcmp(operand, "%ctaid.x") == 0)
        snprintf(out, OPERAND_BYTES, "group[0]");
    else if (strcmp(operand, "%tid.x") == 0)
        snprintf(out, OPERAND_BYTES, "thread");
    else if (sscanf(operand, "[params+%d]", &offset) == 1)
        snprintf(out, OPERAND_BYTES, "%d", offset);
    else if (sscanf(operand, "[%%%15[a-z0-9]+%d]", reg, &offset) >= 1)
        snprintf(out, OPERAND_BYTES, "%s + %d", reg, offset);
    else if (sscanf(operand, "0f%8x", &bits) == 1)
        snprintf(out, OPERAND_BYTES, "f32_of_bits(0x%x)", bits);
    else
        snprintf(out, OPERAND_BYTES, "%s", operand + (*operand == '%'));
}

/* Splits at commas; returns how many there are. */
static int split(char *operands, char out[MAX_OPERANDS][OPERAND_BYTES])
{
    int n = 0;
    char *at = NULL;

    for (char *word = strtok_r(operands, ", ", &at); word && n < MAX_OPERANDS;
         word = strtok_r(NULL, ", ", &at))
        convert_operand(word, out[n++]);
    return n;
}

/* ---- lines ---- */

static bool add_registers(struct str *out, const char *line)
{
    static const struct {
        const char *type, *c;
    } types[] = {{"pred", "u32"}, {"b32", "u32"}, {"b64", "u64"}, {"f32", "f32"}};
    char type[8], prefix[8];
    int count;

    if (sscanf(line, ".reg .%7s %%%7[a-z]<%d>", type, prefix, &count) != 3)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int k = 0; k < count && strcmp(type, types[i].type) == 0; k++)
            str_addf(out, "%s %s%d;\n", types[i].c, prefix, k);
    return true;
}

static void add_statement(struct str *out, const char *statement,
                          char operands[MAX_OPERANDS][OPERAND_BYTES], int n)
{
    for (const char *at = statement; *at; at++) {
        if (*at == '$' && at[1] - '0' < n)
            str_addf(out, "%s", operands[*++at - '0']);
        else
            str_add(out, at, 1);
    }
    str_addf(out, "\n");
}

static bool add_instruction(struct str *out, const char *line)
{
    char operands[MAX_OPERANDS][OPERAND_BYTES], rest[256];

    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const size_t length = strlen(instructions[i].name);

        if (strncmp(line, instructions[i].name, length) != 0 ||
            (line[length] && line[length] != ' '))
            continue;
        snprintf(rest, sizeof rest, "%s", line + length);
        add_statement(out, instructions[i].statement, operands, split(rest, operands));
        return true;
    }
    return false;
}

/* ---- the kernel ---- */

bool ptx_is(const char *text)
{
    return strncmp(text, ".version ", 9) == 0;
}

bool ptx_add(struct str *out, const char *text)
{
    char *copy = strdup(text), name[64], *body, *at = NULL;
    bool is_known = copy != NULL;

    body = copy ? strstr(copy, ".entry ") : NULL;
    if (!body || sscanf(body, ".entry %63[a-z_](", name) != 1 || !strchr(body, '{')) {
        free(copy);
        return false;
    }
    str_addf(out,
             "u32 " TEXT_DIMS "[6];\n"
             "void %s(const u64 *params, const u32 *group, void *shared)\n"
             "{\n"
             "(void)shared;\n"
             "for (u32 thread = 0; thread < " TEXT_DIMS "[0]; thread++) {\n",
             name);
    for (char *line = strtok_r(strchr(body, '{') + 1, ";\n}", &at); line && is_known;
         line = strtok_r(NULL, ";\n}", &at))
        is_known = add_registers(out, line) || add_instruction(out, line);
    str_addf(out, "}\n}\n");
    free(copy);
    return is_known;
}
