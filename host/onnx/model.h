/* SPDX-License-Identifier: Apache-2.0 */
/* An opened model: what protobuf-c unpacked, its inputs, its external files. */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include <stdatomic.h>

#include <onnx.pb-c.h>

#include "base/arena.h"
#include "base/map.h"
#include "onnx/onnx.h"

enum {
    ONNX_OLDEST_OPSET = 7,
    ONNX_NEWEST_OPSET = 28,
};

/* A file of external data, mapped. */
struct onnx_file {
    struct onnx_file *next;
    const char *name; /* as the model gives it */
    const void *bytes;
    size_t n_bytes;
};

struct onnx_model {
    atomic_uint refs;
    Onnx__ModelProto *proto;
    const Onnx__GraphProto *graph;
    const char *path;
    struct arena arena;
    struct script_input *inputs;
    uint32_t n_inputs;
    int32_t *narrow;         /* of each input: ONNX's type where Frit's is wider, else 0 */
    struct map initializers; /* names */
    struct map dims; /* named ones to their numbers + 1, which their inputs have in `dims` */
    uint32_t n_dims;
    struct onnx_file *files;
    struct map converted; /* elements by tensor, where the file has them in another form */
};

/* Bytes of a file beside the model, mapped on first use.  The name may not lead out of the model's
 * folder. */
frit_status model_file_bytes(struct onnx_model *model, const char *name, const void **bytes,
                             size_t *n_bytes, frit_err *err);

#endif
