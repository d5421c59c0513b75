/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a file that is written: names are checked, elements placed, text made. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "base/text.h"
#include "file/json.h"
#include "file/safetensors_names.h"
#include "graph/dtype.h"

/* ---- checks ---- */

static bool is_utf8(const char *text)
{
    size_t left = strlen(text);

    while (left) {
        const size_t bytes = text_char_bytes(text, left);

        if (!bytes)
            return false;
        text += bytes;
        left -= bytes;
    }
    return true;
}

static frit_status check_entry(const struct safetensors_entry *entry, frit_err *err)
{
    char shown[SAFETENSORS_SHOWN];

    safetensors_shown(entry->name, shown);
    if (!is_utf8(entry->name))
        return fail(err, FRIT_INVALID, "the name of tensor '%s' is not UTF-8", shown);
    if (strcmp(entry->name, SAFETENSORS_METADATA) == 0)
        return fail(err, FRIT_INVALID,
                    "no tensor may be named '" SAFETENSORS_METADATA "'; choose another name");
    if (!safetensors_dtype_name(entry->type.dtype))
        return fail(err, FRIT_UNSUPPORTED,
                    "tensor '%s': the format has no element type for %s; cast or dequantize first",
                    shown, dtype_name(entry->type.dtype));
    return FRIT_OK;
}

static frit_status check_metadata(const frit_metadata *metadata, uint32_t n, frit_err *err)
{
    char shown[SAFETENSORS_SHOWN];

    for (uint32_t i = 0; i < n; i++)
        if (!is_utf8(metadata[i].key) || !is_utf8(metadata[i].value))
            return fail(err, FRIT_INVALID, "the %s of metadata '%s' is not UTF-8",
                        is_utf8(metadata[i].key) ? "text" : "key",
                        safetensors_shown(metadata[i].key, shown));
    return safetensors_check_keys(metadata, n, err);
}

static frit_status check_names(const struct safetensors_entry *entries, uint32_t n, frit_err *err)
{
    const struct safetensors_entry **refs = malloc(n * sizeof(*refs) + 1);
    frit_status st;

    if (!refs)
        return fail_memory(err, n * sizeof(*refs));
    for (uint32_t i = 0; i < n; i++)
        refs[i] = &entries[i];
    st = safetensors_check_names(refs, n, err);
    free(refs);
    return st;
}

/* ---- placing ---- */

static uint64_t entry_bytes(const struct safetensors_entry *entry)
{
    return frit_storage_bytes(entry->type.dtype, op_elements(&entry->type));
}

/* Bytes that the entry and what follows it are aligned to; a file is written in falling order. */
static uint64_t alignment(const struct safetensors_entry *entry)
{
    return entry_bytes(entry) % SAFETENSORS_ALIGN == 0 ? SAFETENSORS_ALIGN
                                                       : frit_storage_bytes(entry->type.dtype, 1);
}

frit_status safetensors_place(struct safetensors_entry *entries, uint32_t n_entries,
                              const frit_metadata *metadata, uint32_t n_metadata, uint32_t *order,
                              frit_err *err)
{
    uint64_t at = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_entries; i++)
        TRY(check_entry(&entries[i], err));
    TRY(check_names(entries, n_entries, err));
    TRY(check_metadata(metadata, n_metadata, err));
    for (uint64_t align = SAFETENSORS_ALIGN; align; align /= 2) {
        for (uint32_t i = 0; i < n_entries; i++) {
            if (alignment(&entries[i]) != align)
                continue;
            order[n++] = i;
            entries[i].begin = at;
            if (__builtin_add_overflow(at, entry_bytes(&entries[i]), &at) || at > INT64_MAX)
                return fail(err, FRIT_INVALID, "more than %" PRId64 " bytes in one file",
                            INT64_MAX);
            entries[i].end = at;
        }
    }
    return FRIT_OK;
}

/* ---- text ---- */

static void add_entry(const struct safetensors_entry *entry, struct str *out)
{
    json_add_text(out, entry->name);
    str_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype_name(entry->type.dtype));
    for (uint32_t i = 0; i < entry->type.rank; i++)
        str_addf(out, "%s%" PRId64, i ? "," : "", entry->type.dims[i]);
    str_addf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", entry->begin, entry->end);
}

static void add_metadata(const frit_metadata *metadata, uint32_t n, struct str *out)
{
    str_addf(out, "\"" SAFETENSORS_METADATA "\":{");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            str_add(out, ",", 1);
        json_add_text(out, metadata[i].key);
        str_add(out, ":", 1);
        json_add_text(out, metadata[i].value);
    }
    str_add(out, "}", 1);
}

frit_status safetensors_format(const struct safetensors_entry *entries, uint32_t n_entries,
                               const frit_metadata *metadata, uint32_t n_metadata, struct str *out,
                               frit_err *err)
{
    static const char zero[SAFETENSORS_LENGTH_BYTES];
    uint64_t length;

    str_add(out, zero, sizeof(zero));
    str_add(out, "{", 1);
    if (n_metadata)
        add_metadata(metadata, n_metadata, out);
    for (uint32_t i = 0; i < n_entries; i++) {
        if (i || n_metadata)
            str_add(out, ",", 1);
        add_entry(&entries[i], out);
    }
    str_add(out, "}", 1);
    while (out->length % SAFETENSORS_ALIGN && !out->failed)
        str_add(out, " ", 1);
    if (out->failed)
        return fail_memory(err, out->length);
    length = out->length - SAFETENSORS_LENGTH_BYTES;
    if (length > SAFETENSORS_HEADER_MAX)
        return fail(err, FRIT_UNSUPPORTED,
                    "a header of %" PRIu64 " bytes; the format's limit is %d: shorten names and "
                    "metadata, or write several files",
                    length, SAFETENSORS_HEADER_MAX);
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++)
        out->text[i] = (char)(length >> 8 * i);
    return FRIT_OK;
}
