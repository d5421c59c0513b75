/* SPDX-License-Identifier: Apache-2.0 */
/* collective [MiB [ROUNDS [DTYPE [mean]]]]: all_reduce of two ranks by collective-local, in place,
 * in turn with a plain loop of the same two threads that adds two arrays of f32 and writes the sum,
 * or mean, to both. Prints the medians, bytes of one rank per second, and their ratio. */
#include <stdio.h>
#include <string.h>

#include "plugins/collective/world.h"

enum { RANKS = 2, WARM = 3, MAX_ROUNDS = 1000 };

struct bench {
    uint32_t dtype, combine;
    uint64_t bytes; /* of a rank */
    int rounds;
    char *data[RANKS];
    double engine[MAX_ROUNDS], loop[MAX_ROUNDS]; /* seconds */
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void add(float *restrict a, float *restrict b, uint64_t count, float scale)
{
    for (uint64_t i = 0; i < count; i++) {
        const float sum = (a[i] + b[i]) * scale;

        a[i] = sum;
        b[i] = sum;
    }
}

static void run_loop(struct rank *rank)
{
    const struct bench *bench = rank->arg;
    const uint64_t half = bench->bytes / sizeof(float) / RANKS, at = half * rank->number;

    add((float *)(void *)bench->data[0] + at, (float *)(void *)bench->data[1] + at, half,
        bench->combine == FRIT_CHOICE_combine_mean ? 0.5f : 1);
}

static void run_engine(struct rank *rank)
{
    const struct bench *bench = rank->arg;
    char *data = bench->data[rank->number];
    const uint64_t count = bench->bytes / frit_storage_bytes(bench->dtype, 1);

    CHECK(rank, rank_wait(rank, rank_begin(rank, FRIT_COLLECTIVE_ALL_REDUCE, bench->combine,
                                           bench->dtype, data, data, count)) == FRIT_OK);
}

/* Seconds that both ranks need together. */
static double measure(struct rank *rank, void (*run)(struct rank *rank))
{
    double begun;

    pthread_barrier_wait(&rank->world->all);
    begun = now();
    run(rank);
    pthread_barrier_wait(&rank->world->all);
    return now() - begun;
}

static void run_rounds(struct rank *rank)
{
    struct bench *bench = rank->arg;

    for (int i = -WARM; i < bench->rounds; i++) {
        const double engine = measure(rank, run_engine), loop = measure(rank, run_loop);

        if (rank->number == 0 && i >= 0) {
            bench->engine[i] = engine;
            bench->loop[i] = loop;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof(*times), compare);
    return times[n / 2];
}

static uint32_t dtype_named(const char *name)
{
    return strcmp(name, "f16") == 0 ? FRIT_F16 : strcmp(name, "bf16") == 0 ? FRIT_BF16 : FRIT_F32;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    double engine, loop;

    bench.bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 25) << 20;
    bench.rounds = argc > 2 ? atoi(argv[2]) : 41;
    bench.dtype = dtype_named(argc > 3 ? argv[3] : "f32");
    bench.combine = argc > 4 ? FRIT_CHOICE_combine_mean : FRIT_CHOICE_combine_sum;
    if (!bench.bytes || bench.rounds < 1 || bench.rounds > MAX_ROUNDS)
        return 2;
    for (int r = 0; r < RANKS; r++) {
        bench.data[r] = malloc(bench.bytes);
        if (!bench.data[r])
            return 1;
        memset(bench.data[r], 0, bench.bytes);
    }
    run_alone(RANKS, run_rounds, &bench);
    engine = median(bench.engine, bench.rounds);
    loop = median(bench.loop, bench.rounds);
    printf("all_reduce of %llu MiB, 2 ranks: %.2f ms, %.2f GB/s; the plain loop in f32: %.2f ms; "
           "ratio %.2f\n",
           (unsigned long long)(bench.bytes >> 20), engine * 1e3,
           (double)bench.bytes / engine * 1e-9, loop * 1e3, loop / engine);
    free(bench.data[0]);
    free(bench.data[1]);
    return 0;
}
