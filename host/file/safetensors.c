/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the header in one pass, in which each tensor is checked by itself; then the tensors are
 * checked against each other in two sorted orders, by offset and by name. */
#include "file/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/text.h"
#include "file/json.h"
#include "file/safetensors_names.h"

struct parse {
    struct json_reader reader;
    struct safetensors *out;
    uint64_t data_bytes;
    const char *name; /* of the tensor that is being read; NULL: none is */
    frit_err *err;
};

/* Reports what the reader found. */
static frit_status fail_json(const struct parse *parse)
{
    const struct json_reader *reader = &parse->reader;
    char shown[SAFETENSORS_SHOWN];

    fail(parse->err, FRIT_INVALID, "byte %td of the header: %s", reader->at - reader->start,
         reader->why);
    if (parse->name)
        fail_context(parse->err, "tensor '%s'", safetensors_shown(parse->name, shown));
    return FRIT_INVALID;
}

/* ---- one tensor ---- */

static frit_status parse_dtype(struct parse *parse, struct safetensors_entry *entry)
{
    const char *name = json_text(&parse->reader, "the text of 'dtype' is expected");
    char shown[SAFETENSORS_SHOWN];

    if (!name)
        return fail_json(parse);
    entry->type.dtype = safetensors_dtype(name);
    if (entry->type.dtype != FRIT_NO_DTYPE)
        return FRIT_OK;
    return fail(parse->err, FRIT_UNSUPPORTED,
                "element type '%s' is not supported; cast the tensor before it is saved",
                safetensors_shown(name, shown));
}

static frit_status parse_shape(struct parse *parse, struct safetensors_entry *entry)
{
    struct json_reader *reader = &parse->reader;
    enum json_next next;
    bool first = true;

    if (!json_open(reader, '[', "the list of 'shape' is expected"))
        return fail_json(parse);
    while ((next = json_next(reader, ']', &first)) == JSON_MEMBER) {
        int64_t dim;

        if (!json_whole(reader, &dim))
            return fail_json(parse);
        if (entry->type.rank == FRIT_MAX_RANK)
            return fail(parse->err, FRIT_UNSUPPORTED,
                        "more than %d dims; reshape the tensor before it is saved", FRIT_MAX_RANK);
        entry->type.dims[entry->type.rank++] = dim;
    }
    return next == JSON_END ? FRIT_OK : fail_json(parse);
}

static frit_status parse_offsets(struct parse *parse, struct safetensors_entry *entry)
{
    struct json_reader *reader = &parse->reader;
    int64_t offsets[2];
    bool first = true;

    if (!json_open(reader, '[', "the list of 'data_offsets' is expected"))
        return fail_json(parse);
    for (int i = 0; i < 2; i++) {
        const enum json_next next = json_next(reader, ']', &first);

        if (next == JSON_END)
            return fail(parse->err, FRIT_INVALID, "data_offsets has %d numbers, not 2", i);
        if (next == JSON_BROKEN || !json_whole(reader, &offsets[i]))
            return fail_json(parse);
    }
    if (!json_open(reader, ']', "] after the two numbers of 'data_offsets' is expected"))
        return fail_json(parse);
    entry->begin = (uint64_t)offsets[0];
    entry->end = (uint64_t)offsets[1];
    return FRIT_OK;
}

/* Type against offsets against the file. */
static frit_status check_entry(const struct parse *parse, const struct safetensors_entry *entry)
{
    char text[128];
    uint64_t bytes;

    TRY(op_type_check(&entry->type, parse->err));
    bytes = frit_storage_bytes(entry->type.dtype, op_elements(&entry->type));
    if (entry->begin > entry->end)
        return fail(parse->err, FRIT_INVALID,
                    "data_offsets [%" PRIu64 ", %" PRIu64 "] end before they begin", entry->begin,
                    entry->end);
    if (entry->end - entry->begin != bytes)
        return fail(
            parse->err, FRIT_INVALID, "data_offsets hold %" PRIu64 " bytes, %s has %" PRIu64,
            entry->end - entry->begin, op_type_text(&entry->type, text, sizeof(text)), bytes);
    if (entry->end > parse->data_bytes)
        return fail(parse->err, FRIT_INVALID,
                    "truncated: it ends at byte %" PRIu64
                    " of the elements, the file holds %" PRIu64,
                    entry->end, parse->data_bytes);
    return FRIT_OK;
}

static frit_status parse_keys(struct parse *parse, struct safetensors_entry *entry)
{
    static const struct {
        const char *key;
        frit_status (*parse)(struct parse *parse, struct safetensors_entry *entry);
    } keys[] = {{"dtype", parse_dtype}, {"shape", parse_shape}, {"data_offsets", parse_offsets}};
    enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };
    struct json_reader *reader = &parse->reader;
    enum json_next next;
    unsigned seen = 0;
    bool first = true;

    while ((next = json_next(reader, '}', &first)) == JSON_MEMBER) {
        const char *key = json_text(reader, "a key in quotes is expected");
        char shown[SAFETENSORS_SHOWN];
        size_t k = 0;

        if (!key || !json_open(reader, ':', "a colon is expected"))
            return fail_json(parse);
        while (k < N_KEYS && strcmp(key, keys[k].key) != 0)
            k++;
        if (k == N_KEYS || seen & 1u << k)
            return fail(parse->err, FRIT_INVALID, "key '%s' is %s", safetensors_shown(key, shown),
                        k == N_KEYS ? "unknown" : "there twice");
        seen |= 1u << k;
        TRY(keys[k].parse(parse, entry));
    }
    if (next == JSON_BROKEN)
        return fail_json(parse);
    for (size_t k = 0; k < N_KEYS; k++)
        if (!(seen & 1u << k))
            return fail(parse->err, FRIT_INVALID, "key '%s' is missing", keys[k].key);
    return check_entry(parse, entry);
}

static frit_status parse_entry(struct parse *parse, const char *name)
{
    struct safetensors *out = parse->out;
    struct safetensors_entry entry = {.name = name};
    char shown[SAFETENSORS_SHOWN];
    frit_status st;

    parse->name = name;
    if (!json_open(&parse->reader, '{', "the object of a tensor is expected"))
        return fail_json(parse);
    parse->name = NULL; /* in the context below */
    st = parse_keys(parse, &entry);
    if (st) {
        fail_context(parse->err, "tensor '%s'", safetensors_shown(name, shown));
        return st;
    }
    if (!array_grow(&out->entries, &out->entries_capacity, out->n_entries, 1, sizeof(entry)))
        return fail_memory(parse->err, sizeof(entry));
    out->entries[out->n_entries++] = entry;
    return FRIT_OK;
}

/* ---- metadata ---- */

static frit_status parse_pair(struct parse *parse)
{
    struct safetensors *out = parse->out;
    struct json_reader *reader = &parse->reader;
    frit_metadata pair;

    pair.key = json_text(reader, "a key of __metadata__ in quotes is expected");
    if (!pair.key || !json_open(reader, ':', "a colon is expected"))
        return fail_json(parse);
    pair.value = json_text(reader, "a text is expected: values of __metadata__ are texts");
    if (!pair.value)
        return fail_json(parse);
    if (!array_grow(&out->metadata, &out->metadata_capacity, out->n_metadata, 1, sizeof(pair)))
        return fail_memory(parse->err, sizeof(pair));
    out->metadata[out->n_metadata++] = pair;
    return FRIT_OK;
}

static frit_status parse_metadata(struct parse *parse)
{
    enum json_next next;
    bool first = true;

    if (!json_open(&parse->reader, '{', "the object of __metadata__ is expected"))
        return fail_json(parse);
    while ((next = json_next(&parse->reader, '}', &first)) == JSON_MEMBER)
        TRY(parse_pair(parse));
    return next == JSON_END ? FRIT_OK : fail_json(parse);
}

/* ---- the header ---- */

static frit_status parse_header(struct parse *parse)
{
    struct json_reader *reader = &parse->reader;
    bool first = true, metadata = false;
    enum json_next next;

    if (reader->at == reader->end || *reader->at++ != '{')
        return fail(parse->err, FRIT_INVALID,
                    "not a safetensors file: its header does not begin with {");
    while ((next = json_next(reader, '}', &first)) == JSON_MEMBER) {
        const char *name = json_text(reader, "the name of a tensor in quotes is expected");

        if (!name || !json_open(reader, ':', "a colon is expected"))
            return fail_json(parse);
        if (strcmp(name, SAFETENSORS_METADATA) != 0) {
            TRY(parse_entry(parse, name));
            continue;
        }
        if (metadata)
            return fail(parse->err, FRIT_INVALID, SAFETENSORS_METADATA " is there twice");
        metadata = true;
        TRY(parse_metadata(parse));
    }
    return next == JSON_END && json_at_end(reader) ? FRIT_OK : fail_json(parse);
}

/* ---- all tensors ---- */

static int compare_begin(const void *a, const void *b)
{
    const entry_ref x = *(const entry_ref *)a, y = *(const entry_ref *)b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The elements are covered without holes and overlaps. */
static frit_status check_offsets(const struct parse *parse, entry_ref *order)
{
    const uint32_t n = parse->out->n_entries;
    char shown[2][SAFETENSORS_SHOWN];
    uint64_t end = 0;

    qsort(order, n, sizeof(entry_ref), compare_begin);
    for (uint32_t i = 0; i < n; i++) {
        if (order[i]->begin < end)
            return fail(parse->err, FRIT_INVALID, "tensors '%s' and '%s' overlap",
                        safetensors_shown(order[i - 1]->name, shown[0]),
                        safetensors_shown(order[i]->name, shown[1]));
        if (order[i]->begin > end)
            return fail(parse->err, FRIT_INVALID,
                        "bytes %" PRIu64 " to %" PRIu64 " of the elements, before tensor '%s', "
                        "belong to no tensor",
                        end, order[i]->begin, safetensors_shown(order[i]->name, shown[0]));
        end = order[i]->end;
    }
    if (end != parse->data_bytes)
        return fail(parse->err, FRIT_INVALID, "%" PRIu64 " bytes follow the last tensor",
                    parse->data_bytes - end);
    return FRIT_OK;
}

static frit_status check_all(const struct parse *parse)
{
    struct safetensors *out = parse->out;

    out->by_name = malloc(out->n_entries * sizeof(entry_ref) + 1);
    if (!out->by_name)
        return fail_memory(parse->err, out->n_entries * sizeof(entry_ref));
    for (uint32_t i = 0; i < out->n_entries; i++)
        out->by_name[i] = &out->entries[i];
    TRY(check_offsets(parse, out->by_name));
    TRY(safetensors_check_names(out->by_name, out->n_entries, parse->err));
    return safetensors_check_keys(out->metadata, out->n_metadata, parse->err);
}

frit_status safetensors_parse(char *header, size_t header_bytes, uint64_t data_bytes,
                              struct safetensors *out, frit_err *err)
{
    struct parse parse = {.out = out, .data_bytes = data_bytes, .err = err};
    frit_status st;

    parse.reader.start = parse.reader.at = header;
    parse.reader.end = header + header_bytes;
    *out = (struct safetensors){0};
    st = parse_header(&parse);
    if (!st)
        st = check_all(&parse);
    if (st)
        safetensors_fini(out);
    return st;
}

void safetensors_fini(struct safetensors *file)
{
    free(file->entries);
    free(file->metadata);
    free(file->by_name);
    *file = (struct safetensors){0};
}
