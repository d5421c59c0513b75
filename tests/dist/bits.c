/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "scenarios.h"

enum { N_COUNTS = 4, DTYPES = 3 };

static const uint64_t counts[N_COUNTS] = {1, 1000, 1000003, 6553600};
static const uint32_t dtypes[DTYPES] = {FRIT_F32, FRIT_F16, FRIT_BF16};
static const uint32_t dtype_bytes[DTYPES] = {4, 2, 2};

/* FNV-1a over words. */
static uint64_t hash_of(const uint32_t *words, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ words[i]) * 0x100000001b3;
    return hash;
}

/* Values whose sums depend on their order: exponents near that of 1. */
static void fill(uint32_t *words, size_t n, uint32_t rank, uint32_t dtype)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t random = (uint32_t)(i * 2654435761u) ^ (rank + 1) * 0x9e3779b9u;
        const uint32_t mixed = random ^ random >> 15;

        words[i] = dtype == FRIT_F32   ? 0x3e000000u | (mixed & 0x81ffffffu)
                   : dtype == FRIT_F16 ? 0x30003000u | (mixed & 0x87ff87ffu)
                                       : 0x3e003e00u | (mixed & 0x81ff81ffu);
    }
}

static void reduce(struct rank *rank, uint64_t memory, uint32_t type, uint64_t count, int mean,
                   uint64_t *hash)
{
    const size_t n = (size_t)(count * dtype_bytes[type] + 3) / 4;
    uint32_t *words = calloc(n, sizeof *words);
    void *at = (void *)(uintptr_t)memory;
    const frit_collective_buffer buffer = {at, at, count, dtypes[type], 0};
    const frit_collective_op op = {.struct_size = sizeof op,
                                   .kind = FRIT_COLLECTIVE_ALL_REDUCE,
                                   .combine =
                                       mean ? FRIT_CHOICE_combine_mean : FRIT_CHOICE_combine_sum,
                                   .n_buffers = 1,
                                   .buffer_stride = sizeof buffer,
                                   .buffers = &buffer};
    uint64_t value;

    fill(words, n, rank->number, dtypes[type]);
    device_write(&rank->device, memory, words, n * 4);
    value = begin_buffers(rank, &op);
    CHECK(rank, value && wait_for(rank, value) == FRIT_OK);
    device_read(&rank->device, words, memory, n * 4);
    if (count * dtype_bytes[type] % 4) /* the other half of the last word was not reduced */
        words[n - 1] &= 0xffff;
    *hash = hash_of(words, n);
    free(words);
}

static void all(struct rank *rank)
{
    const uint64_t memory = device_alloc(counts[N_COUNTS - 1] * 4);
    uint32_t i = 0;

    if (!CHECK(rank, join(rank, 1, rank->number, rank->size, 60000000000u) == FRIT_OK))
        return;
    for (uint32_t type = 0; type < DTYPES; type++)
        for (uint32_t c = 0; c < N_COUNTS; c++)
            for (int mean = 0; mean < 2; mean++)
                reduce(rank, memory, type, scaled(counts[c]), mean,
                       &shared->hashes[rank->number][i++]);
    leave(rank);
    device_free(memory);
}

static bool all_ranks_agree(uint32_t n)
{
    for (uint32_t r = 1; r < n; r++) {
        if (memcmp(shared->hashes[r], shared->hashes[0], sizeof shared->hashes[0]) != 0)
            return false;
    }
    return true;
}

static void twice(struct rank *rank)
{
    frit_status status;

    if (rank->number == 1)
        device_open(&rank->device, 0);
    status = join(rank, 1, rank->number, rank->size, 20000000000u);
    CHECK(rank, status == FRIT_INVALID && strstr(rank->err.text, "are on one device"));
}

void bits_run(uint32_t n)
{
    uint64_t threads[N_NUMBERS];
    bool runs = run_ranks(n, true, all, NULL), is_equal;

    report(runs && all_ranks_agree(n),
           "%u threads: all ranks have the same bits (%d sums and means)", n,
           2 * N_COUNTS * DTYPES);
    memcpy(threads, shared->hashes[0], sizeof threads);
    runs = run_ranks(n, false, all, NULL);
    is_equal = memcmp(threads, shared->hashes[0], sizeof threads) == 0;
    report(runs && all_ranks_agree(n) && is_equal, "%u processes: the same bits as threads", n);
    report(run_ranks(2, true, twice, NULL), "one device as two ranks is refused, threads");
    report(run_ranks(2, false, twice, NULL), "one device as two ranks is refused, processes");
}
