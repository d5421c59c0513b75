/* SPDX-License-Identifier: Apache-2.0 */
#include "api/dlpack.h"

#include "device/device.h"
#include "load/registry.h"

/* Types whose kind does not follow from their class. */
static const struct {
    uint32_t dtype;
    uint8_t kind;
} kinds[] = {
    {FRIT_BF16, FRIT_DL_BFLOAT},           {FRIT_F8E4M3, FRIT_DL_F8E4M3},
    {FRIT_F8E5M2, FRIT_DL_F8E5M2},         {FRIT_F8E4M3FNUZ, FRIT_DL_F8E4M3FNUZ},
    {FRIT_F8E5M2FNUZ, FRIT_DL_F8E5M2FNUZ}, {FRIT_F8E8M0, FRIT_DL_F8E8M0},
};

/* The kind of a type; -1: DLPack has none. */
static int kind_of(uint32_t dtype)
{
    static const int of_class[] = {
        [FRIT_DTYPE_FLOAT] = FRIT_DL_FLOAT, [FRIT_DTYPE_INT] = FRIT_DL_INT,
        [FRIT_DTYPE_UINT] = FRIT_DL_UINT,   [FRIT_DTYPE_BOOL] = FRIT_DL_BOOL,
        [FRIT_DTYPE_PACKED] = -1,
    };
    frit_dtype_info info = frit_dtype_info_of(dtype);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].dtype == dtype)
            return kinds[i].kind;
    return info.cls ? of_class[info.cls] : -1;
}

bool dlpack_type(uint32_t dtype, frit_dl_type *out)
{
    int kind = kind_of(dtype);

    *out = (frit_dl_type){(uint8_t)kind, frit_dtype_info_of(dtype).bits, 1};
    return kind >= 0;
}

uint32_t dlpack_dtype(const frit_dl_type *type)
{
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++) {
        frit_dl_type its;

        if (dlpack_type(dtype, &its) && its.kind == type->kind && its.bits == type->bits)
            return dtype;
    }
    return FRIT_NO_DTYPE;
}

frit_dl_device dlpack_place(const frit_device *device)
{
    const frit_extmem_table *extmem = &device->entry->plugin->extmem;
    frit_extmem_where where = {0};

    if (!extmem->where)
        return (frit_dl_device){FRIT_DL_CPU, 0};
    extmem->where(device->self, &where);
    return (frit_dl_device){where.kind, where.number};
}
