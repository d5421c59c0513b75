/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of training costs, with the networks of tools/examples/train: Adam, batches of 64
 * images that are always the same, made before the clock starts; each step reads its loss.
 *
 *   train DEVICE cnn|mlp [STEPS] [SECTION KEY VALUE]...     default: 200
 *
 * Prints a JSON object: the median over the steps, after as many to warm up; launches and plans are
 * counts a step, driver_allocs and plan_misses are of all measured steps. */
#include "train/trainer.h"
#include <frit/inspect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64, MAX_SETTINGS = 8, MAX_STEPS = 100000 };

struct bench {
    frit_host *host;
    frit_device *device;
    struct data data;
    struct trainer trainer;
    float pixels[BATCH * PIXELS];
    int32_t labels[BATCH];
    float loss;
    frit_err err;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static frit_status bench_open(struct bench *b, const char *device, const char *network,
                              const frit_setting *settings, uint64_t n_settings)
{
    static const struct draw unchanged;
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = n_settings};
    const frit_optimizer_config config = frit_adam_config(1e-3);
    uint32_t which[BATCH];
    frit_status st = frit_host_open(&params, &b->host, &b->err);

    if (!st)
        st = frit_device_open(b->host, device, &b->device, &b->err);
    if (!st)
        st = data_load(&b->data, b->device, ".", 0, &b->err);
    if (!st)
        st = trainer_open(&b->trainer, b->host, network_named(network), &b->device, 1, 1, 1,
                          &config, &b->err);
    for (uint32_t i = 0; i < BATCH; i++)
        which[i] = i;
    data_batch(&b->data.train, which, BATCH, &unchanged, b->pixels, b->labels);
    return st;
}

static void bench_close(struct bench *b)
{
    trainer_close(&b->trainer);
    frit_device_close(b->device);
    frit_host_close(b->host);
}

static frit_status step(struct bench *b)
{
    frit_tensor *loss = NULL;
    frit_status st = trainer_step(&b->trainer, b->pixels, b->labels, BATCH, &loss, &b->err);

    if (!st)
        st = frit_read(loss, &b->loss, sizeof(b->loss), &b->err);
    frit_release(loss);
    return st;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* `before`: the counters at the first measured step. */
static void print(const struct bench *b, const char *network, uint32_t steps, const double *taken,
                  double first, const frit_stats *before)
{
    frit_stats after = {.struct_size = sizeof(after)};

    frit_stats_get(b->device, &after);
    printf("{\"network\": \"%s\", \"device\": \"%s\", \"first_s\": %.4f, \"warm_us\": %.1f, "
           "\"least_us\": %.1f, \"launches\": %.2f, \"plans\": %.2f, \"plan_misses\": %llu, "
           "\"driver_allocs\": %llu, \"loss\": %.6g}\n",
           network, frit_device_name(b->device), first, taken[steps / 2] * 1e6, taken[0] * 1e6,
           (double)(after.launches - before->launches) / steps,
           (double)(after.plan_hits - before->plan_hits) / steps,
           (unsigned long long)(after.plan_misses - before->plan_misses),
           (unsigned long long)(after.driver_allocs - before->driver_allocs), (double)b->loss);
}

static frit_status measure(struct bench *b, const char *network, uint32_t steps, double *taken)
{
    frit_stats before = {.struct_size = sizeof(before)};
    const double begun = now();
    frit_status st = step(b);
    const double first = now() - begun;

    for (uint32_t i = 0; i < 2 * steps && !st; i++) {
        double start;

        if (i == steps)
            frit_stats_get(b->device, &before);
        start = now();
        st = step(b);
        taken[i % steps] = now() - start;
    }
    if (st)
        return st;
    qsort(taken, steps, sizeof(*taken), by_size);
    print(b, network, steps, taken, first, &before);
    return FRIT_OK;
}

int main(int argc, char **argv)
{
    frit_setting settings[MAX_SETTINGS];
    uint64_t n_settings = 0;
    const long steps = argc > 3 ? atol(argv[3]) : 200;
    struct bench *b = calloc(1, sizeof(*b));
    double *taken = calloc(MAX_STEPS, sizeof(*taken));
    int status = 1;

    for (int i = 4; i + 2 < argc && n_settings < MAX_SETTINGS; i += 3)
        settings[n_settings++] = (frit_setting){argv[i], argv[i + 1], argv[i + 2]};
    if (argc < 3 || !network_named(argv[2]) || steps < 1 || steps > MAX_STEPS) {
        fprintf(stderr, "usage: train DEVICE cnn|mlp [STEPS] [SECTION KEY VALUE]...\n");
        status = 2;
    } else if (b && taken) {
        b->err.struct_size = sizeof(b->err);
        if (bench_open(b, argv[1], argv[2], settings, n_settings) ||
            measure(b, argv[2], (uint32_t)steps, taken))
            fprintf(stderr, "train: %s\n", b->err.text);
        else
            status = 0;
        bench_close(b);
    }
    free(taken);
    free(b);
    return status;
}
