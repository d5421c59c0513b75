/* SPDX-License-Identifier: Apache-2.0 */
/* What launches derive from operands, by option.derive: which bytes hold something derived from
 * which operand, in the order in which commands are submitted.  A launch that is to find its
 * derived memory valid is refused where that was not filled, or where a write came between. */
#include <stdlib.h>

#include "null.h"

struct bytes {
    const frit_memory *memory;
    uint64_t first, end;
};

struct record {
    struct bytes at, of; /* derived, operand */
    uint64_t content, tag;
};

static bool meet(const struct bytes *a, const struct bytes *b)
{
    return a->memory == b->memory && a->first < b->end && b->first < a->end;
}

/* ---- inside the lock ---- */

static void forget(struct derivations *all, const struct bytes *written)
{
    for (uint64_t i = 0; i < all->n; i++) {
        struct record *record = &all->list[i];

        if (meet(&record->at, written) || meet(&record->of, written))
            all->list[i--] = all->list[--all->n];
    }
}

static bool add(struct derivations *all, const struct record *record)
{
    if (all->n == all->capacity) {
        uint64_t wanted = all->capacity ? 2 * all->capacity : 16;
        struct record *list = realloc(all->list, wanted * sizeof *list);

        if (!list)
            return false;
        all->list = list;
        all->capacity = wanted;
    }
    all->list[all->n++] = *record;
    return true;
}

static bool is_valid(const struct derivations *all, const struct record *wanted)
{
    for (uint64_t i = 0; i < all->n; i++) {
        const struct record *record = &all->list[i];

        if (record->at.memory == wanted->at.memory && record->at.first == wanted->at.first &&
            record->at.end == wanted->at.end && record->content == wanted->content &&
            record->tag == wanted->tag)
            return record->of.memory == wanted->of.memory && record->of.first == wanted->of.first &&
                   record->of.end == wanted->of.end;
    }
    return false;
}

/* ---- launches ---- */

static struct bytes bytes_of(const frit_arg *arg)
{
    return (struct bytes){arg->memory, arg->offset, arg->offset + arg->extent};
}

static frit_status check_one(struct device *device, const frit_launch *launch, uint32_t i,
                             frit_err *err)
{
    struct derivations *all = &device->derivations;
    const frit_derived *derived = &launch->derived[i];
    const void *at = (const char *)launch->spec->derived + i * launch->spec->derived_stride;
    const frit_derived_spec *spec = at;
    const frit_arg *arg = frit_arg_at(launch, spec->arg);
    struct record record = {.at = {derived->memory, derived->offset, derived->offset + spec->bytes},
                            .of = bytes_of(arg),
                            .content = arg->content_id,
                            .tag = spec->tag};

    if (!derived->fill) {
        null_count(device->instance, NULL_COUNT_derived_hits, 1);
        if (record.content && is_valid(all, &record))
            return FRIT_OK;
        null_count(device->instance, NULL_COUNT_hazards, 1);
        return null_fail(device->instance, err, FRIT_INVALID,
                         "null: memory that is said to hold what is derived from argument %u does "
                         "not",
                         spec->arg);
    }
    null_count(device->instance, NULL_COUNT_derived_fills, 1);
    forget(all, &record.at);
    if (record.content && !add(all, &record))
        return null_fail(device->instance, err, FRIT_NO_HOST_MEMORY,
                         "null: no memory for what is derived");
    return FRIT_OK;
}

frit_status derived_check(struct device *device, const frit_launch *launch, frit_err *err)
{
    struct derivations *all = &device->derivations;
    frit_status status = FRIT_OK;

    if (!device->instance->options.derive)
        return FRIT_OK;
    pthread_mutex_lock(&all->lock);
    for (uint32_t i = 0; i < launch->n_derived && !status; i++)
        status = check_one(device, launch, i, err);
    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);
        struct bytes written = bytes_of(arg);

        if (arg->flags & FRIT_ARG_WRITE)
            forget(all, &written);
    }
    pthread_mutex_unlock(&all->lock);
    return status;
}

void derived_written(struct device *device, const frit_memory *memory, uint64_t first,
                     uint64_t bytes)
{
    const struct bytes written = {memory, first, first + bytes};

    if (!device->instance->options.derive)
        return;
    pthread_mutex_lock(&device->derivations.lock);
    forget(&device->derivations, &written);
    pthread_mutex_unlock(&device->derivations.lock);
}

/* ---- life ---- */

void derived_open(struct derivations *all)
{
    *all = (struct derivations){.n = 0};
    pthread_mutex_init(&all->lock, NULL);
}

void derived_close(struct derivations *all)
{
    pthread_mutex_destroy(&all->lock);
    free(all->list);
}
