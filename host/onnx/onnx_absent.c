/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX in a build without protobuf-c: no model can be opened. */
#include "base/fail.h"
#include "onnx/onnx.h"

frit_status onnx_open(const char *path, const void *bytes, size_t n_bytes, struct onnx_model **out,
                      frit_err *err)
{
    (void)bytes;
    (void)n_bytes;
    *out = NULL;
    return fail(err, FRIT_UNSUPPORTED,
                "%s: this build has no ONNX: install libprotobuf-c-dev, protobuf-c-compiler and "
                "libonnx-dev, and build again",
                path);
}

void onnx_ref(struct onnx_model *model)
{
    (void)model;
}

void onnx_unref(struct onnx_model *model)
{
    (void)model;
}

uint32_t onnx_n_inputs(const struct onnx_model *model)
{
    (void)model;
    return 0;
}

const struct script_input *onnx_input_at(const struct onnx_model *model, uint32_t index)
{
    (void)model;
    (void)index;
    return NULL;
}

frit_status onnx_bind(struct onnx_model *model, const struct op_type *types,
                      const void *const *values, struct graph *out, struct str *problems,
                      frit_err *err)
{
    (void)model;
    (void)types;
    (void)values;
    (void)out;
    (void)problems;
    return fail(err, FRIT_UNSUPPORTED, "this build has no ONNX");
}
