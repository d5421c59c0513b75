/* SPDX-License-Identifier: Apache-2.0 */
#include "run/trial_sets.h"

#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/transfer.h"
#include "run/trial_run.h"

enum {
    MAX_SETS = 64,           /* as many as launches in one submit */
    MAX_BYTES = 256 << 20,   /* of all sets */
    USUAL_CACHE = 32 << 20,  /* where the device does not say */
    MAX_CACHE = 64 << 20,    /* of a larger one a processor reaches a part, as a rule */
    BYTES_PER_MS = 512 << 10 /* of the budget: an eighth of it, by 4 GB/s */
};

uint64_t trial_set_bytes(const struct launch_trial *t)
{
    uint64_t bytes = 0;

    for (uint32_t m = 0; m < t->n_memories; m++)
        bytes += t->memories[m].bytes;
    return bytes;
}

/* So many that those between two uses of a set fill the cache; 1: that cannot be, or takes long. */
static uint32_t count_sets(const struct launch_trial *t)
{
    const uint64_t bytes = trial_set_bytes(t),
                   most = t->device->config.tune.budget_ms * BYTES_PER_MS;
    uint64_t cache = t->device->info->cache_bytes, n;

    if (!cache)
        cache = USUAL_CACHE;
    if (cache > MAX_CACHE)
        cache = MAX_CACHE;
    if (!bytes || bytes >= cache)
        return 1;
    n = (cache + bytes - 1) / bytes + 1;
    return n > MAX_SETS || n * bytes > MAX_BYTES || n * bytes > most ? 1 : (uint32_t)n;
}

static bool make_copy(const struct launch_trial *t, struct memory_pair *pair, uint32_t i)
{
    return !buffer_create(t->device->memory, pair->bytes, false, &pair->copies[i], NULL) &&
           (!pair->bytes || !transfer_fill(t->device, pair->copies[i], pair->data, NULL));
}

static bool make_copies(struct launch_trial *t, uint32_t n)
{
    for (uint32_t m = 0; m < t->n_memories; m++) {
        t->memories[m].copies = arena_array(&t->arena, n, sizeof(*t->memories[m].copies));
        for (uint32_t i = 0; i < n; i++)
            if (!t->memories[m].copies || !make_copy(t, &t->memories[m], i))
                return false;
    }
    return true;
}

static void drop_copies(struct launch_trial *t, uint32_t n)
{
    for (uint32_t m = 0; m < t->n_memories; m++) {
        for (uint32_t i = 0; t->memories[m].copies && i < n; i++)
            buffer_disown(t->memories[m].copies[i]);
        t->memories[m].copies = NULL;
    }
}

void trial_rotate(struct launch_trial *trial)
{
    uint32_t n;

    if (trial->n_sets)
        return;
    n = count_sets(trial);
    if (n > 1 && !make_copies(trial, n - 1)) {
        drop_copies(trial, n - 1);
        n = 1;
    }
    trial->n_sets = n;
}

static struct buffer *buffer_of_set(const struct launch_trial *t, struct buffer *first,
                                    uint32_t set)
{
    for (uint32_t m = 0; m < t->n_memories && set; m++)
        if (t->memories[m].own == first)
            return t->memories[m].copies[set - 1];
    return first;
}

void trial_next_set(struct launch_trial *trial)
{
    const uint32_t set = trial->next_set++ % trial->n_sets;

    for (uint32_t v = 0; v < trial->graph.n_values && trial->n_sets > 1; v++)
        if (trial->graph.values[v].kind == GRAPH_INPUT)
            trial->values[v].value.buffer = buffer_of_set(trial, trial->given[v].buffer, set);
}
