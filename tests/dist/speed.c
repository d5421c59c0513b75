/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"
#include "rig.h"
#include "scenarios.h"

enum { ROUNDS = 9, MAX_TENSORS = 200, MIB = 1 << 20 };

static const uint64_t sizes[] = {65536, MIB, 4 * MIB, 25 * MIB, 64 * MIB, 256ull * MIB};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* ---- the gradients of ResNet-50, the last layer first ---- */

struct tensors {
    uint32_t n;
    uint64_t count[MAX_TENSORS], total;
};

static void add(struct tensors *t, uint64_t count)
{
    t->count[t->n++] = count;
    t->total += count;
}

static void add_convolution(struct tensors *t, uint64_t out, uint64_t in, uint64_t window)
{
    add(t, out * in * window);
    add(t, out); /* of the normalisation behind it: scale, shift */
    add(t, out);
}

static struct tensors resnet50(void)
{
    static const uint32_t blocks[] = {3, 4, 6, 3};
    struct tensors forward = {0}, t = {0};
    uint64_t in = 64;

    add_convolution(&forward, 64, 3, 49);
    for (uint32_t stage = 0; stage < 4; stage++) {
        const uint64_t width = 64u << stage;

        for (uint32_t block = 0; block < blocks[stage]; block++) {
            add_convolution(&forward, width, in, 1);
            add_convolution(&forward, width, width, 9);
            add_convolution(&forward, 4 * width, width, 1);
            if (block == 0)
                add_convolution(&forward, 4 * width, in, 1);
            in = 4 * width;
        }
    }
    add(&forward, 1000 * 2048);
    add(&forward, 1000);
    for (uint32_t i = forward.n; i-- > 0;)
        add(&t, forward.count[i]);
    return t;
}

/* Neighbours together, at most `bytes` in one if they fit. */
static struct tensors in_buckets(const struct tensors *t, uint64_t bytes)
{
    struct tensors buckets = {0};

    for (uint32_t i = 0; i < t->n; i++) {
        uint64_t *last = buckets.n ? &buckets.count[buckets.n - 1] : NULL;

        if (last && (*last + t->count[i]) * 4 <= bytes) {
            *last += t->count[i];
            buckets.total += t->count[i];
        } else {
            add(&buckets, t->count[i]);
        }
    }
    return buckets;
}

/* ---- measuring ---- */

struct bench {
    struct rank *rank;
    struct plain plain;
    uint64_t memory;
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static void engine_step(const struct bench *b, const struct tensors *t, bool as_one)
{
    static _Thread_local frit_collective_buffer buffers[MAX_TENSORS];
    uint64_t at = b->memory, value = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        void *memory = (void *)(uintptr_t)at;

        buffers[i] = (frit_collective_buffer){memory, memory, t->count[i], FRIT_F32, 0};
        if (!as_one)
            value = begin_reduce(b->rank, at, t->count[i], NULL);
        at += 4 * t->count[i];
    }
    if (as_one)
        value =
            begin_buffers(b->rank, &(frit_collective_op){.struct_size = sizeof(frit_collective_op),
                                                         .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                                         .n_buffers = t->n,
                                                         .buffer_stride = sizeof *buffers,
                                                         .buffers = buffers});
    CHECK(b->rank, value && wait_for(b->rank, value) == FRIT_OK);
}

static void plain_step(const struct bench *b, const struct tensors *t, bool as_one)
{
    uint64_t at = b->memory;

    if (as_one)
        plain_begin_group();
    for (uint32_t i = 0; i < t->n; i++) {
        plain_reduce(&b->plain, at, t->count[i]);
        at += 4 * t->count[i];
    }
    if (as_one)
        plain_end_group();
    plain_wait(&b->plain);
}

/* Median times in ms of a step by the engine and by plain calls, one after the other; the slowest
 * rank counts, which is about the same for all. */
static void measure(const struct bench *b, const struct tensors *t, bool as_one, double out[2])
{
    double times[2][ROUNDS];

    for (int round = -2; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            uint64_t begun;

            meet();
            begun = now_ns();
            (i ? plain_step : engine_step)(b, t, as_one);
            if (round >= 0)
                times[i][round] = (double)(now_ns() - begun) / 1e6;
        }
    }
    for (int i = 0; i < 2; i++)
        out[i] = median(times[i], ROUNDS);
}

/* Many of one size in a row. */
static struct tensors repeated(uint64_t bytes)
{
    struct tensors t = {0};
    const uint32_t n = bytes >= 64 * MIB ? 5 : 20;

    for (uint32_t i = 0; i < n; i++)
        add(&t, scaled(bytes / 4));
    return t;
}

static void print_sizes(const struct bench *b)
{
    const double factor = 2.0 * (b->rank->size - 1) / b->rank->size;

    for (int s = 0; s < N_SIZES; s++) {
        const struct tensors t = repeated(sizes[s]);
        const double bytes = (double)t.total * 4 * factor;
        double ms[2];

        measure(b, &t, false, ms);
        if (b->rank->number == 0)
            report(true,
                   "all_reduce of %6.2f MiB: %8.1f us each, busbw %6.1f GB/s; plain NCCL %8.1f us, "
                   "%6.1f GB/s; ratio %.3f",
                   (double)t.count[0] * 4 / MIB, ms[0] * 1e3 / t.n, bytes / ms[0] / 1e6,
                   ms[1] * 1e3 / t.n, bytes / ms[1] / 1e6, ms[1] / ms[0]);
    }
}

static double print_step(const struct bench *b, const char *name, const struct tensors *t,
                         bool as_one, double limit_ms)
{
    double ms[2];

    measure(b, t, as_one, ms);
    if (b->rank->number == 0)
        report(limit_ms == 0 || ms[0] <= limit_ms,
               "ResNet-50, %s: %3u operations, %6.3f ms; plain NCCL %6.3f ms; ratio %.3f", name,
               as_one ? 1 : t->n, ms[0], ms[1], ms[1] / ms[0]);
    return ms[0];
}

static void print_buckets(const struct bench *b, const struct tensors *t)
{
    static const uint32_t mib[] = {1, 4, 25, 100};
    double best = 0, usual = 0;
    char name[32];

    for (int i = 0; i < 4; i++) {
        const struct tensors buckets = in_buckets(t, (uint64_t)mib[i] * MIB);
        double ms;

        snprintf(name, sizeof name, "buckets of %u MiB", mib[i]);
        ms = print_step(b, name, &buckets, false, mib[i] == 25 ? 0.70 : 0);
        best = i == 0 || ms < best ? ms : best;
        usual = mib[i] == 25 ? ms : usual;
    }
    if (b->rank->number == 0)
        report(usual <= 1.3 * best, "buckets of 25 MiB take %.2f times as long as the best size",
               usual / best);
}

static void all(struct rank *rank)
{
    struct tensors t = resnet50();
    struct bench b = {.rank = rank, .memory = device_alloc(scaled(5 * 64ull * MIB) * 4)};

    if (!CHECK(rank, t.n == 161) || !CHECK(rank, t.total == 25557032) ||
        !CHECK(rank, join(rank, 1, rank->number, rank->size, 60000000000u) == FRIT_OK))
        return;
    plain_open(&b.plain, rank);
    if (rank->number == 0)
        report(true, "%u x %s, NCCL %s, ranks are threads", rank->size, rank->device.name,
               plain_version());
    print_sizes(&b);
    for (uint32_t i = 0; i < t.n; i++)
        t.count[i] = scaled(t.count[i]);
    (void)print_step(&b, "each by itself", &t, false, 0);
    (void)print_step(&b, "all as one", &t, true, 0);
    print_buckets(&b, &t);
    leave(rank);
}

void speed_run(uint32_t n)
{
    if (!run_ranks(n, true, all, NULL))
        report(false, "speed");
}
