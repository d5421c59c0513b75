/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: the types of the inputs, then the main graph. */
#include <string.h>

#include "base/fail.h"
#include "graph/dtype.h"
#include "onnx/import.h"
#include "onnx/model.h"
#include "onnx/problem.h"

enum { UNKNOWN_EXTENT = 2, MAX_OPS = 1 << 20, MAX_COMPUTED = 1 << 30, MAX_KNOWN = 64 };

/* ---- inputs ---- */

/* The inputs' types while they are found out. */
struct input_binding {
    struct onnx_import *import;
    const struct op_type *given;
    int64_t *extents; /* of named dims, -1: not known yet */
};

static const char *given_text(const struct op_type *type, char text[128])
{
    return op_type_text(type, text, 128);
}

/* Compares a given type with the declaration and learns the named dims. */
static void learn_dims(const struct input_binding *b, const struct script_input *input,
                       const struct op_type *type)
{
    char text[128];

    if (input->dtype != type->dtype && input->dtype != FRIT_NO_DTYPE)
        problem_add(b->import, "input '%.100s' has elements of %s, the given value is %s",
                    input->name, dtype_name(input->dtype), given_text(type, text));
    if (!input->has_dims)
        return;
    if (input->rank != type->rank) {
        problem_add(b->import, "input '%.100s' has %u dims, the given value is %s", input->name,
                    input->rank, given_text(type, text));
        return;
    }
    for (uint32_t d = 0; d < input->rank; d++) {
        int64_t *extent = input->dim_names[d] ? &b->extents[input->dims[d]] : NULL;
        int64_t want = extent ? *extent : input->dims[d];

        if (want >= 0 && want != type->dims[d])
            problem_add(b->import, "dim %u of input '%.100s'%s%.60s is %lld, the given value is %s",
                        d, input->name, extent ? ", " : "", extent ? input->dim_names[d] : "",
                        (long long)want, given_text(type, text));
        else if (extent)
            *extent = type->dims[d];
    }
}

static void find_type(const struct input_binding *b, uint32_t index, struct op_type *type)
{
    const struct script_input *input = &b->import->model->inputs[index];

    *type = b->given[index];
    if (input->dtype == FRIT_NO_DTYPE) {
        problem_add(b->import, "input '%.100s' is no tensor of numbers that Frit has", input->name);
        type->dtype = FRIT_NO_DTYPE;
    }
    if (type->dtype != FRIT_NO_DTYPE || input->dtype == FRIT_NO_DTYPE)
        return;
    if (!input->has_dims) {
        problem_add(b->import, "input '%.100s' declares no dims: give its value", input->name);
        return;
    }
    *type = (struct op_type){.dtype = input->dtype, .rank = input->rank};
    for (uint32_t d = 0; d < input->rank; d++) {
        type->dims[d] = input->dim_names[d] ? b->extents[input->dims[d]] : input->dims[d];
        if (type->dims[d] < 0)
            type->dims[d] = UNKNOWN_EXTENT;
    }
}

static void add_input(struct onnx_import *import, uint32_t index, const struct op_type *type,
                      const void *data, val **out)
{
    const char *name = import->model->inputs[index].name;
    val *value = import_alloc(import, sizeof(*value));

    *out = value;
    if (!value || import->status)
        return;
    *value = (val){.kind = VALUE_TENSOR,
                   .type = *type,
                   .data = data,
                   .name = name,
                   .narrow = import->model->narrow[index]};
    if (type->dtype == FRIT_NO_DTYPE)
        value->kind = VALUE_FAILED;
    else
        import->status =
            graph_input(import->graph, GRAPH_INPUT, name, type, &value->number, import->err);
}

/* Lists of numbers, not data. */
static bool is_short(const struct op_type *type)
{
    return type->rank <= 1 && op_elements(type) <= MAX_KNOWN;
}

static void add_inputs(struct onnx_import *import, const struct op_type *given,
                       const void *const *values, val **out)
{
    const struct onnx_model *model = import->model;
    struct input_binding b = {import, given, NULL};
    struct op_type type;

    b.extents = import_alloc(import, (model->n_dims + 1) * sizeof(*b.extents));
    for (uint32_t i = 0; b.extents && i < model->n_dims; i++)
        b.extents[i] = -1;
    for (uint32_t i = 0; b.extents && i < model->n_inputs; i++) {
        if (given[i].dtype != FRIT_NO_DTYPE)
            learn_dims(&b, &model->inputs[i], &given[i]);
    }
    for (uint32_t i = 0; b.extents && i < model->n_inputs; i++) {
        find_type(&b, i, &type);
        add_input(import, i, &type, values && is_short(&type) ? values[i] : NULL, &out[i]);
    }
}

/* ---- binding ---- */

static frit_status summarize(struct onnx_import *import)
{
    const char *line = import->problems->text;
    size_t length = line ? strcspn(line, "\n") : 0;

    if (import->status)
        return import->status;
    if (import->problems->failed)
        return fail_memory(import->err, 0);
    if (!import->n_problems)
        return FRIT_OK;
    if (import->n_problems == 1)
        return fail(import->err, FRIT_UNSUPPORTED, "%.*s", (int)length, line);
    return fail(import->err, FRIT_UNSUPPORTED, "%.*s (and %u more)", (int)length, line,
                import->n_problems - 1);
}

static frit_status import_model(struct onnx_import *import, const struct op_type *types,
                                const void *const *values)
{
    val **inputs = import_alloc(import, (import->model->n_inputs + 1) * sizeof(val *));
    frit_status st;

    if (inputs)
        add_inputs(import, types, values, inputs);
    if (!import->status)
        import_main(import, inputs);
    st = summarize(import);
    if (!st)
        st = graph_prune(import->graph, import->err);
    arena_fini(&import->arena);
    return st;
}

frit_status onnx_bind(struct onnx_model *model, const struct op_type *types,
                      const void *const *values, struct graph *out, struct str *problems,
                      frit_err *err)
{
    const struct onnx_import start = {.model = model,
                                      .graph = out,
                                      .problems = problems,
                                      .budget = MAX_OPS,
                                      .room = MAX_COMPUTED,
                                      .absent = {.kind = VALUE_ABSENT, .number = GRAPH_NO_VALUE},
                                      .err = err};
    struct onnx_import import = start;
    frit_status st = import_model(&import, types, NULL);

    if (!st || !import.wants_values || !values)
        return st;
    graph_fini(out);
    str_fini(problems);
    import = start;
    return import_model(&import, types, values);
}
