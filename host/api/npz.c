/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy archives for callers: opened files and their tensors, and saving. */
#include "file/npz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/copy_sized.h"
#include "api/data.h"
#include "api/report.h"
#include "api/source.h"
#include "api/tensor.h"
#include "base/str.h"
#include "graph/dtype.h"
#include "memory/memory.h"
#include "run/transfer.h"

struct frit_npz {
    struct npz_file file;
    char *path; /* for messages */
};

static frit_status load(const char *path, frit_npz **out, frit_err *err)
{
    frit_npz *npz = calloc(1, sizeof(*npz));
    frit_status st;

    if (!npz)
        return fail_memory(err, sizeof(*npz));
    npz->file.fd = -1;
    npz->path = strdup(path);
    st = npz->path ? npz_open(path, &npz->file, err) : fail_memory(err, strlen(path));
    if (st)
        frit_npz_free(npz);
    else
        *out = npz;
    return st;
}

frit_status frit_load_npz(const char *path, frit_npz **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "load_npz");
    if (!path || !out)
        return report_null(err, "load_npz", path ? "`out`" : "the path");
    return report(err, load(path, out, &own), &own);
}

void frit_npz_free(frit_npz *npz)
{
    if (!npz)
        return;
    npz_close(&npz->file);
    free(npz->path);
    free(npz);
}

uint64_t frit_npz_count(const frit_npz *npz)
{
    return npz ? npz->file.n_entries : 0;
}

frit_status frit_npz_at(const frit_npz *npz, uint64_t index, frit_npz_desc *out)
{
    const struct npz_entry *entry;
    frit_npz_desc desc = {0};

    if (!out || index >= frit_npz_count(npz))
        return FRIT_INVALID;
    entry = &npz->file.entries[index];
    desc.name = entry->name;
    desc.bytes = entry->npy.bytes;
    desc.dtype = entry->npy.type.dtype;
    desc.dims.rank = entry->npy.type.rank;
    memcpy(desc.dims.dim, entry->npy.type.dims, sizeof(desc.dims.dim));
    return copy_sized(out, &desc, sizeof(desc));
}

/* ---- its tensors ---- */

static const struct npz_entry *find(const frit_npz *npz, const char *name)
{
    for (uint32_t i = 0; i < npz->file.n_entries; i++)
        if (strcmp(npz->file.entries[i].name, name) == 0)
            return &npz->file.entries[i];
    return NULL;
}

static frit_status fail_unknown(const frit_npz *npz, const char *name, frit_err *err)
{
    uint32_t count = npz->file.n_entries;
    const char **names = malloc(count * sizeof(*names) + 1), *nearest = NULL;

    for (uint32_t i = 0; names && i < count; i++)
        names[i] = npz->file.entries[i].name;
    if (names)
        nearest = str_nearest(name, names, count);
    fail(err, FRIT_INVALID, "%s has no tensor '%.60s'%s%.60s%s", npz->path, name,
         nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    free(names);
    return FRIT_INVALID;
}

frit_tensor *frit_npz_tensor(const frit_npz *npz, frit_device *device, const char *name)
{
    HOLD_CANCEL;
    const struct npz_entry *entry = NULL;
    struct lent_bytes lent = {.release = free};
    frit_err err = ERR_INIT;
    frit_status st;

    if (!npz || !name)
        st = report_null(&err, "npz_tensor", npz ? "the name" : "the file");
    else if (!device)
        st = report_null(&err, "npz_tensor", "the device");
    else if (!(entry = find(npz, name)))
        st = fail_unknown(npz, name, &err);
    else
        st = npz_read(&npz->file, entry, &lent.ctx, &err);
    if (st) {
        if (entry)
            fail_context(&err, "%s: '%.60s'", npz->path, name);
        return tensor_error(device, &err);
    }
    assert(entry);
    lent.data = lent.ctx;
    lent.bytes = entry->npy.bytes;
    return data_wrap(device, &entry->npy.type, &lent, "npz_tensor");
}

/* ---- saving ---- */

static frit_status add(struct npz_draft *draft, const frit_named_tensor *named, frit_err *err)
{
    frit_dims dims = frit_tensor_dims(named->tensor);
    struct op_type type = {.dtype = frit_tensor_dtype(named->tensor), .rank = (uint32_t)dims.rank};
    frit_read_item item = {.tensor = named->tensor, .bytes = frit_tensor_bytes(named->tensor)};
    struct transfer_read read;
    frit_status st;

    if (!named->name)
        return fail(err, FRIT_INVALID, "the name of a tensor is NULL");
    memcpy(type.dims, dims.dim, sizeof(type.dims));
    if (dtype_class(type.dtype) == FRIT_DTYPE_PACKED)
        source_bytes_type(&type);
    item.data = malloc(item.bytes + 1);
    if (!item.data)
        return fail_memory(err, item.bytes);
    st = data_read(&item, 1, &read, err);
    if (st)
        fail_context(err, "tensor '%.60s'", named->name);
    else
        st = npz_add(draft, named->name, &type, item.data, err);
    free(item.data);
    return st;
}

static frit_status save(const frit_named_tensor *tensors, uint64_t count, const char *path,
                        frit_err *err)
{
    struct npz_draft *draft;
    frit_status st, end;

    TRY(npz_begin(path, &draft, err));
    st = FRIT_OK;
    for (uint64_t i = 0; i < count && !st; i++) {
        for (uint64_t k = 0; k < i && !st && tensors[i].name; k++)
            if (strcmp(tensors[k].name, tensors[i].name) == 0)
                st = fail(err, FRIT_INVALID, "two tensors have the name '%.60s'", tensors[i].name);
        if (!st)
            st = add(draft, &tensors[i], err);
    }
    end = npz_end(draft, !st, err);
    return st ? st : end;
}

frit_status frit_save_npz(const frit_named_tensor *tensors, uint64_t count, const char *path,
                          frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "save_npz");
    if (!tensors && count)
        return report_null(err, "save_npz", "`tensors`");
    st = path ? save(tensors, count, path, &own) : report_null(&own, "save_npz", "the path");
    data_consume(tensors, sizeof(*tensors), count);
    return report(err, st, &own);
}
