/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the reduction of gradients hides behind the backward pass.
 *
 *   replicas DEVICE,DEVICE.. [layers=6] [width=1024] [batch=256] [bucket=26214400] [steps=20]
 * [engine=ID]
 *
 * A rank per device, each a thread: a network of equal layers with relu, mean of squares, SGD.
 * Prints a JSON object with medians of rank 0 in milliseconds: a step without reduction, the
 * reduction of the same gradients by itself, the step with both, and overlap = (compute + reduce -
 * step) / min(compute, reduce).  FRIT_TIMELINE=FILE shows which operations ran beside which
 * submits. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frit/dist.h>
#include <frit/grad.h>
#include <frit/train.h>

enum { MAX_RANKS = 8, MAX_LAYERS = 64, MAX_STEPS = 1000, WARM = 5 };

struct bench {
    const char *devices[MAX_RANKS];
    const char *engine;
    uint32_t n_ranks;
    int64_t layers, width, batch, bucket, steps;
    frit_host *host;
    frit_group_id id;
    pthread_barrier_t all;
    double compute[MAX_STEPS], reduce[MAX_STEPS], step[MAX_STEPS];
};

struct member {
    struct bench *bench;
    uint32_t number;
    frit_device *device;
    frit_rank *rank;
    frit_replica *replica;
    frit_optimizer *optimizer;
    frit_tensor *params[MAX_LAYERS], *x;
    frit_err err;
    pthread_t thread;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void must(const struct member *member, const char *what, frit_status st)
{
    if (!st)
        return;
    fprintf(stderr, "rank %u: %s: %s\n", member->number, what, member->err.text);
    exit(EXIT_FAILURE);
}

static void join(struct member *m)
{
    const struct bench *b = m->bench;
    const frit_group_config config = {.struct_size = sizeof(config),
                                      .engine = b->engine,
                                      .id = &b->id,
                                      .rank = m->number,
                                      .size = b->n_ranks};
    const frit_replica_config replica = {.struct_size = sizeof(replica),
                                         .bucket_bytes = (uint64_t)b->bucket};
    const frit_optimizer_config sgd = frit_sgd_config(1e-4);
    const frit_dims square = FRIT_SHAPE(b->width, b->width), rows = FRIT_SHAPE(b->batch, b->width);
    const uint64_t n = (uint64_t)b->layers;

    must(m, "device", frit_device_open(b->host, b->devices[m->number], &m->device, &m->err));
    must(m, "join", frit_group_join(m->device, &config, &m->rank, &m->err));
    m->x = frit_random_uniform(m->device, FRIT_F32, rows, -1, 1);
    for (uint64_t i = 0; i < n; i++)
        m->params[i] = frit_random_uniform(m->device, FRIT_F32, square, -.05, .05);
    must(m, "replica", frit_replica_create(m->rank, &replica, m->params, n, &m->replica, &m->err));
    must(m, "optimizer", frit_optimizer_create(&sgd, m->params, n, &m->optimizer, &m->err));
}

static frit_tensor *loss_of(const struct member *m)
{
    frit_tensor *y = m->x;

    for (int64_t i = 0; i < m->bench->layers; i++)
        y = frit_relu(frit_matmul(y, m->params[i]));
    return frit_mean(frit_square(y));
}

/* Seconds of a step, all ranks at once. */
static double step(struct member *m, uint32_t mode)
{
    frit_scope scope;
    double begun;

    pthread_barrier_wait(&m->bench->all);
    begun = now();
    scope = frit_scope_begin(m->device);
    must(m, "grad", frit_grad_begin(m->device, &m->err));
    for (int64_t i = 0; i < m->bench->layers; i++)
        must(m, "watch", frit_grad_watch(m->params[i], &m->err));
    must(m, "backward", frit_replica_backward(m->replica, m->params, loss_of(m), mode, &m->err));
    must(m, "step", frit_optimizer_step(m->optimizer, m->params, NULL, &m->err));
    frit_grad_end(m->device);
    frit_scope_end(scope);
    must(m, "sync", frit_sync(m->device, &m->err));
    return now() - begun;
}

/* Of gradients that are there. */
static double reduce(struct member *m)
{
    frit_tensor *grads[MAX_LAYERS];
    double begun;

    for (int64_t i = 0; i < m->bench->layers; i++)
        grads[i] = frit_copy(m->params[i]);
    must(m, "sync", frit_sync(m->device, &m->err));
    pthread_barrier_wait(&m->bench->all);
    begun = now();
    must(m, "reduce", frit_replica_reduce(m->replica, grads, &m->err));
    must(m, "sync", frit_sync(m->device, &m->err));
    begun = now() - begun;
    for (int64_t i = 0; i < m->bench->layers; i++)
        frit_release(grads[i]);
    return begun;
}

static void *run(void *arg)
{
    struct member *m = arg;
    struct bench *b = m->bench;

    m->err.struct_size = sizeof(m->err);
    join(m);
    for (int64_t i = -WARM; i < b->steps; i++) {
        const double compute = step(m, FRIT_REPLICA_LOCAL), alone = reduce(m),
                     both = step(m, FRIT_REPLICA_SYNC);

        if (m->number == 0 && i >= 0) {
            b->compute[i] = compute;
            b->reduce[i] = alone;
            b->step[i] = both;
        }
    }
    frit_optimizer_destroy(m->optimizer);
    frit_replica_destroy(m->replica);
    must(m, "leave", frit_group_leave(m->rank, &m->err));
    for (int64_t i = 0; i < b->layers; i++)
        frit_release(m->params[i]);
    frit_release(m->x);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return values[n / 2];
}

static void print(struct bench *b)
{
    const double compute = median(b->compute, b->steps), alone = median(b->reduce, b->steps);
    const double both = median(b->step, b->steps), less = compute < alone ? compute : alone;

    printf("{\"ranks\": %u, \"gradient_mib\": %.1f, \"compute_ms\": %.3f, \"reduce_ms\": %.3f, "
           "\"step_ms\": %.3f, \"overlap\": %.2f}\n",
           b->n_ranks, (double)(b->layers * b->width * b->width * 4) / (1 << 20), compute * 1e3,
           alone * 1e3, both * 1e3, (compute + alone - both) / less);
}

static bool read_number(const char *arg, const char *name, int64_t most, int64_t *out)
{
    const size_t n = strlen(name);

    if (strncmp(arg, name, n) != 0 || arg[n] != '=')
        return false;
    *out = atoll(arg + n + 1);
    if (*out >= 1 && *out <= most)
        return true;
    fprintf(stderr, "replicas: %s is 1..%lld\n", name, (long long)most);
    exit(2);
}

static void read_arg(struct bench *b, const char *arg)
{
    if (read_number(arg, "layers", MAX_LAYERS, &b->layers) ||
        read_number(arg, "width", 1 << 16, &b->width) ||
        read_number(arg, "batch", 1 << 20, &b->batch) ||
        read_number(arg, "bucket", INT64_MAX, &b->bucket) ||
        read_number(arg, "steps", MAX_STEPS, &b->steps))
        return;
    if (strncmp(arg, "engine=", 7) == 0) {
        b->engine = arg + 7;
    } else {
        fprintf(stderr, "replicas: no argument %s\n", arg);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct bench b = {
        .layers = 6, .width = 1024, .batch = 256, .bucket = 25 << 20, .steps = 20};
    const frit_host_params params = {.struct_size = sizeof(params)};
    static struct member members[MAX_RANKS];
    frit_err err = {.struct_size = sizeof(err)};

    if (argc < 2) {
        fprintf(stderr, "usage: replicas DEVICE,DEVICE.. [NAME=VALUE].., see its first lines\n");
        return 2;
    }
    for (char *name = strtok(argv[1], ","); name && b.n_ranks < MAX_RANKS; name = strtok(NULL, ","))
        b.devices[b.n_ranks++] = name;
    for (int i = 2; i < argc; i++)
        read_arg(&b, argv[i]);
    if (frit_host_open(&params, &b.host, &err) ||
        frit_group_id_create(b.host, b.engine, &b.id, &err)) {
        fprintf(stderr, "replicas: %s\n", err.text);
        return EXIT_FAILURE;
    }
    pthread_barrier_init(&b.all, NULL, b.n_ranks);
    for (uint32_t i = 0; i < b.n_ranks; i++) {
        members[i].bench = &b;
        members[i].number = i;
        pthread_create(&members[i].thread, NULL, run, &members[i]);
    }
    for (uint32_t i = 0; i < b.n_ranks; i++)
        pthread_join(members[i].thread, NULL);
    for (uint32_t i = 0; i < b.n_ranks; i++)
        frit_device_close(members[i].device);
    pthread_barrier_destroy(&b.all);
    frit_host_close(b.host);
    print(&b);
    return 0;
}
