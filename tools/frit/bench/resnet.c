/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-50 as a text program that is written here: stages of blocks of three convolutions, the
 * second one with strides of 2 in a stage's first block, norms folded into weights and biases.  All
 * of these are inputs with random values, as large as keeps the size of what passes through. */
#include "bench/resnet.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "bench/bench.h"
#include "bench/device.h"
#include "invocation.h"

enum {
    SIDE = 224, /* of the image */
    CLASSES = 1000,
    SMALL_SIDE = 32, /* of devices that are programs, and with --quick */
    SMALL_PART = 8,  /* likewise: channels are that part of all */
    EXPANSION = 4,   /* channels of a block's result for one inside */
    N_STAGES = 4,
    MAX_ROUNDS = 64
};

static const struct {
    int blocks, channels;
} stages[N_STAGES] = {{3, 64}, {4, 128}, {6, 256}, {3, 512}};

const char bench_resnet_name[] = "resnet50";

/* ---- the program ---- */

/* What is written: values are named by the number of the convolution that made them. */
struct resnet_writer {
    struct str text;
    int n;        /* convolutions */
    int side;     /* of the value that was written last */
    double flops; /* of one image */
};

/* y = conv of value `x`; without a relu. */
static void write_conv(struct resnet_writer *w, const char *x, int channels, int outputs,
                       int kernel, int stride)
{
    int n = ++w->n;

    w->side = (w->side + 2 * (kernel / 2) - kernel) / stride + 1;
    w->flops += 2.0 * channels * kernel * kernel * outputs * w->side * w->side;
    str_addf(&w->text, "input w%d : f32[%d, %d, %d, %d]\n", n, outputs, channels, kernel, kernel);
    str_addf(&w->text, "input b%d : f32[%d]\n", n, outputs);
    str_addf(&w->text, "c%d = conv %s, w%d, b%d, padding=[%d, %d], stride=[%d, %d]\n", n, x, n, n,
             kernel / 2, kernel / 2, stride, stride);
}

static void write_conv_relu(struct resnet_writer *w, char *x, size_t size, int channels,
                            int outputs, int kernel, int stride)
{
    write_conv(w, x, channels, outputs, kernel, stride);
    str_addf(&w->text, "r%d = relu c%d\n", w->n, w->n);
    snprintf(x, size, "r%d", w->n);
}

/* A block on value `x`, which it replaces. */
static void write_block(struct resnet_writer *w, char *x, size_t size, int channels, int inside,
                        int stride)
{
    char kept[16], y[16];
    int side = w->side;

    snprintf(kept, sizeof(kept), "%s", x);
    snprintf(y, sizeof(y), "%s", x);
    write_conv_relu(w, y, sizeof(y), channels, inside, 1, 1);
    write_conv_relu(w, y, sizeof(y), inside, inside, 3, stride);
    write_conv(w, y, inside, EXPANSION * inside, 1, 1);
    snprintf(y, sizeof(y), "c%d", w->n);
    if (channels != EXPANSION * inside) {
        w->side = side;
        write_conv(w, x, channels, EXPANSION * inside, 1, stride);
        snprintf(kept, sizeof(kept), "c%d", w->n);
    }
    str_addf(&w->text, "a%d = add %s, %s\n", w->n, y, kept);
    str_addf(&w->text, "r%d = relu a%d\n", w->n, w->n);
    snprintf(x, size, "r%d", w->n);
}

static void write_program(struct resnet_writer *w, int side, int part)
{
    int channels = stages[0].channels / part;
    char x[16] = "x";

    *w = (struct resnet_writer){.side = side};
    str_addf(&w->text, "input x : f32[1, 3, %d, %d]\n", side, side);
    write_conv_relu(w, x, sizeof(x), 3, channels, 7, 2);
    str_addf(&w->text, "p = max_pool %s, kernel=[3, 3], stride=[2, 2], padding=[1, 1]\n", x);
    snprintf(x, sizeof(x), "p");
    w->side = (w->side - 1) / 2 + 1;
    for (int s = 0; s < N_STAGES; s++)
        for (int b = 0; b < stages[s].blocks; b++) {
            write_block(w, x, sizeof(x), channels, stages[s].channels / part,
                        s > 0 && b == 0 ? 2 : 1);
            channels = EXPANSION * stages[s].channels / part;
        }
    str_addf(&w->text, "m = mean %s, axes=[2, 3]\nf = reshape m, dims=[1, %d]\n", x, channels);
    str_addf(&w->text, "input w : f32[%d, %d]\ninput b : f32[%d]\n", channels, CLASSES, CLASSES);
    str_addf(&w->text, "output y = linear f, w, b\n");
    w->flops += 2.0 * channels * CLASSES;
}

/* ---- running it ---- */

struct network {
    frit_device *device;
    frit_graph *graph;
    frit_tensor **inputs;
    uint64_t n_inputs;
    frit_err *err;
};

static frit_tensor *run(const void *self)
{
    const struct network *net = self;
    frit_tensor *y = NULL;

    if (frit_graph_run(net->graph, net->device, net->inputs, net->n_inputs, &y, 1, net->err))
        return NULL;
    return y;
}

/* Values such that a sum over `of` products of them and numbers is about as large as these. */
static frit_tensor *random_input(const struct network *net, const frit_port *port)
{
    int64_t of = 1;

    for (uint32_t d = 1; d < port->dims.rank; d++)
        of *= port->dims.dim[d];
    return frit_random_uniform(net->device, FRIT_F32, port->dims, -sqrt(3.0 / (double)of),
                               sqrt(3.0 / (double)of));
}

static frit_status make_inputs(struct network *net)
{
    frit_port port = {.struct_size = sizeof(port)}, *ports;
    frit_status status;

    while (frit_graph_input_at(net->graph, net->n_inputs, &port) == FRIT_OK)
        net->n_inputs++;
    net->inputs = calloc(net->n_inputs, sizeof(frit_tensor *));
    ports = calloc(net->n_inputs, sizeof(*ports));
    if (!net->inputs || !ports) {
        free(ports);
        return FRIT_NO_HOST_MEMORY;
    }
    for (uint64_t i = 0; i < net->n_inputs; i++) {
        ports[i].struct_size = sizeof(*ports);
        frit_graph_input_at(net->graph, i, &ports[i]);
        net->inputs[i] = random_input(net, &ports[i]);
    }
    status = frit_graph_bind(net->graph, ports, net->n_inputs, net->err);
    free(ports);
    return status;
}

static void close_network(struct network *net)
{
    for (uint64_t i = 0; net->inputs && i < net->n_inputs; i++)
        frit_release(net->inputs[i]);
    free(net->inputs);
    frit_graph_free(net->graph);
}

/* Median nanoseconds of a run; below 0 after a failure. */
static double measure(const struct bench *bench, const struct network *net)
{
    const struct bench_job job = {net->device, run, net, net->err};
    double times[MAX_ROUNDS];
    uint32_t n_rounds = bench->rounds < MAX_ROUNDS ? (uint32_t)bench->rounds : MAX_ROUNDS;
    uint32_t n = bench_queue(bench, &job);

    for (uint32_t i = 0; i < n_rounds; i++) {
        times[i] = bench_run(&job, n);
        if (times[i] < 0)
            return -1;
    }
    return bench_median(times, n_rounds);
}

int bench_resnet(const struct bench *bench, frit_device *device, const frit_device_desc *desc)
{
    bool small = bench->quick || strcmp(desc->type, "software") == 0;
    int side = small ? SMALL_SIDE : SIDE, part = small ? SMALL_PART : 1;
    frit_err err = {.struct_size = sizeof(err)};
    struct network net = {.device = device, .err = &err};
    struct bench_row row = {.suite = "device",
                            .row = bench_resnet_name,
                            .device = frit_device_name(device),
                            .n_figures = 2};
    double time = -1;
    struct resnet_writer w;
    char what[96];

    write_program(&w, side, part);
    if (w.text.failed)
        snprintf(err.text, sizeof(err.text), "no memory");
    else if (!frit_graph_parse(bench_resnet_name, w.text.text, w.text.length, &net.graph, &err) &&
             !make_inputs(&net))
        time = measure(bench, &net);
    close_network(&net);
    str_fini(&w.text);
    if (time <= 0)
        return fail_command(bench->in, "%s: %s", bench_resnet_name, err.text);
    snprintf(what, sizeof(what), "1 image of %d x %d f32, %d channels at first, random weights",
             side, side, stages[0].channels / part);
    row.what = what;
    row.figures[0] = (struct bench_figure){"gflop_per_s", "GFLOP/s", w.flops / time, 0, false};
    row.figures[1] = (struct bench_figure){"ms", "ms", time * 1e-6, 0, false};
    bench_print(bench, &row);
    return CLI_FINE;
}
