/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model: it is refused with a message, or bound, and then its graph
 * is valid. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/verify.h"
#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onnx_model *model;
    struct op_type *types;
    struct graph graph = {0};
    struct str problems = {0};
    frit_err err = ERR_INIT;
    frit_status st = onnx_open("m", data, size, &model, &err);

    if (st) {
        check(!model && err.text[0] && err.status == st);
        return 0;
    }
    types = calloc((size_t)onnx_n_inputs(model) + 1, sizeof(*types));
    check(types != NULL);
    st = onnx_bind(model, types, NULL, &graph, &problems, &err);
    check(st ? err.text[0] != '\0' : !problems.text && !graph_verify(&graph, &err));
    free(types);
    graph_fini(&graph);
    str_fini(&problems);
    onnx_unref(model);
    return 0;
}
