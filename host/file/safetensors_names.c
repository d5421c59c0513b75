/* SPDX-License-Identifier: Apache-2.0 */
#include "file/safetensors_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

const char *safetensors_shown(const char *name, char out[SAFETENSORS_SHOWN])
{
    text_clean(name, strlen(name), out, SAFETENSORS_SHOWN);
    return out;
}

/* ---- element types ---- */

static const struct {
    uint32_t dtype;
    const char *name;
} dtypes[] = {
    {FRIT_F64, "F64"},
    {FRIT_F32, "F32"},
    {FRIT_F16, "F16"},
    {FRIT_BF16, "BF16"},
    {FRIT_I64, "I64"},
    {FRIT_I32, "I32"},
    {FRIT_I16, "I16"},
    {FRIT_I8, "I8"},
    {FRIT_U64, "U64"},
    {FRIT_U32, "U32"},
    {FRIT_U16, "U16"},
    {FRIT_U8, "U8"},
    {FRIT_F8E4M3, "F8_E4M3"},
    {FRIT_F8E5M2, "F8_E5M2"},
    {FRIT_BOOL, "BOOL"},
    {FRIT_F8E4M3FNUZ, "F8_E4M3FNUZ"},
    {FRIT_F8E5M2FNUZ, "F8_E5M2FNUZ"},
    {FRIT_F8E8M0, "F8_E8M0"},
};
enum { N_DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

const char *safetensors_dtype_name(uint32_t dtype)
{
    for (size_t i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

uint32_t safetensors_dtype(const char *name)
{
    for (size_t i = 0; i < N_DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].dtype;
    return FRIT_NO_DTYPE;
}

/* ---- names and keys ---- */

static int compare_name(const void *a, const void *b)
{
    return strcmp((*(const entry_ref *)a)->name, (*(const entry_ref *)b)->name);
}

static int compare_key(const void *a, const void *b)
{
    return strcmp(((const frit_metadata *)a)->key, ((const frit_metadata *)b)->key);
}

frit_status safetensors_check_names(entry_ref *by_name, uint32_t n, frit_err *err)
{
    char shown[SAFETENSORS_SHOWN];

    qsort(by_name, n, sizeof(entry_ref), compare_name);
    for (uint32_t i = 1; i < n; i++)
        if (compare_name(&by_name[i - 1], &by_name[i]) == 0)
            return fail(err, FRIT_INVALID, "tensor '%s' is there twice",
                        safetensors_shown(by_name[i]->name, shown));
    return FRIT_OK;
}

frit_status safetensors_check_keys(const frit_metadata *metadata, uint32_t n, frit_err *err)
{
    frit_metadata *sorted = malloc(n * sizeof(*sorted) + 1);
    char shown[SAFETENSORS_SHOWN];
    frit_status st = FRIT_OK;

    if (!sorted)
        return fail_memory(err, n * sizeof(*sorted));
    if (n)
        memcpy(sorted, metadata, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_key);
    for (uint32_t i = 1; i < n && !st; i++)
        if (compare_key(&sorted[i - 1], &sorted[i]) == 0)
            st = fail(err, FRIT_INVALID, "key '%s' of " SAFETENSORS_METADATA " is there twice",
                      safetensors_shown(sorted[i].key, shown));
    free(sorted);
    return st;
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name)
{
    const struct safetensors_entry wanted = {.name = name}, *key = &wanted;
    const entry_ref *found =
        bsearch(&key, file->by_name, file->n_entries, sizeof(entry_ref), compare_name);

    return found ? *found : NULL;
}
