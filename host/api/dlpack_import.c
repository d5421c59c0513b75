/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that other libraries exported by DLPack.
 *
 * Memory of the host becomes the buffer of a tensor with the strides that it has.  A device wants
 * buffers aligned, and other libraries align to an element: so the buffer begins at the aligned
 * address below, in the same page, and the tensor behind its start. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/data.h"
#include "api/dlpack.h"
#include "api/report.h"
#include "api/source.h"
#include "api/tensor.h"
#include "device/device.h"
#include "graph/dtype.h"
#include "graph/op.h"
#include "memory/memory.h"
#include "record/binding.h"
#include "run/transfer.h"
#include "tensor/layout.h"
#include "tensor/value.h"

/* What was exported, whichever struct it came in. */
struct import {
    const frit_dl_tensor *tensor; /* NULL: nothing */
    void (*release)(void *ctx);   /* NULL: nothing to be done */
    void *ctx;
};

static void release_managed(void *ctx)
{
    frit_dl_managed *managed = ctx;

    managed->deleter(managed);
}

static void release_old(void *ctx)
{
    frit_dl_managed_old *managed = ctx;

    managed->deleter(managed);
}

/* ---- checks ---- */

/* In words, for messages. */
static const char *memory_name(int32_t type)
{
    static const char *const names[] = {
        [FRIT_DL_CUDA] = "a CUDA device",     [FRIT_DL_OPENCL] = "an OpenCL device",
        [FRIT_DL_VULKAN] = "a Vulkan device", [FRIT_DL_METAL] = "a Metal device",
        [FRIT_DL_ROCM] = "a ROCm device",     [FRIT_DL_CUDA_MANAGED] = "CUDA's managed memory",
        [FRIT_DL_ONEAPI] = "a oneAPI device",
    };
    bool known = type > 0 && (size_t)type < sizeof(names) / sizeof(names[0]) && names[type];

    return known ? names[type] : "an unknown device";
}

static bool is_host_memory(int32_t type)
{
    return type == FRIT_DL_CPU || type == FRIT_DL_CUDA_HOST || type == FRIT_DL_ROCM_HOST;
}

static frit_status check_type(const frit_dl_tensor *from, struct op_type *type, frit_err *err)
{
    frit_dims dims = {.rank = from->rank};
    uint32_t dtype = dlpack_dtype(&from->dtype);

    if (from->dtype.lanes != 1)
        return fail(err, FRIT_UNSUPPORTED, "elements are vectors of %u lanes", from->dtype.lanes);
    if (dtype == FRIT_NO_DTYPE)
        return fail(err, FRIT_UNSUPPORTED, "element type {kind %u, %u bits} is not one of Frit%s",
                    from->dtype.kind, from->dtype.bits,
                    from->dtype.kind == FRIT_DL_COMPLEX ? ": complex numbers" : "");
    if (from->rank < 0 || (from->rank > 0 && !from->dims))
        return fail(err, FRIT_INVALID, "rank %" PRId32 " with dims at %s", from->rank,
                    from->dims ? "an address" : "NULL");
    if (from->rank > FRIT_MAX_RANK)
        return fail(err, FRIT_UNSUPPORTED, "%" PRId32 " dims; Frit has at most %d", from->rank,
                    FRIT_MAX_RANK);
    if (from->rank)
        memcpy(dims.dim, from->dims, (size_t)from->rank * sizeof(dims.dim[0]));
    return source_type(dtype, &dims, type, err);
}

/* The strides, and that no element is further from the first than an address can say. */
static frit_status check_layout(const frit_dl_tensor *from, const struct op_type *type,
                                struct layout *layout, frit_err *err)
{
    int64_t size = (int64_t)frit_storage_bytes(type->dtype, 1), reach = 0;

    layout_dense(type, layout);
    if (!from->strides || op_elements(type) == 0)
        return FRIT_OK;
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t step, most;

        layout->strides[i] = from->strides[i];
        if (__builtin_mul_overflow(from->strides[i], size, &step) || step == INT64_MIN ||
            __builtin_mul_overflow(step < 0 ? -step : step, type->dims[i] - 1, &most) ||
            __builtin_add_overflow(reach, most, &reach))
            return fail(err, FRIT_INVALID, "stride %" PRId64 " of dim %" PRIu32 " is too large",
                        from->strides[i], i);
    }
    return FRIT_OK;
}

/* Whether the elements are in memory of the device's own kind; else they must be in the host's. */
static frit_status check_place(const frit_device *device, const frit_dl_tensor *from,
                               bool *on_device, frit_err *err)
{
    frit_dl_device its;

    *on_device = false;
    if (is_host_memory(from->device.type))
        return FRIT_OK;
    its = dlpack_place(device);
    *on_device = its.type == from->device.type && its.number == from->device.number;
    return *on_device ? FRIT_OK
                      : fail(err, FRIT_UNSUPPORTED,
                             "the elements are in the memory of %s (number %" PRId32
                             "), which %s does not use; copy them to the host first",
                             memory_name(from->device.type), from->device.number, device->name);
}

static frit_status check(const struct import *import, struct op_type *type, struct layout *layout,
                         frit_err *err)
{
    const frit_dl_tensor *from = import->tensor;

    if (!from)
        return fail(err, FRIT_INVALID, "what was exported is NULL");
    TRY(check_type(from, type, err));
    TRY(check_layout(from, type, layout, err));
    if (op_elements(type) == 0)
        return FRIT_OK;
    if (!from->data)
        return fail(err, FRIT_INVALID, "the data is NULL");
    return FRIT_OK;
}

/* ---- in place ---- */

/* FRIT_UNSUPPORTED: the elements have to be copied. */
static frit_status adopt(frit_device *device, const struct import *import, const char *first,
                         bool on_device, struct value *value, frit_err *err)
{
    const uint64_t align = device->info->align_bytes ? device->info->align_bytes : 1;
    const uint64_t size = frit_storage_bytes(value->type.dtype, 1);
    const struct layout layout = value->layout;
    struct lent_bytes lent = {
        .release = import->release, .ctx = import->ctx, .on_device = on_device};
    int64_t low, high;
    uintptr_t start;
    frit_status st;

    layout_span(&value->type, &layout, &low, &high);
    start = (uintptr_t)(first + low * (int64_t)size);
    if (start % size || align > 4096 || align % size)
        return fail(err, FRIT_UNSUPPORTED, "the elements are not aligned");
    if (value->type.dtype == FRIT_BOOL && !on_device &&
        !bools_are_clean((const void *)start, (uint64_t)(high - low + 1)))
        return fail(err, FRIT_UNSUPPORTED, "a bool is neither 0 nor 1");
    lent.data = (const void *)(start / align * align);
    lent.bytes = start % align + (uint64_t)(high - low + 1) * size;
    st = transfer_adopt(device, &lent, value, err);
    value->layout = layout; /* in place of the dense one */
    if (!st)
        value->layout.offset = (int64_t)(start % align / size) - low;
    return st;
}

/* ---- by a copy ---- */

static frit_status copy(frit_device *device, bool persistent, const char *first,
                        struct value *value, frit_err *err)
{
    const uint64_t bytes = frit_storage_bytes(value->type.dtype, op_elements(&value->type));
    struct source source = {0};
    char *dense = NULL;
    frit_status st;

    if (!layout_is_dense(&value->type, &value->layout)) {
        dense = malloc(bytes + 1);
        if (!dense)
            return fail_memory(err, bytes);
        layout_gather(&value->type, &value->layout, first, dense);
    }
    st = source_begin(&source, &value->type, dense ? dense : first, bytes, err);
    if (!st)
        st = transfer_in(device, source.data, persistent, value, err);
    source_end(&source);
    free(dense);
    return st;
}

/* ---- the call ---- */

static frit_status take(frit_device *device, const struct import *import, struct value *value,
                        bool *adopted, frit_err *err)
{
    struct binding *binding;
    const char *first;
    frit_status st = FRIT_UNSUPPORTED;
    bool on_device = false;

    if (!device)
        return fail(err, FRIT_INVALID, "the device is NULL");
    TRY(binding_current(device, &binding, err));
    TRY(check(import, &value->type, &value->layout, err));
    first = import->tensor->data;
    if (first)
        first += import->tensor->byte_offset;
    if (op_elements(&value->type)) {
        TRY(check_place(device, import->tensor, &on_device, err));
        st = adopt(device, import, first, on_device, value, err);
    }
    *adopted = st == FRIT_OK;
    return st == FRIT_UNSUPPORTED && !on_device
               ? copy(device, binding->persistent > 0, first, value, err)
               : st;
}

static frit_tensor *import_tensor(frit_device *device, const struct import *import)
{
    frit_err err = ERR_INIT;
    struct value value = {0};
    bool adopted = false;
    frit_status st = take(device, import, &value, &adopted, &err);

    if (!adopted && import->release)
        import->release(import->ctx);
    if (!st)
        return tensor_ready(device, &value, &err);
    fail_context(&err, "from_dlpack");
    return tensor_error(device, &err);
}

frit_tensor *frit_from_dlpack(frit_device *device, frit_dl_managed *managed)
{
    HOLD_CANCEL;
    struct import import = {0};

    if (!managed)
        return import_tensor(device, &import);
    import.ctx = managed;
    import.release = managed->deleter ? release_managed : NULL;
    if (managed->major != FRIT_DL_MAJOR) { /* only the deleter is where it was */
        frit_err err = ERR_INIT;

        fail(&err, FRIT_UNSUPPORTED, "from_dlpack: version %" PRIu32 ".%" PRIu32 "; Frit knows %d",
             managed->major, managed->minor, FRIT_DL_MAJOR);
        if (import.release)
            import.release(managed);
        return tensor_error(device, &err);
    }
    import.tensor = &managed->tensor;
    return import_tensor(device, &import);
}

frit_tensor *frit_from_dlpack_old(frit_device *device, frit_dl_managed_old *managed)
{
    HOLD_CANCEL;
    struct import import = {0};

    if (managed)
        import = (struct import){&managed->tensor, managed->deleter ? release_old : NULL, managed};
    return import_tensor(device, &import);
}
