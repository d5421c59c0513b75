/* SPDX-License-Identifier: Apache-2.0 */
/* Constants whose elements stand in the program: nested lists as NumPy writes them, or one number
 * for all elements.  Inside the brackets a line may end.  Elements are collected in row-major
 * order, in the bytes that a tensor of the type has. */
#include "graph/text/text_const.h"

#include <string.h>

#include "base/arena.h"
#include "base/fail.h"
#include "graph/dtype.h"
#include "graph/scalar.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_number.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

/* A constant that is being read. */
struct constant_reading {
    struct parser *p;
    struct script_input *input;
    struct str bytes;
    uint32_t depth;                /* open brackets */
    int64_t count[FRIT_MAX_RANK];  /* items so far in the open list of each depth */
    int64_t extent[FRIT_MAX_RANK]; /* -1: not known yet */
};

static size_t element_bytes(uint32_t dtype)
{
    return (size_t)frit_storage_bytes(dtype, 1);
}

/* ---- elements ---- */

bool parse_at_constant(const struct parser *p)
{
    frit_scalar ignored;

    return p->token.kind == TOKEN_NUMBER || parse_at_sign(p, '[') || parse_at_word(p, "true") ||
           parse_at_word(p, "false") ||
           (p->token.kind == TOKEN_NAME && number_parse_word(p->token.text, &ignored));
}

static frit_status read_number(struct parser *p, frit_scalar *out)
{
    char found[80];
    const char *why = NULL;

    if (parse_at_word(p, "true") || parse_at_word(p, "false"))
        *out = scalar_i(parse_at_word(p, "true"));
    else if (p->token.kind == TOKEN_NUMBER)
        why = number_parse(p->token.text, out);
    else if (p->token.kind != TOKEN_NAME || !number_parse_word(p->token.text, out))
        why = "is not a number";
    if (why)
        return parse_fail(p, &p->token, "%s %s", lex_describe(&p->token, found, sizeof(found)),
                          why);
    return FRIT_OK;
}

/* Appends `times` copies of the element at the token. */
static frit_status add_element(struct constant_reading *r, uint64_t times)
{
    struct parser *p = r->p;
    uint32_t dtype = r->input->dtype;
    frit_scalar scalar = {0};
    char found[80];
    const char *why;
    uint64_t bits;

    TRY(read_number(p, &scalar));
    why = scalar_fit(&scalar, dtype);
    if (why)
        return parse_fail(p, &p->token, "%s %s: %s has %s",
                          lex_describe(&p->token, found, sizeof(found)), why, dtype_name(dtype),
                          scalar_range(dtype, (char[80]){0}, 80));
    if (times > TEXT_MAX_ELEMENTS - p->script->n_elements)
        return parse_fail(p, &p->token,
                          "the program has more than %d elements of constants; put them in files",
                          TEXT_MAX_ELEMENTS);
    p->script->n_elements += times;
    bits = scalar_bits(&scalar, dtype);
    for (uint64_t i = 0; i < times; i++)
        str_add(&r->bytes, (const char *)&bits, element_bytes(dtype));
    return r->bytes.failed ? fail_memory(p->err, r->bytes.length) : parse_advance(p);
}

/* ---- lists ---- */

/* Takes a token, and the ends of lines behind it. */
static frit_status advance_over_lines(struct parser *p)
{
    TRY(parse_advance(p));
    while (p->token.kind == TOKEN_NEWLINE)
        TRY(parse_advance(p));
    return FRIT_OK;
}

static frit_status open_list(struct constant_reading *r)
{
    if (r->depth == r->input->rank)
        return parse_fail(r->p, &r->p->token, "%s has %u dim%s, its lists are deeper",
                          r->input->name, r->input->rank, r->input->rank == 1 ? "" : "s");
    r->count[r->depth++] = 0;
    return advance_over_lines(r->p);
}

/* The first list of a depth says how long the others are, unless the type does. */
static frit_status close_list(struct constant_reading *r)
{
    uint32_t axis = r->depth - 1;

    if (r->extent[axis] < 0)
        r->extent[axis] = r->count[axis];
    if (r->extent[axis] != r->count[axis])
        return parse_fail(r->p, &r->p->token, "this list has %lld item%s, axis %u of %s has %lld",
                          (long long)r->count[axis], r->count[axis] == 1 ? "" : "s", axis,
                          r->input->name, (long long)r->extent[axis]);
    r->depth--;
    return r->depth ? advance_over_lines(r->p) : parse_advance(r->p);
}

/* An item of the innermost open list: an element, or the beginning of a list. */
static frit_status read_item(struct constant_reading *r)
{
    char found[80];

    if (r->depth && ++r->count[r->depth - 1] > r->extent[r->depth - 1] &&
        r->extent[r->depth - 1] >= 0)
        return parse_fail(r->p, &r->p->token, "axis %u of %s has %lld item%s", r->depth - 1,
                          r->input->name, (long long)r->extent[r->depth - 1],
                          r->extent[r->depth - 1] == 1 ? "" : "s");
    if (parse_at_sign(r->p, '['))
        return open_list(r);
    if (r->p->token.kind == TOKEN_END)
        return parse_fail(r->p, &r->p->token, "the text ends in the list of %s", r->input->name);
    if (r->depth != r->input->rank)
        return parse_fail(r->p, &r->p->token, "%s has %u dims: expected '[', found %s",
                          r->input->name, r->input->rank,
                          lex_describe(&r->p->token, found, sizeof(found)));
    TRY(add_element(r, 1));
    while (r->depth && r->p->token.kind == TOKEN_NEWLINE)
        TRY(parse_advance(r->p));
    return FRIT_OK;
}

/* From the first '[' to the ']' that closes it. */
static frit_status read_lists(struct constant_reading *r)
{
    TRY(open_list(r));
    while (r->depth) {
        if (parse_at_sign(r->p, ']')) {
            TRY(close_list(r));
            continue;
        }
        if (r->count[r->depth - 1]) {
            TRY(parse_sign(r->p, ',', "or ']' in the list"));
            while (r->p->token.kind == TOKEN_NEWLINE)
                TRY(parse_advance(r->p));
        }
        TRY(read_item(r));
    }
    return FRIT_OK;
}

/* One number for all elements. */
static frit_status read_filled(struct constant_reading *r)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < r->input->rank; i++) {
        if (r->extent[i] < 0)
            return parse_fail(r->p, &r->p->token,
                              "one number for all elements needs dims that are numbers; `full` "
                              "takes named ones");
        if (__builtin_mul_overflow(count, (uint64_t)r->extent[i], &count))
            count = UINT64_MAX;
    }
    return add_element(r, count);
}

static frit_status read_constant(struct constant_reading *r)
{
    struct script_input *input = r->input;
    void *data;

    if (parse_at_sign(r->p, '['))
        TRY(read_lists(r));
    else
        TRY(read_filled(r));
    data = arena_alloc(&r->p->script->arena, r->bytes.length + 1);
    if (!data)
        return fail_memory(r->p->err, r->bytes.length);
    if (r->bytes.length)
        memcpy(data, r->bytes.text, r->bytes.length);
    input->data = data;
    input->data_type = (struct op_type){.dtype = input->dtype, .rank = input->rank};
    for (uint32_t i = 0; i < input->rank; i++) /* lists in empty lists are not there */
        input->data_type.dims[i] = r->extent[i] < 0 ? 0 : r->extent[i];
    return FRIT_OK;
}

frit_status parse_constant(struct parser *p, struct script_input *input)
{
    struct constant_reading r = {.p = p, .input = input};
    frit_status st;

    if (!input->has_dims)
        return parse_fail(p, &p->token,
                          "a constant without a file needs a type, such as %s : f32[4]",
                          input->name);
    if (dtype_class(input->dtype) == FRIT_DTYPE_PACKED)
        return parse_fail(p, &p->token, "constants of packed types come from files");
    for (uint32_t i = 0; i < input->rank; i++)
        r.extent[i] = input->dim_names[i] ? -1 : input->dims[i];
    st = read_constant(&r);
    str_fini(&r.bytes);
    return st;
}

/* ---- printing ---- */

static void print_element(uint32_t dtype, const char *at, struct str *out)
{
    uint64_t bits = 0;
    frit_scalar scalar;

    memcpy(&bits, at, element_bytes(dtype));
    scalar = scalar_of_bits(bits, dtype);
    number_print(out, &scalar, dtype);
}

/* Whether one number stands for all. */
static bool is_filled(const char *data, uint64_t count, size_t bytes)
{
    for (uint64_t i = 1; i < count; i++) {
        if (memcmp(data, data + i * bytes, bytes) != 0)
            return false;
    }
    return count > 1;
}

/* What stands before element i of `count`: the brackets that close and open there. */
static void print_between(const struct op_type *type, uint64_t i, uint64_t count, struct str *out)
{
    uint32_t n = 0;
    uint64_t inner = 1;

    for (uint32_t axis = type->rank; axis > 0; axis--) {
        inner *= (uint64_t)type->dims[axis - 1];
        n += i % inner == 0;
    }
    for (uint32_t k = 0; k < n && i; k++)
        str_add(out, "]", 1);
    if (i && i < count)
        str_add(out, ", ", 2);
    for (uint32_t k = 0; k < n && i < count; k++)
        str_add(out, "[", 1);
}

void constant_print(const struct op_type *type, const void *data, struct str *out)
{
    static const uint64_t zero;
    size_t bytes = element_bytes(type->dtype);
    uint64_t count = (uint64_t)op_elements(type);

    if (count == 0) /* any number will do */
        data = &zero;
    if (count == 0 || type->rank == 0 || is_filled(data, count, bytes)) {
        print_element(type->dtype, data, out);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        print_between(type, i, count, out);
        print_element(type->dtype, (const char *)data + i * bytes, out);
    }
    print_between(type, count, count, out);
}
