/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: the bytes are checked, unpacked, and the declared inputs read. */
#include "onnx/model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/str.h"
#include "graph/text/text_lex.h"
#include "onnx/tensor.h"
#include "onnx/wire.h"

/* ---- inputs ---- */

/* The number of a named dim, made known if it is new. */
static frit_status intern_dim(struct onnx_model *model, const char *name, int64_t *number,
                              frit_err *err)
{
    void *entry = map_get(&model->dims, name, strlen(name));

    if (!entry) {
        entry = (void *)((uintptr_t)++model->n_dims);
        if (!map_add(&model->dims, name, strlen(name), entry))
            return fail_memory(err, strlen(name));
    }
    *number = (int64_t)(uintptr_t)entry - 1;
    return FRIT_OK;
}

static frit_status read_dims(struct onnx_model *model, const Onnx__TensorShapeProto *shape,
                             struct script_input *input, frit_err *err)
{
    if (shape->n_dim > FRIT_MAX_RANK)
        return fail(err, FRIT_UNSUPPORTED, "input '%s' has %zu dims, Frit has at most %d",
                    input->name, shape->n_dim, FRIT_MAX_RANK);
    input->has_dims = true;
    input->rank = (uint32_t)shape->n_dim;
    for (uint32_t i = 0; i < input->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];

        input->dims[i] = -1;
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
            if (dim->dim_value < 0)
                continue; /* exporters write -1 for any extent */
            input->dims[i] = dim->dim_value;
        } else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                   dim->dim_param[0] && strcmp(dim->dim_param, "?") != 0) {
            input->dim_names[i] = dim->dim_param;
            TRY(intern_dim(model, dim->dim_param, &input->dims[i], err));
        }
    }
    return FRIT_OK;
}

/* What is no tensor of numbers has FRIT_NO_DTYPE and is refused when the model is bound. */
static frit_status read_input(struct onnx_model *model, const Onnx__ValueInfoProto *info,
                              frit_err *err)
{
    struct script_input *input = &model->inputs[model->n_inputs];
    int32_t *narrow = &model->narrow[model->n_inputs++];

    *input = (struct script_input){.name = info->name};
    if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return FRIT_OK;
    input->dtype = tensor_dtype(info->type->tensor_type->elem_type);
    if (tensor_bits(info->type->tensor_type->elem_type))
        *narrow = info->type->tensor_type->elem_type;
    if (!info->type->tensor_type->shape)
        return FRIT_OK;
    return read_dims(model, info->type->tensor_type->shape, input, err);
}

static frit_status read_inputs(struct onnx_model *model, frit_err *err)
{
    const Onnx__GraphProto *graph = model->graph;

    model->inputs = arena_array(&model->arena, graph->n_input + 1, sizeof(*model->inputs));
    model->narrow = arena_array(&model->arena, graph->n_input + 1, sizeof(*model->narrow));
    if (!model->inputs || !model->narrow)
        return fail_memory(err, graph->n_input * sizeof(*model->inputs));
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = graph->initializer[i]->name;

        if (!map_get(&model->initializers, name, strlen(name)) &&
            !map_add(&model->initializers, name, strlen(name), model))
            return fail_memory(err, strlen(name));
    }
    for (size_t i = 0; i < graph->n_input; i++) {
        if (!graph->input[i]->name || !lex_is_text(str_of(graph->input[i]->name)))
            return fail(
                err, FRIT_INVALID,
                "input %zu has no name, or one of more than 200 bytes or with control characters",
                i);
        if (!map_get(&model->initializers, graph->input[i]->name, strlen(graph->input[i]->name)))
            TRY(read_input(model, graph->input[i], err));
    }
    return FRIT_OK;
}

/* ---- opening ---- */

static frit_status check_model(const Onnx__ModelProto *proto, frit_err *err)
{
    if (!proto->graph)
        return fail(err, FRIT_INVALID, "no ONNX model, or a damaged one: there is no graph");
    if (!proto->n_opset_import)
        return fail(err, FRIT_INVALID, "the model says no opset");
    for (size_t i = 0; i < proto->graph->n_initializer; i++) {
        const char *name = proto->graph->initializer[i]->name;

        if (!name || !name[0])
            return fail(err, FRIT_INVALID, "initializer %zu has no name", i);
    }
    return FRIT_OK;
}

static frit_status unpack(struct onnx_model *model, const void *bytes, size_t n_bytes,
                          frit_err *err)
{
    if (n_bytes > INT_MAX)
        return fail(err, FRIT_INVALID,
                    "more than 2 GiB: ONNX has weights that large in files "
                    "beside the model");
    TRY(wire_check(&onnx__model_proto__descriptor, bytes, n_bytes, err));
    model->proto = onnx__model_proto__unpack(NULL, n_bytes, bytes);
    if (!model->proto)
        return fail(err, FRIT_INVALID, "no ONNX model, or memory is short");
    TRY(check_model(model->proto, err));
    model->graph = model->proto->graph;
    return read_inputs(model, err);
}

frit_status onnx_open(const char *path, const void *bytes, size_t n_bytes, struct onnx_model **out,
                      frit_err *err)
{
    struct onnx_model *model = calloc(1, sizeof(*model));
    frit_status st;

    *out = NULL;
    if (!model)
        return fail_memory(err, sizeof(*model));
    atomic_init(&model->refs, 1);
    model->path = arena_text(&model->arena, path, strlen(path));
    st = model->path ? unpack(model, bytes, n_bytes, err) : fail_memory(err, strlen(path));
    if (st) {
        onnx_unref(model);
        return fail_context(err, "%s", path);
    }
    *out = model;
    return FRIT_OK;
}

void onnx_ref(struct onnx_model *model)
{
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
}

void onnx_unref(struct onnx_model *model)
{
    if (!model || atomic_fetch_sub_explicit(&model->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (struct onnx_file *file = model->files; file; file = file->next) {
        if (file->n_bytes)
            munmap((void *)(uintptr_t)file->bytes, file->n_bytes);
    }
    if (model->proto)
        onnx__model_proto__free_unpacked(model->proto, NULL);
    map_fini(&model->converted, NULL);
    map_fini(&model->initializers, NULL);
    map_fini(&model->dims, NULL);
    arena_fini(&model->arena);
    free(model);
}

uint32_t onnx_n_inputs(const struct onnx_model *model)
{
    return model->n_inputs;
}

const struct script_input *onnx_input_at(const struct onnx_model *model, uint32_t index)
{
    return &model->inputs[index];
}
