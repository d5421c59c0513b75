/* SPDX-License-Identifier: Apache-2.0 */
/* A limit must not be lower than what a candidate can reach, or the search would end too early.
 * Hence: the operands of these launches stay the same, so that caches help them and not those of
 * the trials; all candidates that the configuration allows are measured; a limit whose candidates
 * were not all measured is none; and a product's counts only for candidates that were measured in
 * it, since others, of a library or of fewer bits, may be faster. */
#include "run/limits.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"
#include "device/prepared_cache.h"
#include "run/measure.h"
#include "run/trial_op.h"
#include "run/trial_run.h"
#include "tune/limit.h"
#include "tune/store.h"

enum {
    SHARE = 4,             /* of a key's budget */
    LEAST_BUDGET_MS = 200, /* for less nothing is measured */
    MIN_SAMPLES = 3,
    MAX_SAMPLES = 6,
    LEAST_STEP = 1, /* of launches that have a limit */
    ROW = 1024      /* elements of the rows of maps and sums */
};

/* Bytes that a launch moves, by step. */
static const uint64_t moved[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20, 192 << 20};
/* Dims of square products. */
static const int64_t sides[] = {128, 256, 512, 1024, 2048, 4096};

enum { N_MOVED = sizeof(moved) / sizeof(*moved), N_SIDES = sizeof(sides) / sizeof(*sides) };

/* ---- one step ---- */

struct step {
    uint32_t op, dtype, number;
    uint64_t work;
};

static struct step step_of(uint32_t op, uint32_t dtype, uint32_t number)
{
    const uint64_t side = op == FRIT_OP_matmul ? (uint64_t)sides[number] : 0;

    return (struct step){op, dtype, number, side ? 2 * side * side * side : moved[number]};
}

static frit_status create_trial(frit_device *device, const struct step *step,
                                struct launch_trial **out, frit_err *err)
{
    static const frit_attrs_reduce all = {.struct_size = sizeof(all),
                                          .axes = {.count = 2, .axis = {0, 1}}};
    const uint64_t one = frit_storage_bytes(step->dtype, 1) * (step->op == FRIT_OP_add ? 3 : 1);
    struct op_type type = {.dtype = step->dtype, .rank = 2};

    if (step->op == FRIT_OP_matmul) {
        type.dims[0] = type.dims[1] = sides[step->number];
    } else {
        type.dims[0] = (int64_t)(step->work / one / ROW);
        type.dims[1] = ROW;
    }
    return trial_create_op(device,
                           &(struct trial_op){.op = step->op,
                                              .n_in = step->op == FRIT_OP_sum ? 1 : 2,
                                              .type = type,
                                              .attrs = step->op == FRIT_OP_sum ? &all : NULL},
                           out, err);
}

/* Candidates with at most the class that the configuration allows. */
static uint32_t list_candidates(const struct launch_trial *trial, uint32_t list[TUNE_CANDIDATES])
{
    const uint32_t n_all = prepared_cache_candidates(trial->cache);
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_all && n < TUNE_CANDIDATES; i++)
        if (!i || prepared_cache_candidate(trial->cache, i)->numeric_class <=
                      trial->device->config.numeric_class)
            list[n++] = i;
    return n;
}

static void measure_limit(frit_device *device, const struct step *step, const struct str *key,
                          uint64_t until)
{
    uint8_t digest[TUNE_DIGEST] = {0};
    uint32_t list[TUNE_CANDIDATES];
    struct measure_params params = {
        .digest = digest,
        .key = key->text,
        .key_bytes = key->length,
        .list = list,
        .rules = {.min_samples = MIN_SAMPLES, .max_samples = MAX_SAMPLES}};
    struct launch_trial *trial;
    struct measure *m = NULL;
    struct str what = {0};

    if (create_trial(device, step, &trial, NULL))
        return;
    memcpy(digest, step, sizeof(step->op) + sizeof(step->dtype)); /* whatever its size */
    params.n = list_candidates(trial, list);
    str_addf(&what, "roofline: %s ", trial->label);
    trial_print(trial, &what);
    params.what = what.text ? what.text : "";
    if (!measure_create(trial, &params, &m, NULL))
        measure_keep(m, measure_run(m, until));
    measure_destroy(m);
    str_fini(&what);
}

/* The record of a step; NULL: it is not known, and cannot be measured now. */
static const struct tune_record *find_step(frit_device *device, const struct step *step,
                                           uint64_t until)
{
    struct tune_store *store = device->tune_store;
    const struct tune_record *record = NULL;
    struct str key = {0};

    tune_key_limit(step->op, step->dtype, step->number, &key);
    if (!key.failed)
        record = tune_store_find(store, key.text, key.length);
    if (!key.failed && !record && clock_ns() < until &&
        tune_store_claim(store, key.text, key.length)) {
        measure_limit(device, step, &key, until);
        tune_store_release(store, key.text, key.length);
        record = tune_store_find(store, key.text, key.length);
    }
    str_fini(&key);
    return record;
}

/* The least time in a record; 0: not all of its candidates were measured. */
static uint64_t least_ns(const struct tune_record *record)
{
    uint64_t least = 0;

    for (uint32_t c = 0; record && record->reason != TUNE_BUDGET && c < record->n_candidates; c++)
        for (uint32_t k = 0; k < record->candidates[c].n_samples; k++) {
            const uint64_t ns = record->candidates[c].samples[k];

            least = !least || ns < least ? ns : least;
        }
    return least;
}

/* ---- ladders ---- */

/* The least time of so much work, 0: unknown; the record of the last step that it follows from. */
static uint64_t climb(frit_device *device, const struct step *least, uint64_t work, uint64_t until,
                      const struct tune_record **last)
{
    const uint32_t n = least->op == FRIT_OP_matmul ? N_SIDES : N_MOVED;
    struct tune_ladder ladder = {0};
    uint64_t below = 0;

    *last = NULL;
    for (uint32_t i = 0; i < n && below <= work && !tune_ladder_is_whole(&ladder); i++) {
        const struct step step = step_of(least->op, least->dtype, i);

        *last = find_step(device, &step, until);
        tune_ladder_add(&ladder, step.work, least_ns(*last));
        below = step.work;
    }
    return tune_ladder_ns(&ladder, work);
}

/* ---- what a launch has to do ---- */

/* Whether an op looks at all elements of what it gets, or passes them on. */
static bool uses_all(uint32_t op)
{
    switch (op_row(op)->cls) {
    case FRIT_CLASS_VIEW:
        return op == FRIT_OP_reshape || op == FRIT_OP_permute || op == FRIT_OP_expand;
    case FRIT_CLASS_COPY:
    case FRIT_CLASS_CAST:
    case FRIT_CLASS_MAP:
    case FRIT_CLASS_REDUCE:
    case FRIT_CLASS_SCAN:
    case FRIT_CLASS_NORM:
        return true;
    default:
        return op == FRIT_OP_matmul;
    }
}

static uint64_t bytes_of(const struct op_type *type)
{
    return frit_storage_bytes(type->dtype, op_elements(type));
}

/* The bytes that the launch cannot but move: results, and operands that are read whole. */
static uint64_t least_bytes(const struct launch_trial *t)
{
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < t->n_out; k++)
        if (t->out[k] != GRAPH_NO_VALUE)
            bytes += bytes_of(&t->graph.values[t->out[k]].type);
    for (uint32_t i = 0; i < t->graph.n_ops; i++)
        if (!uses_all(t->graph.ops[i].op))
            return bytes;
    for (uint32_t m = 0; m < t->n_memories; m++)
        bytes += trial_least_bytes(t, m);
    return bytes;
}

/* Operations of its matrix products, if all are of one type, which is *dtype. */
static uint64_t product_work(const struct launch_trial *t, uint32_t *dtype)
{
    double work = 0;

    *dtype = FRIT_NO_DTYPE;
    for (uint32_t i = 0; i < t->graph.n_ops; i++) {
        const struct graph_op *op = &t->graph.ops[i];
        const struct op_type *a, *y;

        if (op->op != FRIT_OP_matmul || op->out[0] == GRAPH_NO_VALUE)
            continue;
        a = &t->graph.values[op->in[0].value].type;
        y = &t->graph.values[op->out[0]].type;
        if (*dtype != FRIT_NO_DTYPE && *dtype != a->dtype)
            return 0;
        *dtype = a->dtype;
        work += 2.0 * (double)op_elements(y) * (double)(a->rank ? a->dims[a->rank - 1] : 1);
    }
    return (uint64_t)work;
}

/* ---- times ---- */

static uint64_t bytes_ns(struct measure *m, uint64_t until)
{
    const struct step steps[] = {step_of(FRIT_OP_add, FRIT_F32, LEAST_STEP),
                                 step_of(FRIT_OP_sum, FRIT_F32, LEAST_STEP)};
    const uint64_t bytes = least_bytes(m->trial);
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && bytes >= steps[i].work; i++) {
        const struct tune_record *last;
        const uint64_t ns = climb(m->device, &steps[i], bytes, until, &last);

        least = ns < least ? ns : least;
    }
    return least == UINT64_MAX ? 0 : least;
}

/* Whether all candidates that take part were measured in the record; parts are of the programs that
 * limits are measured with. */
static bool knows_all(const struct measure *m, const struct tune_record *record)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct tune_candidate *found = &m->found[i], *known;

        if (found->state != TUNE_RIGHT || m->list[i] == TRIAL_PARTS)
            continue;
        known = tune_record_find(record, str_of(found->identity), found->version);
        if (!known || !known->n_samples)
            return false;
    }
    return true;
}

static uint64_t product_ns(struct measure *m, uint64_t until)
{
    const struct tune_record *last;
    uint32_t dtype;
    const uint64_t work = product_work(m->trial, &dtype);
    const struct step least = step_of(FRIT_OP_matmul, dtype, LEAST_STEP);
    uint64_t ns = 0;

    if (work >= least.work)
        ns = climb(m->device, &least, work, until, &last);
    return ns && knows_all(m, last) ? ns : 0;
}

void limits_apply(struct measure *m)
{
    const uint64_t budget_ms = m->device->config.tune.budget_ms;
    const uint64_t until =
        budget_ms < LEAST_BUDGET_MS ? 0 : clock_ns() + budget_ms * 1000000 / SHARE;
    const uint64_t bytes = bytes_ns(m, until), product = product_ns(m, until);

    m->rules.enough_ns = tune_limit_enough(bytes, product);
    m->rules.least_ns = tune_limit_least(bytes, product);
}

static void forget(frit_device *device, uint32_t op, uint32_t dtype)
{
    const uint32_t n = op == FRIT_OP_matmul ? N_SIDES : N_MOVED;

    for (uint32_t i = 0; i < n; i++) {
        struct str key = {0};

        tune_key_limit(op, dtype, i, &key);
        if (!key.failed && tune_store_find(device->tune_store, key.text, key.length))
            (void)tune_store_forget(device->tune_store, key.text, key.length);
        str_fini(&key);
    }
}

void limits_review(struct measure *m)
{
    uint32_t dtype;

    if (!m->contest.refuted)
        return;
    log_write(FRIT_LOG_DEBUG, "tune", "%s: %s: faster than limits that were measured: forgotten",
              m->device->name, m->what);
    (void)product_work(m->trial, &dtype);
    forget(m->device, FRIT_OP_add, FRIT_F32);
    forget(m->device, FRIT_OP_sum, FRIT_F32);
    forget(m->device, FRIT_OP_matmul, dtype);
}
