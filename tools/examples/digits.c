/* SPDX-License-Identifier: Apache-2.0 */
/* 500 handwritten digits through two trained networks (tools/models), and a chain of ten ops, on
 * every device that is found: with ops run together, and op by op.
 *
 *   frit-digits [ROOT]     ROOT: top of the source tree, by default the working directory
 *
 * Ends with 1 if a network gives other answers than it should, or logits further than 1e-3 from the
 * expected. */
#include <frit/frit.h>
#include <frit/inspect.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { IMAGES = 500, SIDE = 8, CLASSES = 10, SHOWN = 5, MAX_INPUTS = 16 };
#define MAX_DIFFERENCE 1e-3

static const struct model {
    const char *name;
    int right;
} models[] = {{"mlp", 485}, {"cnn", 495}};

/* Test images, their labels, and the outputs that a device should compute. */
struct truth {
    float images[IMAGES][SIDE][SIDE];
    int64_t labels[IMAGES];
    float logits[IMAGES][CLASSES]; /* of the model at hand */
};

struct outcome {
    float logits[IMAGES][CLASSES];
    int64_t answers[IMAGES];
    double seconds;
    frit_stats before, after;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int complain(frit_tensor *tensor)
{
    fprintf(stderr, "%s\n", frit_tensor_error(tensor));
    return 1;
}

/* Reads a file of the data folder into memory of its size. */
static int load(frit_device *dev, const char *root, const char *name, void *out, size_t bytes)
{
    char path[4096];
    frit_tensor *tensor;
    int status;

    snprintf(path, sizeof(path), "%s/tests/data/digits/%s.npy", root, name);
    tensor = frit_load_npy(dev, path);
    status = frit_read(tensor, out, bytes, NULL) ? complain(tensor) : 0;
    frit_release(tensor);
    return status;
}

/* The default files of the inputs as tensors; binds the graph to them. */
static int feed(frit_graph *graph, frit_device *dev, frit_tensor **inputs, uint64_t *n)
{
    frit_port ports[MAX_INPUTS];
    frit_err err = {.struct_size = sizeof(err)};

    for (*n = 0; *n < MAX_INPUTS; ++*n) {
        frit_port *port = &ports[*n];

        *port = (frit_port){.struct_size = sizeof(*port)};
        if (frit_graph_input_at(graph, *n, port))
            break;
        inputs[*n] = frit_load_npy(dev, port->file);
        if (frit_tensor_status(inputs[*n]))
            return complain(inputs[*n]);
        port->dtype = frit_tensor_dtype(inputs[*n]);
        port->dims = frit_tensor_dims(inputs[*n]);
    }
    if (!frit_graph_bind(graph, ports, *n, &err))
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

static int classify(frit_graph *graph, frit_device *dev, struct outcome *out)
{
    frit_tensor *inputs[MAX_INPUTS] = {0}, *results[2] = {0};
    frit_err err = {.struct_size = sizeof(err)};
    uint64_t n;
    double start;
    int status = feed(graph, dev, inputs, &n);

    if (!status) {
        out->before = out->after = (frit_stats){.struct_size = sizeof(frit_stats)};
        frit_stats_get(dev, &out->before);
        start = now();
        status = frit_graph_run(graph, dev, inputs, n, results, 2, &err);
        if (status)
            fprintf(stderr, "%s\n", err.text);
        else if (frit_read(results[0], out->logits, sizeof(out->logits), NULL))
            status = complain(results[0]);
        else if (frit_read(results[1], out->answers, sizeof(out->answers), NULL))
            status = complain(results[1]);
        out->seconds = now() - start;
        frit_stats_get(dev, &out->after);
    }
    for (int i = 0; i < MAX_INPUTS; i++)
        frit_release(inputs[i]);
    frit_release(results[0]);
    frit_release(results[1]);
    return status ? 1 : 0;
}

/* Digits side by side, the answers below them. */
static void show(const struct truth *truth, const struct outcome *out)
{
    static const char shades[] = " .:-=+*#%@";

    putchar('\n');
    for (int row = 0; row < SIDE; row++) {
        for (int i = 0; i < SHOWN; i++) {
            fputs("  ", stdout);
            for (int column = 0; column < SIDE; column++) {
                char shade = shades[(int)(truth->images[i][row][column] * (sizeof(shades) - 2))];

                putchar(shade);
                putchar(shade);
            }
        }
        putchar('\n');
    }
    for (int i = 0; i < SHOWN; i++)
        printf("  %6s is a %-4d", "", (int)out->answers[i]);
    fputs("\n\n", stdout);
}

static unsigned long long launches(const struct outcome *out)
{
    return (unsigned long long)(out->after.launches - out->before.launches);
}

/* Prints the result; returns nonzero if it is not as it should be. */
static int judge(const struct model *model, const char *device, const struct truth *truth,
                 const struct outcome *out, const struct outcome *plain)
{
    double largest = 0;
    int right = 0, good;

    for (int i = 0; i < IMAGES; i++) {
        right += out->answers[i] == truth->labels[i];
        for (int k = 0; k < CLASSES; k++) {
            double difference = fabs((double)out->logits[i][k] - (double)truth->logits[i][k]);

            largest = difference <= largest ? largest : difference; /* also NaN */
        }
    }
    good = right == model->right && largest <= MAX_DIFFERENCE;
    printf("digits-%s on %s: %d images, %d/%d right, %.1f ms in %llu launches (op by op %.1f ms in "
           "%llu), largest logit difference %.2g%s\n",
           model->name, device, IMAGES, right, IMAGES, out->seconds * 1e3, launches(out),
           plain->seconds * 1e3, launches(plain), largest, good ? "" : "  WRONG");
    return !good;
}

/* One device, with ops run together and, in another host, one by one. */
struct pair {
    frit_device *fused, *plain;
};

/* Twice: what is compiled is compiled by then. */
static int classify_warm(frit_graph *graph, frit_device *dev, struct outcome *out)
{
    return classify(graph, dev, out) || classify(graph, dev, out);
}

static int run_model(const struct model *model, const struct pair *pair, const char *root,
                     struct truth *truth, struct outcome *out)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph = NULL;
    char path[4096], name[32];
    int status;

    snprintf(path, sizeof(path), "%s/tools/models/digits-%s.frit", root, model->name);
    snprintf(name, sizeof(name), "%s_logits", model->name);
    if (frit_graph_load(path, &graph, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    status = load(pair->fused, root, name, truth->logits, sizeof(truth->logits)) ||
             classify_warm(graph, pair->plain, &out[1]) ||
             classify_warm(graph, pair->fused, &out[0]) ||
             judge(model, frit_device_name(pair->fused), truth, &out[0], &out[1]);
    frit_graph_free(graph);
    return status;
}

enum { CHAIN_SIDE = 2048, CHAIN_BYTES = CHAIN_SIDE * CHAIN_SIDE * 4 };

/* Ten ops, as anybody would write them. */
static frit_tensor *chain(frit_tensor *x)
{
    frit_tensor *t = frit_mul_f(x, 0.5);

    for (int i = 0; i < 3; i++) {
        t = frit_add(frit_take(t), x);
        t = frit_mul_f(frit_take(t), 0.25);
        t = frit_relu(frit_take(t));
    }
    return t;
}

/* Its GB/s, reading and writing once, and launches; the second time. */
static int time_chain(frit_device *dev, double *rate, unsigned long long *n)
{
    frit_tensor *x = frit_full(dev, FRIT_F32, FRIT_SHAPE(CHAIN_SIDE, CHAIN_SIDE), 1.5), *y = NULL;
    frit_stats before = {.struct_size = sizeof(before)}, after = before;
    double seconds = 0;
    int status = 0;

    for (int i = 0; i < 2 && !status; i++) {
        status = frit_sync(dev, NULL) ? complain(x) : 0;
        frit_stats_get(dev, &before);
        seconds = now();
        frit_release(y);
        y = chain(x);
        if (!status && frit_sync(dev, NULL))
            status = complain(y);
        seconds = now() - seconds;
        frit_stats_get(dev, &after);
    }
    *rate = 2.0 * CHAIN_BYTES / seconds * 1e-9;
    *n = (unsigned long long)(after.launches - before.launches);
    frit_release(x);
    frit_release(y);
    return status;
}

static int run_chain(const struct pair *pair)
{
    unsigned long long n, n_plain;
    double rate, rate_plain;

    if (time_chain(pair->plain, &rate_plain, &n_plain) || time_chain(pair->fused, &rate, &n))
        return 1;
    printf("ten ops on %s: 16 MiB, %.2f GB/s in %llu launches (op by op %.2f GB/s in %llu)\n",
           frit_device_name(pair->fused), rate, n, rate_plain, n_plain);
    return 0;
}

static int run_device(const struct pair *pair, const char *root, int shown, struct truth *truth,
                      struct outcome *out)
{
    int status = load(pair->fused, root, "images", truth->images, sizeof(truth->images)) ||
                 load(pair->fused, root, "labels", truth->labels, sizeof(truth->labels));

    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]) && !status; i++) {
        status = run_model(&models[i], pair, root, truth, out);
        if (!status && !shown && i == 0)
            show(truth, out);
    }
    return status || run_chain(pair);
}

static int run_all(frit_host *host, frit_host *plain, const char *root, struct truth *truth,
                   struct outcome *out)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_device_desc desc = {.struct_size = sizeof(desc)};
    int status = 0, devices = 0;

    for (uint64_t i = 0; frit_device_info_at(host, i, &desc) == FRIT_OK; i++) {
        struct pair pair = {0};

        if (desc.reason) {
            printf("%s is not usable: see `frit doctor why %s`\n", desc.name, desc.name);
        } else if (frit_device_open(host, desc.name, &pair.fused, &err) ||
                   frit_device_open(plain, desc.name, &pair.plain, &err)) {
            fprintf(stderr, "%s\n", err.text);
            status = 1;
        } else {
            status |= run_device(&pair, root, devices++, truth, out);
        }
        frit_device_close(pair.plain);
        frit_device_close(pair.fused);
    }
    if (devices == 0) {
        fprintf(stderr, "no device was found; see `frit devices`\n");
        status = 1;
    }
    return status;
}

static int open_hosts(frit_host **host, frit_host **plain)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const frit_setting off[] = {{"fusion", "enabled", "no"}, {"fusion", "compile", "wait"}};
    static const frit_setting on[] = {{"fusion", "compile", "wait"}};
    const frit_host_params with = {.struct_size = sizeof(with), .settings = on, .n_settings = 1};
    const frit_host_params without = {
        .struct_size = sizeof(without), .settings = off, .n_settings = 2};

    if (!frit_host_open(&with, host, &err) && !frit_host_open(&without, plain, &err))
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}

int main(int argc, char **argv)
{
    struct truth *truth = calloc(1, sizeof(*truth));
    struct outcome *out = calloc(2, sizeof(*out));
    frit_host *host = NULL, *plain = NULL;
    int status = 1;

    if (argc > 2)
        fprintf(stderr, "usage: %s [ROOT]\n", argv[0]);
    else if (!truth || !out)
        fprintf(stderr, "no memory\n");
    else if (!open_hosts(&host, &plain))
        status = run_all(host, plain, argc > 1 ? argv[1] : ".", truth, out);
    frit_host_close(plain);
    frit_host_close(host);
    free(out);
    free(truth);
    return status;
}
