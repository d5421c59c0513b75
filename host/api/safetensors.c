/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files for callers: opened files and their tensors, and saving. */
#include <stdlib.h>
#include <string.h>

#include "api/copy_sized.h"
#include "api/data.h"
#include "api/report.h"
#include "api/source.h"
#include "api/tensor.h"
#include "base/str.h"
#include "file/safetensors.h"
#include "file/safetensors_names.h"
#include "graph/dtype.h"
#include "memory/memory.h"
#include "run/transfer.h"

struct frit_safetensors {
    struct safetensors_file file;
    char *path; /* for messages */
};

/* ---- loading ---- */

static frit_status load(const char *path, frit_safetensors **out, frit_err *err)
{
    frit_safetensors *file = calloc(1, sizeof(*file));
    frit_status st;

    if (!file)
        return fail_memory(err, sizeof(*file));
    file->path = malloc(strlen(path) + 1);
    st = file->path ? safetensors_open_file(path, &file->file, err)
                    : fail_memory(err, strlen(path) + 1);
    if (st) {
        frit_safetensors_free(file);
        return st;
    }
    memcpy(file->path, path, strlen(path) + 1);
    *out = file;
    return FRIT_OK;
}

frit_status frit_load_safetensors(const char *path, frit_safetensors **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "load_safetensors");
    if (!path || !out)
        return report_null(err, "load_safetensors", path ? "`out`" : "the path");
    return report(err, load(path, out, &own), &own);
}

void frit_safetensors_free(frit_safetensors *file)
{
    if (!file)
        return;
    safetensors_close_file(&file->file);
    free(file->path);
    free(file);
}

/* ---- what is there ---- */

uint64_t frit_safetensors_count(const frit_safetensors *file)
{
    return file ? file->file.parsed.n_entries : 0;
}

frit_status frit_safetensors_at(const frit_safetensors *file, uint64_t index,
                                frit_safetensor_desc *out)
{
    const struct safetensors_entry *entry;
    frit_safetensor_desc desc = {0};

    if (!out || index >= frit_safetensors_count(file))
        return FRIT_INVALID;
    entry = &file->file.parsed.entries[index];
    desc.name = entry->name;
    desc.bytes = entry->end - entry->begin;
    desc.dtype = entry->type.dtype;
    desc.dims.rank = entry->type.rank;
    memcpy(desc.dims.dim, entry->type.dims, sizeof(desc.dims.dim));
    return copy_sized(out, &desc, sizeof(desc));
}

frit_status frit_safetensors_metadata_at(const frit_safetensors *file, uint64_t index,
                                         frit_metadata *out)
{
    if (!file || !out || index >= file->file.parsed.n_metadata)
        return FRIT_INVALID;
    *out = file->file.parsed.metadata[index];
    return FRIT_OK;
}

const char *frit_safetensors_metadata(const frit_safetensors *file, const char *key)
{
    for (uint32_t i = 0; file && key && i < file->file.parsed.n_metadata; i++)
        if (strcmp(file->file.parsed.metadata[i].key, key) == 0)
            return file->file.parsed.metadata[i].value;
    return NULL;
}

/* ---- its tensors ---- */

static frit_status fail_unknown(const frit_safetensors *file, const char *name, frit_err *err)
{
    const struct safetensors *parsed = &file->file.parsed;
    const char **names = malloc(parsed->n_entries * sizeof(*names) + 1), *nearest = NULL;

    for (uint32_t i = 0; names && i < parsed->n_entries; i++)
        names[i] = parsed->entries[i].name;
    if (names)
        nearest = str_nearest(name, names, parsed->n_entries);
    fail(err, FRIT_INVALID, "safetensors_tensor: %s has no tensor '%.60s'%s%.60s%s", file->path,
         name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    free(names);
    return FRIT_INVALID;
}

frit_tensor *frit_safetensors_tensor(const frit_safetensors *file, frit_device *device,
                                     const char *name)
{
    HOLD_CANCEL;
    const struct safetensors_entry *entry;
    struct lent_bytes lent;
    frit_err err = ERR_INIT;

    if (!file || !name) {
        report_null(&err, "safetensors_tensor", file ? "the name" : "the file");
        return tensor_error(device, &err);
    }
    entry = safetensors_find(&file->file.parsed, name);
    if (!entry) {
        fail_unknown(file, name, &err);
        return tensor_error(device, &err);
    }
    lent = (struct lent_bytes){.data = file->file.data + entry->begin,
                               .bytes = entry->end - entry->begin,
                               .release = safetensors_map_drop,
                               .ctx = file->file.map};
    safetensors_map_keep(file->file.map);
    return data_wrap(device, &entry->type, &lent, "safetensors_tensor");
}

/* ---- saving ---- */

struct save {
    const frit_named_tensor *tensors;
    struct safetensors_entry *entries;
    frit_read_item *items; /* as many as tensors, used from the first one in each group */
    struct transfer_read *reads;
};

static frit_status name_tensor(frit_err *err, frit_status st, const char *name)
{
    fail_context(err, "tensor '%.60s'", name);
    return st;
}

/* The source of safetensors_write_file. */
static frit_status read_group(void *ctx, const uint32_t *which, uint32_t count, void *data,
                              frit_err *err)
{
    const struct save *save = ctx;
    char *at = data;
    frit_status st;

    for (uint32_t i = 0; i < count; i++) {
        const struct safetensors_entry *entry = &save->entries[which[i]];

        save->items[i] = (frit_read_item){.tensor = save->tensors[which[i]].tensor,
                                          .data = at,
                                          .bytes = entry->end - entry->begin};
        at += entry->end - entry->begin;
    }
    st = data_read(save->items, count, save->reads, err);
    for (uint32_t i = 0; i < count && st; i++)
        if (save->items[i].status == st)
            return name_tensor(err, st, save->tensors[which[i]].name);
    return st;
}

static frit_status describe(const frit_named_tensor *named, struct safetensors_entry *out,
                            frit_err *err)
{
    const frit_dims dims = frit_tensor_dims(named->tensor);
    const frit_status st = frit_tensor_status(named->tensor);

    if (!named->name)
        return fail(err, FRIT_INVALID, "the name of a tensor is NULL");
    out->name = named->name;
    out->type =
        (struct op_type){.dtype = frit_tensor_dtype(named->tensor), .rank = (uint32_t)dims.rank};
    if (st) {
        fail(err, st, "%s", frit_tensor_error(named->tensor));
        return name_tensor(err, st, named->name);
    }
    memcpy(out->type.dims, dims.dim, sizeof(out->type.dims));
    if (dtype_class(out->type.dtype) == FRIT_DTYPE_PACKED &&
        !safetensors_dtype_name(out->type.dtype))
        source_bytes_type(&out->type);
    return FRIT_OK;
}

static frit_status write_file(struct save *save, uint32_t count, const frit_metadata *metadata,
                              uint32_t n_metadata, const char *path, frit_err *err)
{
    const struct safetensors_source source = {read_group, save};

    for (uint32_t i = 0; i < count; i++)
        TRY(describe(&save->tensors[i], &save->entries[i], err));
    for (uint32_t i = 0; i < n_metadata; i++)
        if (!metadata[i].key || !metadata[i].value)
            return fail(err, FRIT_INVALID, "a %s of the metadata is NULL",
                        metadata[i].key ? "text" : "key");
    return safetensors_write_file(path, save->entries, count, metadata, n_metadata, &source, err);
}

static frit_status save_all(const frit_named_tensor *tensors, uint32_t count,
                            const frit_metadata *metadata, uint32_t n_metadata, const char *path,
                            frit_err *err)
{
    struct save save = {
        .tensors = tensors,
        .entries = calloc(count + 1ul, sizeof(*save.entries)),
        .items = calloc(count + 1ul, sizeof(*save.items)),
        .reads = calloc(count + 1ul, sizeof(*save.reads)),
    };
    frit_status st = save.entries && save.items && save.reads
                         ? write_file(&save, count, metadata, n_metadata, path, err)
                         : fail_memory(err, count * sizeof(*save.entries));

    free(save.entries);
    free(save.items);
    free(save.reads);
    return st;
}

frit_status frit_save_safetensors(const frit_named_tensor *tensors, uint64_t count,
                                  const frit_metadata *metadata, uint64_t n_metadata,
                                  const char *path, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "save_safetensors");
    if (!tensors && count)
        return report_null(err, "save_safetensors", "`tensors`");
    if (!metadata && n_metadata)
        st = report_null(&own, "save_safetensors", "`metadata`");
    else if (!path)
        st = report_null(&own, "save_safetensors", "the path");
    else if (count >= UINT32_MAX || n_metadata >= UINT32_MAX)
        st = fail(&own, FRIT_INVALID, "save_safetensors: more than 2^32 tensors or texts");
    else
        st = save_all(tensors, (uint32_t)count, metadata, (uint32_t)n_metadata, path, &own);
    data_consume(tensors, sizeof(*tensors), count);
    return report(err, st, &own);
}
