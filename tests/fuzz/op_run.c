/* SPDX-License-Identifier: Apache-2.0 */
/* The devices stay open for many graphs and keep their plans.  Inputs contain difficult values of
 * their type (zeros, the ends of its range, NaN, infinities) and small numbers that are valid as
 * indices and lengths. */
#include "op_run.h"
#include "graph/dtype.h"

#include <frit/frit.h>
#include <frit/inspect.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICES = 2, RUNS_PER_OPEN = 256 };

static const char *const names[DEVICES] = {"reference:0", "cpu:0"};

struct player {
    frit_device *device;
    const struct graph *graph;
    frit_tensor **tensors; /* by value; NULL: not made */
};

static void stop(const struct player *player, const char *what, const char *text)
{
    fprintf(stderr, "%s: %s: %s\n", frit_device_name(player->device), what, text);
    abort();
}

static frit_device *devices[DEVICES]; /* NULL: to be opened */

static void open_devices(void)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const frit_setting settings[] = {
        {"frit", "threads", "1"},
        {"frit", "poison", "yes"},
        {"fusion", "compile", "wait"},
        {"fusion", "store", "none"},
        {"plugin.cpu", "option.tier", "0"},
        {"plugin.cpu", "option.memory_bytes", "67108864"},
        {"plugin.reference", "option.memory_bytes", "67108864"}};
    static const frit_host_params params = {.struct_size = sizeof(params),
                                            .settings = settings,
                                            .n_settings = sizeof(settings) / sizeof(settings[0])};
    static frit_host *host;
    frit_status st = host ? FRIT_OK : frit_host_open(&params, &host, &err);

    for (uint32_t k = 0; k < DEVICES && !st; k++)
        st = devices[k] ? FRIT_OK : frit_device_open(host, names[k], &devices[k], &err);
    if (st) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
}

static void close_devices(void)
{
    for (uint32_t k = 0; k < DEVICES; k++) {
        frit_device_close(devices[k]);
        devices[k] = NULL;
    }
}

/* ---- data ---- */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A random element as stored in memory, in the low bytes of the word. */
static uint64_t element(uint32_t dtype, uint64_t *state)
{
    static const double reals[] = {0, 1, -1, 0.5, 2, -2.25, 3, 100, -0.0, NAN, INFINITY, 1e30};
    double real = reals[next(state) % (sizeof(reals) / sizeof(reals[0]))];
    uint64_t pick = next(state), bits;
    float narrow = (float)real;
    uint32_t bits32 = 0;

    switch (dtype_class(dtype)) {
    case FRIT_DTYPE_BOOL:
        return pick & 1;
    case FRIT_DTYPE_INT:
    case FRIT_DTYPE_UINT:
        return pick % 8 < 6
                   ? pick / 8 % 5
                   : (pick % 8 == 6 ? UINT64_MAX : (uint64_t)1 << (frit_dtype_bits(dtype) - 1));
    default:
        break;
    }
    memcpy(&bits32, &narrow, sizeof(bits32));
    if (dtype == FRIT_F64) {
        memcpy(&bits, &real, sizeof(bits));
        return bits;
    }
    if (dtype == FRIT_F16) /* some of them NaN, infinite or denormal */
        return pick & 0xffff;
    return dtype == FRIT_F32 ? bits32 : bits32 >> 16;
}

static frit_tensor *make_input(const struct player *player, const struct op_type *type,
                               uint64_t *state)
{
    uint64_t bytes = frit_storage_bytes(type->dtype, op_elements(type));
    uint64_t size = frit_dtype_bits(type->dtype) / 8;
    frit_dims dims = {.rank = type->rank};
    unsigned char *data = malloc(bytes + 1);
    frit_tensor *tensor;

    if (!data)
        stop(player, "an input", "no memory");
    memcpy(dims.dim, type->dims, type->rank * sizeof(dims.dim[0]));
    for (uint64_t at = 0; at < bytes; at += size) {
        uint64_t bits = element(type->dtype, state);

        memcpy(data + at, &bits, size);
    }
    tensor = frit_from_host(player->device, type->dtype, dims, data, bytes);
    free(data);
    return tensor;
}

/* ---- ops ---- */

static void check_type(const struct player *player, const frit_op_info *row, frit_tensor *tensor,
                       const struct op_type *type)
{
    frit_dims dims = frit_tensor_dims(tensor);

    if (frit_tensor_status(tensor) == FRIT_INVALID)
        stop(player, row->name, frit_tensor_error(tensor));
    if (frit_tensor_dtype(tensor) != type->dtype || dims.rank != (int64_t)type->rank ||
        memcmp(dims.dim, type->dims, type->rank * sizeof(dims.dim[0])) != 0)
        stop(player, row->name, "another type than the graph's");
}

static void run_op(struct player *player, const struct graph_op *op)
{
    const frit_op_info *row = op_row(op->op);
    frit_input in[FRIT_OP_MAX_IN] = {{0}};
    frit_tensor *out[FRIT_OP_MAX_OUT] = {NULL};
    frit_call call = {
        .struct_size = sizeof(call), .op = op->op, .n_in = op->n_in, .in = in, .attrs = op->attrs};
    uint32_t n_out = 0;

    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            in[i].tensor = player->tensors[op->in[i].value];
        else if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            in[i].scalar = op->in[i].scalar;
    }
    for (uint32_t k = 0; k < op->n_out; k++)
        if (op->out[k] != GRAPH_NO_VALUE)
            n_out = k + 1;
    frit_op(player->device, &call, out, n_out);
    for (uint32_t k = 0; k < n_out; k++) {
        if (op->out[k] == GRAPH_NO_VALUE) {
            frit_release(out[k]);
            continue;
        }
        check_type(player, row, out[k], &player->graph->values[op->out[k]].type);
        player->tensors[op->out[k]] = out[k];
    }
}

static void read_value(const struct player *player, uint32_t value)
{
    frit_tensor *tensor = player->tensors[value];
    uint64_t bytes = frit_tensor_bytes(tensor);
    void *data = malloc(bytes + 1);

    if (!data || frit_read(tensor, data, bytes, NULL))
        stop(player, "a read failed", frit_tensor_error(tensor));
    free(data);
}

static void check_nothing_left(const struct player *player)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    if (frit_sync_all(player->device, NULL))
        stop(player, "a sync failed", "");
    frit_stats_get(player->device, &stats);
    if (stats.tensors_now || stats.queued_now || stats.buffers_now)
        stop(player, "something is left", "");
}

static void run_on(frit_device *device, const struct graph *graph, uint64_t seed)
{
    struct player player = {.device = device,
                            .graph = graph,
                            .tensors = calloc(graph->n_values, sizeof(*player.tensors))};
    uint64_t state = seed;

    if (!player.tensors)
        stop(&player, "a graph", "no memory");
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (graph->values[v].kind != GRAPH_RESULT)
            player.tensors[v] = make_input(&player, &graph->values[v].type, &state);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        run_op(&player, &graph->ops[i]);
    for (uint32_t v = 0; v < graph->n_values; v++) {
        if (!player.tensors[v])
            continue;
        if (v % 2 == 0 || v + 1 == graph->n_values) /* the others die unseen */
            read_value(&player, v);
        frit_release(player.tensors[v]);
    }
    free(player.tensors);
    check_nothing_left(&player);
}

void op_run(const struct graph *graph, uint64_t seed)
{
    static uint32_t runs;

    open_devices();
    for (uint32_t k = 0; k < DEVICES; k++)
        run_on(devices[k], graph, seed);
    if (++runs % RUNS_PER_OPEN == 0)
        close_devices();
}
