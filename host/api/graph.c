/* SPDX-License-Identifier: Apache-2.0 */
/* Text programs for callers: loading, binding, recording their ops. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/graph.h"
#include "api/record_op.h"
#include "api/report.h"
#include "api/tensor.h"
#include "base/fail.h"
#include "base/file.h"
#include "device/support.h"
#include "file/npy.h"
#include "graph/dtype.h"
#include "graph/text/text.h"
#include "onnx/onnx.h"
#include "tensor/slot.h"

enum { MAX_TEXT_BYTES = 64 << 20, MAX_MODEL_BYTES = INT32_MAX };

/* A program is text or a model; both have inputs and become a graph. */
static uint32_t n_inputs_of(const frit_graph *graph)
{
    return graph->model ? onnx_n_inputs(graph->model) : script_n_inputs(graph->script);
}

static const struct script_input *input_of(const frit_graph *graph, uint32_t index)
{
    return graph->model ? onnx_input_at(graph->model, index)
                        : script_input_at(graph->script, index);
}

/* ---- loading ---- */

/* Resolves a path relative to the folder of the program. */
static const char *resolve(struct arena *arena, const char *program, const char *file)
{
    const char *slash = strrchr(program, '/');
    size_t dir = slash && file[0] != '/' ? (size_t)(slash - program) + 1 : 0;
    size_t length = strlen(file);
    char *path = arena_alloc(arena, dir + length + 1);

    if (path) {
        memcpy(path, program, dir);
        memcpy(path + dir, file, length + 1);
    }
    return path;
}

static frit_status resolve_files(struct frit_graph *graph, const char *name, frit_err *err)
{
    uint32_t n = n_inputs_of(graph);

    graph->name = arena_text(&graph->arena, name, strlen(name));
    graph->files = arena_array(&graph->arena, n, sizeof(char *));
    if (!graph->name || !graph->files)
        return fail_memory(err, n * sizeof(char *));
    for (uint32_t i = 0; i < n; i++) {
        const char *file = input_of(graph, i)->file;

        if (file && !(graph->files[i] = resolve(&graph->arena, name, file)))
            return fail_memory(err, strlen(file));
    }
    return FRIT_OK;
}

frit_status frit_graph_parse(const char *name, const char *text, uint64_t length, frit_graph **out,
                             frit_err *err)
{
    HOLD_CANCEL;
    frit_graph *graph;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "graph_parse");
    if (!out)
        return fail(err, FRIT_INVALID, "graph_parse: nowhere to put the graph");
    *out = NULL;
    if (!name || (!text && length))
        return fail(err, FRIT_INVALID, "graph_parse: the %s is NULL", name ? "text" : "name");
    graph = calloc(1, sizeof(*graph));
    if (!graph)
        return fail_memory(err, sizeof(*graph));
    pthread_mutex_init(&graph->lock, NULL);
    st = onnx_is_model(name) ? onnx_open(name, text, length, &graph->model, err)
                             : script_parse(name, text, length, &graph->script, err);
    if (!st)
        st = resolve_files(graph, name, err);
    if (st)
        frit_graph_free(graph);
    else
        *out = graph;
    return st;
}

static frit_status read_text(const char *path, char **text, size_t *n_bytes, frit_err *err)
{
    const int most = onnx_is_model(path) ? MAX_MODEL_BYTES : MAX_TEXT_BYTES;
    struct stat info;
    const char *why;
    int fd = file_open(AT_FDCWD, path, FILE_NAMED, &info, &why);
    frit_status st = FRIT_OK;

    *text = NULL;
    *n_bytes = 0;
    if (fd < 0)
        return fail(err, FRIT_IO, "%s: cannot be opened: %s", path, why);
    if (info.st_size > most)
        st = fail(err, FRIT_INVALID, "%s: a program of more than %d bytes", path, most);
    else if (!(*text = malloc((size_t)info.st_size + 1)))
        st = fail_memory(err, (size_t)info.st_size);
    else if (!file_read(fd, *text, (size_t)info.st_size))
        st = fail(err, FRIT_IO, "%s: cannot be read, or became shorter meanwhile", path);
    else
        *n_bytes = (size_t)info.st_size;
    close(fd);
    return st;
}

frit_status frit_graph_load(const char *path, frit_graph **out, frit_err *err)
{
    HOLD_CANCEL;
    size_t n_bytes;
    char *text;
    frit_status st;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "graph_load");
    if (!path)
        return fail(err, FRIT_INVALID, "graph_load: the path is NULL");
    st = read_text(path, &text, &n_bytes, err);
    if (!st)
        st = frit_graph_parse(path, text, n_bytes, out, err);
    free(text);
    return st;
}

void frit_graph_free(frit_graph *graph)
{
    if (!graph)
        return;
    graph_constants_drop(graph);
    graph_fini(&graph->graph);
    script_destroy(graph->script);
    onnx_unref(graph->model);
    str_fini(&graph->problems);
    pthread_mutex_destroy(&graph->lock);
    arena_fini(&graph->arena);
    free(graph);
}

/* ---- ports ---- */

static frit_status give_port(frit_port *out, const frit_port *port)
{
    uint64_t size = out->struct_size;

    if (size < FRIT_END_OF(frit_port, name))
        return FRIT_INVALID;
    memcpy(out, port, size < sizeof(*port) ? size : sizeof(*port));
    out->struct_size = size;
    return FRIT_OK;
}

static void port_type(frit_port *port, const struct op_type *type)
{
    port->dtype = type->dtype;
    port->dims.rank = type->rank;
    memcpy(port->dims.dim, type->dims, sizeof(port->dims.dim));
}

frit_status frit_graph_input_at(const frit_graph *graph, uint64_t index, frit_port *out)
{
    const struct script_input *input;
    frit_port port = {0};

    if (!graph || !out || index >= n_inputs_of(graph))
        return FRIT_INVALID;
    input = input_of(graph, (uint32_t)index);
    port.name = input->name;
    port.file = graph->files[index];
    port.is_const = input->is_const;
    if (graph->bound) {
        port_type(&port, &graph->graph.values[index].type);
    } else {
        port.dtype = input->dtype;
        port.dims.rank = input->has_dims ? (int64_t)input->rank : -1;
        for (uint32_t i = 0; i < input->rank; i++)
            port.dims.dim[i] = input->dim_names[i] ? -1 : input->dims[i];
    }
    return give_port(out, &port);
}

frit_status frit_graph_output_at(const frit_graph *graph, uint64_t index, frit_port *out)
{
    const struct graph_value *value;
    frit_port port = {0};

    if (!graph || !out || !graph->bound || index >= graph->graph.n_outputs)
        return FRIT_INVALID;
    value = &graph->graph.values[graph->graph.outputs[index]];
    port.name = graph->graph.output_names[index];
    if (!port.name)
        port.name = value->name ? value->name : "";
    port_type(&port, &value->type);
    return give_port(out, &port);
}

uint64_t frit_graph_op_count(const frit_graph *graph)
{
    return graph && graph->bound ? graph->graph.n_ops : 0;
}

char *frit_graph_print(const frit_graph *graph)
{
    struct str out = {0};

    if (!graph || !graph->bound)
        return NULL;
    graph_print(&graph->graph, &out);
    if (out.failed)
        str_fini(&out);
    return out.text;
}

/* ---- binding ---- */

static frit_status types_of_ports(const frit_port *ports, uint64_t count, struct op_type *types,
                                  frit_err *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (ports[i].struct_size < FRIT_END_OF(frit_port, dims))
            return fail(err, FRIT_INVALID, "graph_bind: struct_size of port %llu is not set",
                        (unsigned long long)i);
        if (ports[i].dtype == FRIT_NO_DTYPE)
            continue;
        if (ports[i].dims.rank < 0 || ports[i].dims.rank > FRIT_MAX_RANK)
            return fail(err, FRIT_INVALID, "graph_bind: port %llu has rank %lld",
                        (unsigned long long)i, (long long)ports[i].dims.rank);
        types[i].dtype = ports[i].dtype;
        types[i].rank = (uint32_t)ports[i].dims.rank;
        memcpy(types[i].dims, ports[i].dims.dim, sizeof(types[i].dims));
    }
    return FRIT_OK;
}

/* An input without a declared type and without a port's takes the type of its file. */
static frit_status types_of_files(const struct frit_graph *graph, struct op_type *types,
                                  frit_err *err)
{
    for (uint32_t i = 0; i < n_inputs_of(graph); i++) {
        const struct script_input *input = input_of(graph, i);
        frit_status st;

        if (types[i].dtype != FRIT_NO_DTYPE || input->dtype != FRIT_NO_DTYPE || !graph->files[i])
            continue;
        st = npy_read_type(graph->files[i], &types[i], err);
        if (st) {
            fail_context(err, "%s:%u:%u", graph->name, input->line, input->column);
            return st;
        }
    }
    return FRIT_OK;
}

/* With the values that the caller knows. */
static frit_status bind_model(frit_graph *graph, const struct op_type *types,
                              const frit_port *ports, struct graph *out, frit_err *err)
{
    const uint32_t n = n_inputs_of(graph);
    const void **values = calloc((size_t)n + 1, sizeof(*values));
    frit_status st;

    if (!values)
        return fail_memory(err, n * sizeof(*values));
    for (uint32_t i = 0; i < n; i++) {
        if (ports[i].struct_size >= FRIT_END_OF(frit_port, data) && ports[i].dtype != FRIT_NO_DTYPE)
            values[i] = ports[i].data;
    }
    st = onnx_bind(graph->model, types, values, out, &graph->problems, err);
    free(values);
    return st;
}

char *frit_graph_problems(const frit_graph *graph)
{
    return graph && graph->problems.text ? strdup(graph->problems.text) : NULL;
}

frit_status frit_graph_bind(frit_graph *graph, const frit_port *ports, uint64_t count,
                            frit_err *err)
{
    HOLD_CANCEL;
    struct graph fresh = {0};
    struct op_type *types;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "graph_bind");
    if (!graph || (count && !ports) || count != n_inputs_of(graph))
        return fail(err, FRIT_INVALID, "graph_bind: wants one port for each of the %u inputs",
                    graph ? n_inputs_of(graph) : 0);
    types = calloc(count + 1, sizeof(*types));
    if (!types)
        return fail_memory(err, count * sizeof(*types));
    str_fini(&graph->problems);
    st = types_of_ports(ports, count, types, err);
    if (!st)
        st = types_of_files(graph, types, err);
    if (!st)
        st = graph->model ? bind_model(graph, types, ports, &fresh, err)
                          : script_bind(graph->script, types, &fresh, err);
    if (st) {
        graph_fini(&fresh);
    } else {
        graph_constants_drop(graph);
        graph_fini(&graph->graph);
        graph->graph = fresh;
        graph->bound = true;
    }
    free(types);
    return st;
}

/* ---- values of inputs that the program knows ---- */

/* Files have the bytes of packed types, and the declaration says of which. */
static frit_tensor *load_default(const struct frit_graph *graph, const struct script_input *input,
                                 uint64_t index, frit_device *device)
{
    frit_tensor *tensor = frit_load_npy(device, graph->files[index]);
    frit_dims dims = {.rank = input->rank};

    if (input->dtype == FRIT_NO_DTYPE || dtype_class(input->dtype) != FRIT_DTYPE_PACKED ||
        frit_tensor_status(tensor))
        return tensor;
    for (uint32_t i = 0; i < input->rank; i++)
        dims.dim[i] = input->dim_names[i] ? -1 : input->dims[i];
    return frit_as_packed(frit_take(tensor), input->dtype, dims);
}

frit_tensor *frit_graph_default(const frit_graph *graph, uint64_t index, frit_device *device)
{
    HOLD_CANCEL;
    const struct script_input *input;
    frit_err err = ERR_INIT;
    frit_dims dims = {0};

    if (!graph || index >= n_inputs_of(graph)) {
        fail(&err, FRIT_INVALID, "graph_default: %s",
             graph ? "no such input" : "the graph is NULL");
        return tensor_error(device, &err);
    }
    input = input_of(graph, (uint32_t)index);
    if (graph->files[index])
        return load_default(graph, input, index, device);
    if (!input->data) {
        fail(&err, FRIT_INVALID, "graph_default: the input %s has no value in the program",
             input->name);
        return tensor_error(device, &err);
    }
    dims.rank = input->data_type.rank;
    memcpy(dims.dim, input->data_type.dims, sizeof(dims.dim));
    return frit_from_host(device, input->dtype, dims, input->data,
                          frit_storage_bytes(input->dtype, op_elements(&input->data_type)));
}

/* ---- running ---- */

static frit_status check_inputs(const frit_graph *graph, frit_tensor *const *inputs,
                                uint64_t n_inputs, frit_err *err)
{
    uint32_t n = n_inputs_of(graph);

    if (!graph->bound)
        return fail(err, FRIT_INVALID, "graph_run: bind the graph first");
    if (n_inputs != n || (n && !inputs))
        return fail(err, FRIT_INVALID, "graph_run: %llu inputs given, the program has %u",
                    (unsigned long long)n_inputs, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct graph_value *value = &graph->graph.values[i];
        frit_dims dims = frit_tensor_dims(inputs[i]);
        struct op_type type = {.dtype = frit_tensor_dtype(inputs[i]), .rank = (uint32_t)dims.rank};
        char want[128], have[128];

        memcpy(type.dims, dims.dim, sizeof(type.dims));
        if (frit_tensor_status(inputs[i]) == FRIT_OK && !op_type_equal(&type, &value->type))
            return fail(err, FRIT_INVALID, "graph_run: input %s is %s, the graph is bound to %s",
                        value->name, op_type_text(&type, have, sizeof(have)),
                        op_type_text(&value->type, want, sizeof(want)));
    }
    return FRIT_OK;
}

/* An output may repeat another one or an input; each gets a reference of its own. */
static void keep_outputs(const struct graph *graph, frit_tensor **tensors, frit_tensor **outputs)
{
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        frit_tensor *tensor = tensors[graph->outputs[i]];
        bool again = graph->values[graph->outputs[i]].kind != GRAPH_RESULT;

        for (uint32_t k = 0; k < i && !again; k++)
            again = graph->outputs[k] == graph->outputs[i];
        outputs[i] = frit_keep(again ? frit_reshape(tensor, frit_tensor_dims(tensor)) : tensor);
    }
}

/* Records all ops but the settled ones (NULL: there are none).  `tensors` holds the inputs and what
 * the graph holds, and has space for every value. */
static frit_status record_ops(const struct graph *g, frit_device *device, const bool *settled,
                              frit_tensor **tensors, frit_input *in, frit_tensor **outputs,
                              frit_err *err)
{
    frit_scope scope = frit_scope_begin(device);

    if (!scope.depth)
        return fail(err, FRIT_NO_HOST_MEMORY, "graph_run: no memory for a queue");
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (!settled || !settled[i])
            record_op(device, &g->ops[i], in, tensors);
    }
    keep_outputs(g, tensors, outputs);
    frit_scope_end(scope);
    return FRIT_OK;
}

/* Taken inputs are released at the end, since several ops may use one. */
static void consume_inputs(frit_tensor *const *inputs, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        bool again = !handle_taken(inputs[i]);

        for (uint64_t k = 0; k < i && !again; k++)
            again = inputs[k] == inputs[i];
        if (!again)
            tensor_consume(inputs[i]);
    }
}

static frit_status run(const frit_graph *graph, frit_device *device, frit_tensor *const *inputs,
                       uint64_t n_inputs, frit_tensor **outputs, uint64_t n_outputs, frit_err *err)
{
    const struct graph *g;
    struct arena arena = {0};
    frit_tensor **tensors;
    const bool *settled;
    frit_input *in;
    frit_status st;

    if (!graph || !device)
        return fail(err, FRIT_INVALID, "graph_run: the %s is NULL", graph ? "device" : "graph");
    TRY(check_inputs(graph, inputs, n_inputs, err));
    g = &graph->graph;
    if (n_outputs != g->n_outputs || (n_outputs && !outputs))
        return fail(err, FRIT_INVALID, "graph_run: room for %llu outputs, the program has %u",
                    (unsigned long long)n_outputs, g->n_outputs);
    tensors = arena_array(&arena, (size_t)g->n_values + 1, sizeof(frit_tensor *));
    in = arena_array(&arena, graph_max_operands(g) + 1, sizeof(*in));
    if (!tensors || !in) {
        arena_fini(&arena);
        return fail_memory(err, g->n_values * sizeof(frit_tensor *));
    }
    for (uint64_t i = 0; i < n_inputs; i++)
        tensors[i] = handle_plain(inputs[i]);
    st = graph_constants(graph, device, tensors, &settled, err);
    if (!st)
        st = record_ops(g, device, settled, tensors, in, outputs, err);
    arena_fini(&arena);
    return st;
}

frit_status frit_graph_run(const frit_graph *graph, frit_device *device, frit_tensor *const *inputs,
                           uint64_t n_inputs, frit_tensor **outputs, uint64_t n_outputs,
                           frit_err *err)
{
    HOLD_CANCEL;
    frit_status st = run(graph, device, inputs, n_inputs, outputs, n_outputs, err);

    if (inputs)
        consume_inputs(inputs, n_inputs);
    return st;
}

uint32_t frit_graph_support(const frit_graph *graph, frit_device *device)
{
    HOLD_CANCEL;

    if (!graph || !graph->bound || !device || process_is_barred())
        return FRIT_SUPPORT_NONE;
    return support_of_graph(device, &graph->graph);
}
