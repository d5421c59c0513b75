/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a NumPy file: six bytes of magic, two of version, a length, and a Python dict such
 * as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (500, 64), }.
 *
 * The cursor that reads the dict never passes the end of the given bytes; keys may come in any
 * order, each exactly once. */
#include "file/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"

static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

struct npy_cursor {
    const char *at;
    const char *end;
};

static void skip_blanks(struct npy_cursor *cursor)
{
    while (cursor->at < cursor->end && isspace((unsigned char)*cursor->at))
        cursor->at++;
}

/* Skips blanks and consumes `wanted` if it is the next character. */
static bool take(struct npy_cursor *cursor, char wanted)
{
    skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

static bool take_word(struct npy_cursor *cursor, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* Reads a string in single or double quotes; escapes are not supported, since no key or type has
 * any. */
static bool take_text(struct npy_cursor *cursor, frit_str *out)
{
    const char *end;

    if (!take(cursor, '\'') && !take(cursor, '"'))
        return false;
    end = memchr(cursor->at, cursor->at[-1], (size_t)(cursor->end - cursor->at));
    if (!end)
        return false;
    *out = (frit_str){cursor->at, (uint64_t)(end - cursor->at)};
    cursor->at = end + 1;
    return true;
}

/* Makes text from a file safe for messages. */
static const char *printable(frit_str text, char out[32])
{
    size_t length = text.len < 31 ? (size_t)text.len : 31;

    for (size_t i = 0; i < length; i++)
        out[i] = isprint((unsigned char)text.ptr[i]) ? text.ptr[i] : '?';
    out[length] = '\0';
    return out;
}

/* ---- element type ---- */

static uint32_t dtype_of_descr(frit_str name)
{
    static const struct {
        uint32_t dtype;
        const char *npy;
    } types[] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    {id, npy},
#include <frit/dtypes.def>
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (*types[i].npy && str_is(name, types[i].npy))
            return types[i].dtype;
    return FRIT_NO_DTYPE;
}

/* Describes an unsupported NumPy type. */
static const char *kind_description(frit_str name)
{
    static const struct {
        char kind;
        const char *words;
    } kinds[] = {
        {'O', "Python objects"},    {'U', "text"},  {'S', "byte text"},
        {'c', "complex numbers"},   {'M', "dates"}, {'m', "durations"},
        {'V', "raw or structured"},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (name.len && kinds[i].kind == *name.ptr)
            return kinds[i].words;
    return "not an element type of Frit";
}

static bool is_order(char sign)
{
    return sign == '<' || sign == '>' || sign == '=' || sign == '|';
}

static frit_status parse_descr(struct npy_cursor *cursor, struct npy *out, frit_err *err)
{
    char shown[32];
    frit_str descr, name;
    char order = '=';

    skip_blanks(cursor);
    descr = (frit_str){cursor->at, (uint64_t)(cursor->end - cursor->at)};
    if (take(cursor, '['))
        return fail(err, FRIT_UNSUPPORTED,
                    "structured element type %s... is not supported; save its fields one by one",
                    printable(descr, shown));
    if (!take_text(cursor, &descr) || descr.len == 0)
        return fail(err, FRIT_INVALID, "not a NumPy file: its 'descr' is not a text");
    name = descr;
    if (is_order(*descr.ptr)) {
        order = *descr.ptr;
        name = (frit_str){descr.ptr + 1, descr.len - 1};
    }
    out->type.dtype = dtype_of_descr(name);
    if (out->type.dtype == FRIT_NO_DTYPE)
        return fail(err, FRIT_UNSUPPORTED, "element type '%s' (%s) is not supported",
                    printable(descr, shown), kind_description(name));
    if (order == '>' && frit_dtype_bits(out->type.dtype) > 8)
        return fail(err, FRIT_UNSUPPORTED,
                    "element type '%s' is big-endian; save with .astype('<%.*s')",
                    printable(descr, shown), (int)name.len, name.ptr);
    return FRIT_OK;
}

/* ---- dims ---- */

static bool take_number(struct npy_cursor *cursor, int64_t *out)
{
    int64_t number = 0;
    const char *start;

    skip_blanks(cursor);
    start = cursor->at;
    while (cursor->at < cursor->end && isdigit((unsigned char)*cursor->at)) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *cursor->at - '0', &number))
            return false;
        cursor->at++;
    }
    *out = number;
    return cursor->at > start;
}

static frit_status parse_dims(struct npy_cursor *cursor, struct npy *out, frit_err *err)
{
    bool comma = false;

    out->type.rank = 0;
    if (!take(cursor, '('))
        return fail(err, FRIT_INVALID, "not a NumPy file: its 'shape' is not a tuple");
    while (!take(cursor, ')')) {
        int64_t dim;

        if (out->type.rank && !comma)
            return fail(err, FRIT_INVALID, "not a NumPy file: its 'shape' is not a tuple");
        if (!take_number(cursor, &dim))
            return fail(err, FRIT_INVALID,
                        "dim %" PRIu32 " of its 'shape' is not a number from 0 to %" PRId64,
                        out->type.rank, INT64_MAX);
        if (out->type.rank == FRIT_MAX_RANK)
            return fail(err, FRIT_UNSUPPORTED, "more than %d dims", FRIT_MAX_RANK);
        take(cursor, 'L'); /* Python 2 wrote 3L */
        out->type.dims[out->type.rank++] = dim;
        comma = take(cursor, ',');
    }
    if (out->type.rank == 1 && !comma)
        return fail(err, FRIT_INVALID, "not a NumPy file: its 'shape' is not a tuple");
    return FRIT_OK;
}

/* Computes the size of the elements; other dims must be valid even if one has extent 0. */
static frit_status measure(struct npy *out, frit_err *err)
{
    int64_t bytes = frit_dtype_bits(out->type.dtype) / 8;
    bool empty = false;

    for (uint32_t i = 0; i < out->type.rank; i++) {
        if (out->type.dims[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(bytes, out->type.dims[i], &bytes))
            return fail(err, FRIT_INVALID, "shape overflow: more than %" PRId64 " bytes",
                        INT64_MAX);
    }
    out->bytes = empty ? 0 : (uint64_t)bytes;
    return FRIT_OK;
}

/* ---- header ---- */

static frit_status parse_order(struct npy_cursor *cursor, struct npy *out, frit_err *err)
{
    if (take_word(cursor, "True"))
        out->fortran = true;
    else if (take_word(cursor, "False"))
        out->fortran = false;
    else
        return fail(err, FRIT_INVALID,
                    "not a NumPy file: its 'fortran_order' is neither True nor False");
    return FRIT_OK;
}

static frit_status parse_dict(struct npy_cursor *cursor, struct npy *out, frit_err *err)
{
    static const struct {
        const char *key;
        frit_status (*parse)(struct npy_cursor *cursor, struct npy *out, frit_err *err);
    } keys[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_dims}};
    enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };
    unsigned seen = 0;
    bool comma = true;

    if (!take(cursor, '{'))
        return fail(err, FRIT_INVALID, "not a NumPy file: its header is not a dict");
    while (!take(cursor, '}')) {
        char shown[32];
        frit_str key;
        size_t k = 0;

        if (!comma || !take_text(cursor, &key) || !take(cursor, ':'))
            return fail(err, FRIT_INVALID, "not a NumPy file: its header is not a dict");
        while (k < N_KEYS && !str_is(key, keys[k].key))
            k++;
        if (k == N_KEYS || seen & 1u << k)
            return fail(err, FRIT_INVALID, "not a NumPy file: key '%s' of its header is %s",
                        printable(key, shown), k == N_KEYS ? "unknown" : "there twice");
        seen |= 1u << k;
        TRY(keys[k].parse(cursor, out, err));
        comma = take(cursor, ',');
    }
    for (size_t k = 0; k < N_KEYS; k++)
        if (!(seen & 1u << k))
            return fail(err, FRIT_INVALID, "not a NumPy file: its header has no '%s'", keys[k].key);
    skip_blanks(cursor);
    if (cursor->at != cursor->end)
        return fail(err, FRIT_INVALID,
                    "not a NumPy file: something follows the dict in its header");
    return FRIT_OK;
}

/* Locates the dict. */
static frit_status parse_frame(const unsigned char *head, size_t count, struct npy_cursor *dict,
                               frit_err *err)
{
    size_t start, length;

    if (count < sizeof(magic) || memcmp(head, magic, sizeof(magic)) != 0)
        return fail(err, FRIT_INVALID, "not a NumPy file");
    if (count < 12)
        return fail(err, FRIT_INVALID, "truncated: the file ends in its header");
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return fail(err, FRIT_UNSUPPORTED, "format version %d.%d; Frit knows 1.0 to 3.0", head[6],
                    head[7]);
    start = head[6] == 1 ? 10 : 12;
    length = (size_t)head[8] | (size_t)head[9] << 8;
    if (head[6] > 1)
        length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (length > NPY_HEAD_MAX - start)
        return fail(err, FRIT_UNSUPPORTED, "a header of %zu bytes is too long; at most %zu", length,
                    NPY_HEAD_MAX - start);
    if (length > count - start)
        return fail(err, FRIT_INVALID, "truncated: the file ends in its header");
    dict->at = (const char *)head + start;
    dict->end = dict->at + length;
    return FRIT_OK;
}

frit_status npy_parse(const void *head, size_t count, uint64_t file_bytes, struct npy *out,
                      frit_err *err)
{
    struct npy_cursor dict = {0};

    *out = (struct npy){0};
    TRY(parse_frame(head, count, &dict, err));
    out->offset = (uint64_t)(dict.end - (const char *)head);
    TRY(parse_dict(&dict, out, err));
    TRY(measure(out, err));
    if (out->bytes > file_bytes - out->offset)
        return fail(err, FRIT_INVALID,
                    "truncated: the header promises %" PRIu64
                    " bytes of elements, the file holds %" PRIu64,
                    out->bytes, file_bytes - out->offset);
    return FRIT_OK;
}

size_t npy_format(const struct op_type *type, char head[NPY_HEAD_OUT])
{
    static const char *const names[FRIT_DTYPE_LIMIT] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    [id] = (npy),
#include <frit/dtypes.def>
    };
    const char *name = type->dtype < FRIT_DTYPE_LIMIT ? names[type->dtype] : NULL;
    size_t used = 10, length;

    if (!name || !*name)
        return 0;
    used += (size_t)snprintf(head + used, NPY_HEAD_OUT - used,
                             "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                             frit_dtype_bits(type->dtype) > 8 ? '<' : '|', name);
    for (uint32_t i = 0; i < type->rank; i++)
        used += (size_t)snprintf(head + used, NPY_HEAD_OUT - used, "%s%" PRId64 "%s", i ? " " : "",
                                 type->dims[i], i + 1 < type->rank || i == 0 ? "," : "");
    used += (size_t)snprintf(head + used, NPY_HEAD_OUT - used, "), }");
    length = (used + 1 + 63) / 64 * 64;
    memset(head + used, ' ', length - used);
    head[length - 1] = '\n';
    memcpy(head, magic, sizeof(magic));
    head[6] = 1;
    head[7] = 0;
    head[8] = (char)((length - 10) & 255);
    head[9] = (char)((length - 10) >> 8);
    return length;
}
