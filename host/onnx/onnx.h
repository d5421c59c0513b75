/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models as programs.
 *
 * A model is opened from the bytes of its file and becomes a graph when the types of its inputs are
 * known: every node is translated to ops of the table, and what depends on shapes and constants
 * alone is computed then.  Messages begin with the file's name and name the node.  In a build
 * without protobuf-c opening fails and says so.  Threads: any, one at a time per binding. */
#ifndef ONNX_ONNX_H
#define ONNX_ONNX_H

#include <stdbool.h>

#include "base/str.h"
#include "graph/text/text.h"

struct onnx_model;

/* Whether a file of this name is taken for a model: it ends with .onnx. */
bool onnx_is_model(const char *path);

/* `path` names the model in messages, and the folder of its external data; the bytes are not kept.
 * FRIT_INVALID: they are no model, with where and why; FRIT_UNSUPPORTED: no ONNX in this build. */
frit_status onnx_open(const char *path, const void *bytes, size_t n_bytes, struct onnx_model **out,
                      frit_err *err);
/* The model is shared: by its owner and by tensors that use its constants in place. */
void onnx_ref(struct onnx_model *model);
void onnx_unref(struct onnx_model *model);

/* What must be given: the graph's inputs without initialisers. */
uint32_t onnx_n_inputs(const struct onnx_model *model);
const struct script_input *onnx_input_at(const struct onnx_model *model, uint32_t index);

/* Makes the graph.  `types`: as for script_bind; `values`: the elements of inputs that are known,
 * NULL for others; looked at only where the model cannot be translated without, and of inputs that
 * are short lists.  The graph's constants have `data` that lies in the model or in the graph.
 * `problems` gets a line for each node that cannot be translated. */
frit_status onnx_bind(struct onnx_model *model, const struct op_type *types,
                      const void *const *values, struct graph *out, struct str *problems,
                      frit_err *err);

#endif
