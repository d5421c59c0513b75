/* SPDX-License-Identifier: Apache-2.0 */
#include "api/source.h"

#include <stdlib.h>
#include <string.h>

#include "api/tensor.h"
#include "base/fail.h"
#include "graph/dtype.h"
#include "graph/op.h"

frit_status source_type(uint32_t dtype, const frit_dims *dims, struct op_type *out, frit_err *err)
{
    *out = (struct op_type){.dtype = dtype};
    if (!frit_storage_bytes(dtype, 8))
        return fail(err, FRIT_INVALID, "%u is not an element type that tensors can be made of",
                    dtype);
    if (dims->rank < 0 || dims->rank > FRIT_MAX_RANK)
        return fail(err, FRIT_INVALID, "rank %lld is not within 0..%d", (long long)dims->rank,
                    FRIT_MAX_RANK);
    out->rank = (uint32_t)dims->rank;
    memcpy(out->dims, dims->dim, out->rank * sizeof(out->dims[0]));
    return op_type_check(out, err);
}

void source_bytes_type(struct op_type *type)
{
    const uint64_t bytes = frit_storage_bytes(type->dtype, op_elements(type));

    *type = (struct op_type){.dtype = FRIT_U8, .rank = 1, .dims = {(int64_t)bytes}};
}

frit_status source_begin(struct source *source, const struct op_type *type, const void *data,
                         uint64_t bytes, frit_err *err)
{
    *source = (struct source){.data = data, .bytes = bytes};
    TRY(tensor_check_data(type, data, bytes, err));
    if (type->dtype != FRIT_BOOL || bools_are_clean(data, bytes))
        return FRIT_OK;
    source->own = malloc(bytes);
    if (!source->own)
        return fail_memory(err, bytes);
    bools_clean(source->own, data, bytes);
    source->data = source->own;
    return FRIT_OK;
}

void source_end(struct source *source)
{
    free(source->own);
    source->own = NULL;
}
