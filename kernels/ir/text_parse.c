/* SPDX-License-Identifier: Apache-2.0 */
/* Text to modules, line by line, through the builder.  What the builder takes on trust is checked
 * here: that operands are made before and that what is closed is open.  All else is left to verify,
 * whose place is turned back into a line. */
#include <stdlib.h>
#include <string.h>

#include <frit/program.h>

#include "base/array.h"
#include "base/fail.h"
#include "ir/text.h"
#include "ir/text_words.h"
#include "ir/verify.h"

struct parser {
    const char *at, *end;
    uint32_t line;
    uint32_t first_line; /* that has a word */
    frit_str word;       /* the last one read; empty at the end of the line */
    char shown[48];      /* of the word, for messages */
    struct kir_module *module;
    uint32_t open[KIR_MAX_DEPTH], depth;      /* ops */
    uint32_t *lines, n_lines, lines_capacity; /* of each instruction, phase after phase */
    uint32_t first[KIR_PHASES];               /* of the phase in `lines` */
    uint32_t head[KIR_PHASES];                /* line of the phase */
    frit_err *err;
};

/* Puts the line in front of the reason. */
static frit_status at_line(const struct parser *p, frit_status status)
{
    if (p->err)
        fail_context(p->err, "line %u", p->line);
    return status;
}

#define bad(p, ...) at_line(p, fail((p)->err, FRIT_INVALID, __VA_ARGS__))

/* ---- words ---- */

/* The word as a message may show it. */
static const char *shown(struct parser *p)
{
    size_t most = sizeof(p->shown) - sizeof("''"), n = 0;

    if (!p->word.len)
        return "the end of the line";
    p->shown[n++] = '\'';
    for (; n <= p->word.len && n <= most; n++) {
        char c = p->word.ptr[n - 1];

        p->shown[n] = '?';
        if (c > ' ' && c < 127)
            p->shown[n] = c;
    }
    p->shown[n++] = '\'';
    p->shown[n] = '\0';
    return p->shown;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_line(const struct parser *p)
{
    return p->at == p->end || *p->at == '\n' || *p->at == '#';
}

/* The next word of the line; false at its end. */
static bool next_word(struct parser *p)
{
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
    p->word = (frit_str){p->at, 0};
    while (!ends_line(p) && !is_blank(*p->at))
        p->at++;
    p->word.len = (uint64_t)(p->at - p->word.ptr);
    return p->word.len > 0;
}

static void next_line(struct parser *p)
{
    while (p->at < p->end && *p->at != '\n')
        p->at++;
    p->at += p->at < p->end;
    p->line++;
}

static frit_status want_end(struct parser *p)
{
    return next_word(p) ? bad(p, "%s is one word too many", shown(p)) : FRIT_OK;
}

static frit_status want(struct parser *p, const char *word)
{
    next_word(p);
    return str_is(p->word, word) ? FRIT_OK : bad(p, "'%s' is missing before %s", word, shown(p));
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Decimal or 0x; false for anything else and what is too large. */
static bool to_number(frit_str text, uint64_t *out)
{
    bool hex = text.len > 2 && text.ptr[0] == '0' && text.ptr[1] == 'x';
    uint64_t base = hex ? 16 : 10, value = 0;

    for (uint64_t i = hex ? 2 : 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)digit_of(text.ptr[i]);

        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return text.len > 0;
}

/* A number at most `most`, right after `prefix`. */
static frit_status want_number(struct parser *p, const char *prefix, uint64_t most, uint64_t *out)
{
    size_t skip = strlen(prefix);
    frit_str digits;

    next_word(p);
    if (p->word.len > skip && memcmp(p->word.ptr, prefix, skip) == 0) {
        digits = (frit_str){p->word.ptr + skip, p->word.len - skip};
        if (to_number(digits, out) && *out <= most)
            return FRIT_OK;
    }
    return bad(p, "%s is not a number like %s1, or it is too large", shown(p), prefix);
}

static frit_status want_u32(struct parser *p, uint32_t *out)
{
    uint64_t number = 0;

    TRY(want_number(p, "", UINT32_MAX, &number));
    *out = (uint32_t)number;
    return FRIT_OK;
}

static frit_status want_dtype(struct parser *p, uint32_t *out)
{
    next_word(p);
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++) {
        if (frit_storage_bytes(dtype, 1) && str_is(p->word, text_dtype(dtype))) {
            *out = dtype;
            return FRIT_OK;
        }
    }
    return bad(p, "%s is not a dtype", shown(p));
}

static frit_status want_type(struct parser *p, enum kir_type *out)
{
    next_word(p);
    for (uint32_t type = KIR_B; type < KIR_TYPES; type++) {
        if (str_is(p->word, kir_type_name(type))) {
            *out = (enum kir_type)type;
            return FRIT_OK;
        }
    }
    return bad(p, "%s is not a type", shown(p));
}

/* A value that was made before in the phase. */
static frit_status want_value(struct parser *p, uint32_t *out)
{
    const struct kir_module *module = p->module;
    uint32_t n = module->phases[module->n_phases - 1].n;
    uint64_t number = 0;

    TRY(want_number(p, "%", UINT32_MAX, &number));
    if (number >= n)
        return bad(p, "%%%llu is made later", (unsigned long long)number);
    *out = (uint32_t)number;
    return FRIT_OK;
}

/* ---- heads ---- */

static frit_status parse_kernel(struct parser *p)
{
    char name[KIR_MAX_NAME + 1];

    if (p->module->name)
        return bad(p, "a second kernel");
    if (!next_word(p) || p->word.len > KIR_MAX_NAME)
        return bad(p, "a name of 1 to %u characters is missing", KIR_MAX_NAME);
    memcpy(name, p->word.ptr, p->word.len);
    name[p->word.len] = '\0';
    if (strlen(name) != p->word.len)
        return bad(p, "a name with a zero byte");
    p->first_line = p->line;
    kir_init(p->module, name);
    return FRIT_OK;
}

static frit_status parse_wide(struct parser *p)
{
    p->module->wide = true;
    return FRIT_OK;
}

static frit_status parse_spaces(struct parser *p)
{
    p->module->spaces = true;
    return FRIT_OK;
}

static frit_status parse_params(struct parser *p)
{
    return want_u32(p, &p->module->n_params);
}

/* The number that a line is about, which is the next one. */
static frit_status want_next(struct parser *p, const char *prefix, uint32_t next)
{
    uint64_t number = 0;

    TRY(want_number(p, prefix, UINT32_MAX, &number));
    return number == next ? FRIT_OK
                          : bad(p, "%s stands where %s%u is next", shown(p), prefix, next);
}

static frit_status parse_arg(struct parser *p)
{
    uint32_t dtype = 0, access = 0;

    TRY(want_next(p, "a", p->module->n_args));
    TRY(want_dtype(p, &dtype));
    while (next_word(p)) {
        uint32_t bit = str_is(p->word, "read")    ? KIR_READ
                       : str_is(p->word, "write") ? KIR_WRITE
                                                  : 0;

        if (!bit || access >= bit)
            return bad(p, "%s stands where there may be: read, write, read write", shown(p));
        access |= bit;
    }
    if (!access || kir_type_of(dtype) == KIR_VOID)
        return bad(p, "an argument is read or written, of a dtype that loads as a type");
    kir_arg(p->module, dtype, access);
    return FRIT_OK;
}

static frit_status check_closed(struct parser *p)
{
    return p->depth ? bad(p, "the phase before ends with an open %s",
                          kir_op_info(p->open[p->depth - 1])->name)
                    : FRIT_OK;
}

static frit_status parse_phase(struct parser *p)
{
    uint32_t lanes, n = p->module->n_phases;

    TRY(check_closed(p));
    if (n == KIR_PHASES)
        return bad(p, "more than %u phases", KIR_PHASES);
    TRY(want_u32(p, &lanes));
    p->first[n] = p->n_lines;
    p->head[n] = p->line;
    kir_phase(p->module, lanes);
    return FRIT_OK;
}

static frit_status want_phase(struct parser *p)
{
    return p->module->n_phases ? FRIT_OK : bad(p, "there is no phase yet");
}

static frit_status parse_tile(struct parser *p)
{
    const struct kir_module *module = p->module;
    enum kir_space space = KIR_GROUP;
    uint32_t dtype = 0, count;

    TRY(want_phase(p));
    TRY(want_next(p, "t", module->phases[module->n_phases - 1].n_tiles));
    next_word(p);
    if (str_is(p->word, "lane"))
        space = KIR_LANE;
    else if (!str_is(p->word, "group"))
        return bad(p, "%s stands where there may be: group, lane", shown(p));
    TRY(want_dtype(p, &dtype));
    TRY(want_u32(p, &count));
    kir_tile_of(p->module, space, dtype, count);
    return FRIT_OK;
}

static frit_status parse_per_thread(struct parser *p)
{
    TRY(want_phase(p));
    return want_u32(p, &p->module->phases[p->module->n_phases - 1].per_thread);
}

static frit_status parse_team(struct parser *p)
{
    TRY(want_phase(p));
    return want_u32(p, &p->module->phases[p->module->n_phases - 1].team);
}

static frit_status want_use(struct parser *p, uint32_t *out)
{
    next_word(p);
    for (*out = KIR_LEFT; *out <= KIR_SUM; ++*out)
        if (str_is(p->word, text_use(*out)))
            return FRIT_OK;
    return bad(p, "%s stands where there may be: left, right, sum", shown(p));
}

static frit_status parse_fragment(struct parser *p)
{
    const struct kir_module *module = p->module;
    struct kir_fragment fragment = {0};

    TRY(want_phase(p));
    TRY(want_next(p, "f", module->phases[module->n_phases - 1].n_fragments));
    TRY(want_use(p, &fragment.use));
    TRY(want_dtype(p, &fragment.dtype));
    TRY(want_u32(p, &fragment.rows));
    TRY(want_u32(p, &fragment.columns));
    kir_fragment(p->module, &fragment);
    return FRIT_OK;
}

/* ---- instructions ---- */

static frit_status parse_const(struct parser *p, enum kir_type type, uint64_t *out)
{
    bool integer = type == KIR_I32 || type == KIR_I64;
    frit_str digits;
    bool negative;

    next_word(p);
    digits = p->word;
    negative = integer && digits.len && digits.ptr[0] == '-';
    digits.ptr += negative;
    digits.len -= negative;
    if (!to_number(digits, out) || (negative && *out > (uint64_t)1 << (type == KIR_I32 ? 31 : 63)))
        return bad(p, "%s is not a number of type %s", shown(p), kir_type_name(type));
    if (negative)
        *out = type == KIR_I32 ? (uint32_t)(0 - *out) : 0 - *out;
    return FRIT_OK;
}

static frit_status parse_narrow(struct parser *p, uint64_t *out)
{
    next_word(p);
    for (int64_t imm = -16; imm < FRIT_DTYPE_LIMIT; imm++) {
        uint32_t dtype = text_narrow(imm);

        if (dtype && str_is(p->word, text_dtype(dtype))) {
            *out = (uint64_t)imm;
            return FRIT_OK;
        }
    }
    return bad(p, "%s stands where there may be an integer type below 32 bits or a float of 16",
               shown(p));
}

static frit_status want_fragment(struct parser *p, uint32_t *out)
{
    uint64_t number = 0;

    TRY(want_number(p, "f", UINT16_MAX, &number));
    *out = (uint32_t)number;
    return FRIT_OK;
}

/* "f1 a0 rows" */
static frit_status parse_place(struct parser *p, uint64_t *out)
{
    struct kir_fragment_place place = {0};
    uint64_t number = 0;
    const char *at;

    TRY(want_fragment(p, &place.fragment));
    at = p->at;
    place.is_tile = next_word(p) && p->word.ptr[0] == 't';
    p->at = at;
    TRY(want_number(p, place.is_tile ? "t" : "a", UINT32_MAX, &number));
    place.place = (uint32_t)number;
    next_word(p);
    for (number = 0; number < 4 && !str_is(p->word, text_layouts[number]); number++)
        ;
    if (number == 4)
        return bad(p, "%s stands where there may be: rows, columns, row-blocks, column-blocks",
                   shown(p));
    place.by_columns = number & 1;
    place.in_blocks = number & 2;
    *out = kir_fragment_imm(&place);
    return FRIT_OK;
}

static frit_status parse_product(struct parser *p, uint64_t *out)
{
    uint32_t f[3];

    for (uint32_t i = 0; i < 3; i++)
        TRY(want_fragment(p, &f[i]));
    *out = kir_product(f[0], f[1], f[2]);
    return FRIT_OK;
}

static frit_status parse_pair(struct parser *p, uint64_t *out)
{
    uint32_t f[2];

    for (uint32_t i = 0; i < 2; i++)
        TRY(want_fragment(p, &f[i]));
    *out = kir_pair(f[0], f[1]);
    return FRIT_OK;
}

/* "t0 a1" */
static frit_status parse_copy(struct parser *p, uint64_t *out)
{
    uint64_t tile = 0, arg = 0;

    TRY(want_number(p, "t", UINT32_MAX, &tile));
    TRY(want_number(p, "a", UINT32_MAX, &arg));
    *out = kir_copy_imm(&(struct kir_copy){(uint32_t)tile, (uint32_t)arg});
    return FRIT_OK;
}

static frit_status parse_imm(struct parser *p, enum kir_imm kind, enum kir_type type, uint64_t *out)
{
    *out = 0;
    switch (kind) {
    case KIR_IMM_NONE:
    case KIR_IMM_LOOP:
        return FRIT_OK;
    case KIR_IMM_BITS:
        return parse_const(p, type, out);
    case KIR_IMM_NARROW:
        return parse_narrow(p, out);
    case KIR_IMM_ARG:
        return want_number(p, "a", UINT32_MAX, out);
    case KIR_IMM_TILE:
        return want_number(p, "t", UINT32_MAX, out);
    case KIR_IMM_FRAGMENT:
        return want_number(p, "f", UINT16_MAX, out);
    case KIR_IMM_PLACE:
        return parse_place(p, out);
    case KIR_IMM_PRODUCT:
        return parse_product(p, out);
    case KIR_IMM_PAIR:
        return parse_pair(p, out);
    case KIR_IMM_COPY:
        return parse_copy(p, out);
    case KIR_IMM_NUMBER:
    case KIR_IMM_DIM:
    case KIR_IMM_LANES:
        return want_number(p, "", UINT32_MAX, out);
    }
    return FRIT_OK;
}

static frit_status push(struct parser *p, uint32_t op)
{
    if (p->depth == KIR_MAX_DEPTH)
        return bad(p, "nested deeper than %u", KIR_MAX_DEPTH);
    p->open[p->depth++] = op;
    return FRIT_OK;
}

static frit_status pop(struct parser *p, uint32_t op)
{
    if (!p->depth || p->open[p->depth - 1] != op)
        return bad(p, "the innermost open loop or if is not '%s'", kir_op_info(op)->name);
    p->depth--;
    return FRIT_OK;
}

static frit_status parse_for(struct parser *p, enum kir_type type)
{
    uint32_t begin, end, step;

    TRY(want_value(p, &begin));
    TRY(want(p, "to"));
    TRY(want_value(p, &end));
    TRY(want(p, "step"));
    TRY(want_u32(p, &step));
    if (!p->module->failed && kir_type_at(p->module, begin) != type)
        return bad(p, "begin, end and counter are of one integer type");
    TRY(push(p, KIR_for));
    kir_for(p->module, begin, end, step);
    return FRIT_OK;
}

static frit_status parse_next(struct parser *p)
{
    uint32_t *values = NULL, n = 0, capacity = 0;
    frit_status st = pop(p, KIR_for);

    while (!st) {
        const char *at = p->at;

        if (!next_word(p))
            break;
        p->at = at;
        st = array_grow(&values, &capacity, n, 1, sizeof(*values))
                 ? want_value(p, &values[n++])
                 : fail_memory(p->err, (size_t)capacity * 2 * sizeof(*values));
    }
    if (!st)
        kir_next(p->module, values, n);
    free(values);
    return st;
}

static frit_status parse_body(struct parser *p, enum kir_op op, enum kir_type type)
{
    const struct kir_op_info *info = kir_op_info(op);
    uint32_t a[3] = {KIR_NONE, KIR_NONE, KIR_NONE};
    uint64_t imm;

    if (op == KIR_for)
        return parse_for(p, type);
    if (op == KIR_next)
        return parse_next(p);
    TRY(parse_imm(p, info->imm, type, &imm));
    for (uint32_t i = 0; i < info->n; i++)
        TRY(want_value(p, &a[i]));
    if (op == KIR_end) {
        TRY(pop(p, KIR_if));
        kir_end(p->module);
        return FRIT_OK;
    }
    if (op == KIR_done) {
        TRY(pop(p, KIR_each));
        kir_done(p->module, a[0]);
        return FRIT_OK;
    }
    if (kir_opens(op))
        TRY(push(p, op));
    kir_emit_as(p->module, op, type, imm, a[0], a[1], a[2]);
    return FRIT_OK;
}

static frit_status find_op(struct parser *p, enum kir_op *out)
{
    for (uint32_t op = 0; op < KIR_OPS; op++) {
        if (str_is(p->word, kir_op_info(op)->name)) {
            *out = (enum kir_op)op;
            return FRIT_OK;
        }
    }
    return bad(p, "%s is not an instruction", shown(p));
}

/* "%3 f32 =" */
static frit_status parse_label(struct parser *p, enum kir_type *type)
{
    const struct kir_module *module = p->module;

    p->at = p->word.ptr;
    TRY(want_next(p, "%", module->phases[module->n_phases - 1].n));
    TRY(want_type(p, type));
    TRY(want(p, "="));
    next_word(p);
    return FRIT_OK;
}

/* The first word was read. */
static frit_status parse_inst(struct parser *p)
{
    enum kir_type type = KIR_VOID;
    enum kir_op op = KIR_OPS;

    TRY(want_phase(p));
    if (p->word.ptr[0] == '%')
        TRY(parse_label(p, &type));
    TRY(find_op(p, &op));
    if ((kir_op_info(op)->result == KIR_RESULT_NONE) != (type == KIR_VOID))
        return bad(p, "%s has %s value", kir_op_info(op)->name, type ? "no" : "a");
    if (!array_grow(&p->lines, &p->lines_capacity, p->n_lines, 1, sizeof(*p->lines)))
        return fail_memory(p->err, (size_t)p->lines_capacity * 2 * sizeof(*p->lines));
    p->lines[p->n_lines++] = p->line;
    return parse_body(p, op, type);
}

/* ---- all ---- */

static frit_status parse_line(struct parser *p)
{
    static const struct {
        const char *word;
        frit_status (*parse)(struct parser *p);
    } heads[] = {
        {"wide", parse_wide},         {"spaces", parse_spaces},
        {"params", parse_params},     {"arg", parse_arg},
        {"tile", parse_tile},         {"phase", parse_phase},
        {"kernel", parse_kernel},     {"team", parse_team},
        {"fragment", parse_fragment}, {"per_thread", parse_per_thread},
    };

    if (!p->module->name && !str_is(p->word, "kernel"))
        return bad(p, "the first line is: kernel NAME");
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        if (str_is(p->word, heads[i].word))
            return heads[i].parse(p);
    }
    return parse_inst(p);
}

static frit_status parse_lines(struct parser *p)
{
    for (; p->at < p->end; next_line(p)) {
        if (!next_word(p))
            continue;
        TRY(parse_line(p));
        TRY(want_end(p));
        if (p->module->failed)
            return fail_memory(p->err, sizeof(struct kir_inst));
    }
    if (!p->module->name)
        return bad(p, "the first line is: kernel NAME");
    return check_closed(p);
}

static frit_status verify(struct parser *p)
{
    struct kir_place place = {KIR_NONE, KIR_NONE};
    frit_status st = kir_verify(p->module, &place, p->err);

    if (st != FRIT_INVALID || !p->err)
        return st;
    if (place.at != KIR_NONE)
        fail_context(p->err, "line %u", p->lines[p->first[place.phase] + place.at]);
    else if (place.phase != KIR_NONE)
        fail_context(p->err, "line %u", p->head[place.phase]);
    else
        fail_context(p->err, "line %u", p->first_line);
    return st;
}

frit_status kir_parse(const char *text, size_t length, struct kir_module *out, frit_err *err)
{
    struct parser p = {.at = text, .end = text + length, .line = 1, .module = out, .err = err};
    frit_status st;

    *out = (struct kir_module){0};
    st = parse_lines(&p);
    if (!st)
        st = verify(&p);
    free(p.lines);
    if (st)
        kir_fini(out);
    return st;
}
