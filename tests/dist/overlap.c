/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "rig.h"
#include "scenarios.h"

enum { ROUNDS = 9, LAUNCHES = 8 /* of a layer */ };

struct pass {
    struct rank *rank;
    void *kernel, *stream;
    uint64_t memory;
    uint32_t n_layers, rounds;
    uint64_t count; /* elements of a layer's gradients */
};

static void compute(const struct pass *p)
{
    for (int i = 0; i < LAUNCHES; i++)
        device_spin(&p->rank->device, p->kernel, p->stream, p->memory, p->rounds);
}

/* A backward pass: each layer computes, then its gradients are summed behind it. */
static double step_ms(const struct pass *p, bool computes, bool sums)
{
    uint64_t begun, value = 0;

    meet();
    begun = now_ns();
    for (uint32_t layer = 0; layer < p->n_layers; layer++) {
        if (computes)
            compute(p);
        if (sums)
            value = begin_reduce(p->rank, p->memory + layer * p->count * 4, p->count,
                                 computes ? p->stream : NULL);
    }
    if (sums)
        CHECK(p->rank, value && wait_for(p->rank, value) == FRIT_OK);
    device_synchronize(p->stream);
    return (double)(now_ns() - begun) / 1e6;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_ms(const struct pass *p, bool computes, bool sums)
{
    double times[ROUNDS];

    for (int i = -2; i < ROUNDS; i++) {
        const double ms = step_ms(p, computes, sums);

        if (i >= 0)
            times[i] = ms;
    }
    qsort(times, ROUNDS, sizeof *times, by_value);
    return times[ROUNDS / 2];
}

/* All ranks compute as long as rank 0 finds that the sums take. */
static void match_times(struct pass *p)
{
    double sums, computes;

    p->rounds = 20000;
    sums = median_ms(p, false, true);
    computes = median_ms(p, true, false);
    if (p->rank->number == 0)
        shared->numbers[0][0] = sums / computes * p->rounds;
    meet();
    p->rounds = (uint32_t)shared->numbers[0][0];
}

static void print_overlap(struct pass *p)
{
    double computes, sums, both, least, overlap;

    match_times(p);
    computes = median_ms(p, true, false);
    sums = median_ms(p, false, true);
    both = median_ms(p, true, true);
    least = computes < sums ? computes : sums;
    overlap = (computes + sums - both) / least;
    if (p->rank->number == 0)
        report(overlap >= 0.8,
               "%u layers of %.0f MiB: compute %.3f ms, sums %.3f ms, together %.3f ms: overlap "
               "%.2f",
               p->n_layers, (double)p->count * 4 / (1 << 20), computes, sums, both, overlap);
}

static void all(struct rank *rank)
{
    struct pass p = {.rank = rank,
                     .kernel = device_spin_kernel(),
                     .stream = device_new_stream(),
                     .memory = device_alloc(16ull * 64 << 20)};
    static const uint32_t layers[] = {4, 16, 16};
    static const uint64_t mib[] = {25, 25, 64};
    const char *file = setting("GPUS_TIMELINE");

    if (!CHECK(rank, join(rank, 1, rank->number, rank->size, 60000000000u) == FRIT_OK))
        return;
    for (int i = 0; i < 3; i++) {
        p.n_layers = layers[i];
        p.count = (mib[i] << 20) / 4;
        print_overlap(&p);
    }
    if (rank->number == 0 && *file)
        record_spans(file);
    (void)step_ms(&p, true, true);
    write_spans(rank);
    leave(rank);
}

void overlap_run(uint32_t n)
{
    if (!run_ranks(n, true, all, NULL))
        report(false, "overlap");
}
