/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side: each case is announced, runs on the driver and on `reference`, and is judged.
 *
 * Lines: `begin N` before case N, `in TEXT` before what may end the process, `end N VERDICT REASON`
 * after the case, `lost` if it lost the device and no more follow, `done` at the end. */
#include <stdlib.h>
#include <string.h>

#include <frit/inspect.h>

#include "conform/block.h"
#include "conform/border.h"
#include "conform/numbers.h"
#include "conform/play.h"
#include "conform/program.h"
#include "denormals.h"

/* ---- a case ---- */

static bool same_form(const struct results *own, const struct results *got, uint32_t k,
                      char reason[CONFORM_REASON])
{
    const frit_dims *a = &own->dims[k], *b = &got->dims[k];

    if (own->dtype[k] == got->dtype[k] && a->rank == b->rank &&
        memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0])) == 0)
        return true;
    snprintf(reason, CONFORM_REASON, "output %u has another element type or other dims", k);
    return false;
}

/* Elements of the operand for each of the result. */
static double fold_of(const struct results *own, uint32_t k)
{
    uint64_t count = lab_count(&own->dims[k]);

    return count ? (double)own->seen / (double)count : 1;
}

/* How many elements meet in one, or 1; outside of reductions and scans only `reference` may add as
 * many one after the other, and it does so in f64.  Of ops of plugins it is not known: they may be
 * reductions if they make few elements out of many. */
static double terms_of(const struct conform_case *one, const struct results *own, uint32_t k)
{
    bool widest = own->dtype[k] == FRIT_F64;

    if (one->row.rule == CONFORM_PARTS)
        return widest ? (double)own->seen : fold_of(own, k);
    switch (one->row.op->cls) {
    case FRIT_CLASS_REDUCE:
        return fold_of(own, k);
    case FRIT_CLASS_SCAN:
        return (double)own->seen;
    case FRIT_CLASS_NORM:
    case FRIT_CLASS_CONTRACT:
    case FRIT_CLASS_GRADIENT:
        return widest ? (double)own->seen : 1;
    default:
        return 1;
    }
}

/* What an output is exactly, as f64.  `wide` has it, but where an op of a plugin takes no f64 or
 * gives something else there: then it is what `reference` computes, in `*own_wide`. */
static const double *exact_of(const struct conform_case *one, const struct results *own,
                              const struct results *wide, uint32_t k, double **own_wide)
{
    uint64_t count = lab_count(&own->dims[k]);

    if (!lab_is_float(own->dtype[k]))
        return NULL;
    if (own->dtype[k] == FRIT_F64)
        return own->data[k];
    if (wide->n && wide->dtype[k] == FRIT_F64 && lab_count(&wide->dims[k]) == count)
        return wide->data[k];
    if (one->row.rule == CONFORM_PARTS)
        *own_wide = calloc(count + 1, sizeof(**own_wide));
    if (*own_wide)
        conform_widen(own->dtype[k], own->data[k], count, *own_wide);
    return *own_wide;
}

/* Results against `reference`; `wide` has those in f64, or nothing. */
static bool judge(const struct lab *lab, const struct conform_case *one, const struct results *own,
                  const struct results *wide, const struct results *got,
                  char reason[CONFORM_REASON])
{
    char text[CONFORM_REASON];

    for (uint32_t k = 0; k < own->n; k++) {
        uint32_t dtype = own->dtype[k];
        double *own_wide = NULL;
        bool right;
        struct conform_wanted want = {.dtype = dtype,
                                      .count = lab_count(&own->dims[k]),
                                      .own = own->data[k],
                                      .rule = one->row.rule,
                                      .ulp = one->row.ulp,
                                      .most = own->most,
                                      .terms = terms_of(one, own, k),
                                      .flushes = lab->flushes[dtype]};

        if (!same_form(own, got, k, reason))
            return false;
        want.wide = exact_of(one, own, wide, k, &own_wide);
        right = conform_compare(&want, got->data[k], text);
        free(own_wide);
        if (right)
            continue;
        snprintf(reason, CONFORM_REASON, "%s: %.300s", one->row.op->out[k].name, text);
        return false;
    }
    return true;
}

/* ---- a second run, between guards ---- */

/* Whether a second run gives the same bits and touches nothing else; checked in some cases only. */
static bool repeats(const struct lab *lab, const struct conform_case *one,
                    const struct results *first, char reason[CONFORM_REASON])
{
    struct guards guards;
    struct results again;
    bool same;

    if (one->layout != LAYOUT_DENSE || one->special || one->row.rule == CONFORM_ANY ||
        first->n == 0 || first->bytes[0] == 0 || first->bytes[0] > GUARDED_BYTES)
        return true;
    guards_begin(lab, &guards, first->bytes[0]);
    same = !lab_run(lab, lab->device, one, GUARDED, &again, reason);
    for (uint32_t k = 0; k < first->n && same; k++) {
        same = memcmp(first->data[k], again.data[k], first->bytes[k]) == 0;
        if (!same)
            snprintf(reason, CONFORM_REASON, "%s: a second run gave other bits",
                     one->row.op->out[k].name);
    }
    results_fini(&again);
    return guards_end(&guards, reason) && same;
}

/* Whether a program of the driver failed by a fault of its own since, though another way was found.
 */
static bool has_faults(const struct lab *lab, uint64_t before, char reason[CONFORM_REASON])
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(lab->device, &stats);
    if (stats.faults > before)
        snprintf(reason, CONFORM_REASON, "its program fails with internal, something else runs");
    return stats.faults > before;
}

static enum conform_verdict verdict_of(const struct lab *lab, const struct conform_case *one,
                                       uint64_t decomposed)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(lab->device, &stats);
    if (one->row.op->id < FRIT_OP_CUSTOM &&
        frit_op_support(lab->device, one->row.op->id) == FRIT_SUPPORT_HOST)
        return VERDICT_HOST;
    return stats.decomposed > decomposed ? VERDICT_DECOMPOSED : VERDICT_NATIVE;
}

/* Operands die where a copy of them does, on devices that copy. */
static struct conform_case adapted(const struct lab *lab, const struct conform_case *one)
{
    struct conform_case other = *one;

    if (one->layout == LAYOUT_DYING && !frit_op_support(lab->device, FRIT_OP_copy))
        other.layout = LAYOUT_DENSE;
    return other;
}

static enum conform_verdict run_check(const struct conform_options *options, const struct lab *lab,
                                      const struct conform_check *check,
                                      char reason[CONFORM_REASON])
{
    frit_status status = check->run(options, lab, reason);

    *lab->lost |= status == FRIT_DEVICE_LOST;
    return status == FRIT_UNSUPPORTED ? VERDICT_FALLBACK : status ? VERDICT_FAILED : VERDICT_NATIVE;
}

/* Whether the op of a plugin takes such operands: FRIT_UNSUPPORTED where its shape rule says no.
 * Any other failure is none of the operands': FRIT_INTERNAL. */
static frit_status check_rule(const struct conform_case *one, char reason[CONFORM_REASON])
{
    static struct conform_program program;
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph = NULL;
    frit_status status;
    bool refused = false;
    int place = 0;

    if (!conform_program_of(one, false, &program)) {
        snprintf(reason, CONFORM_REASON, "the case cannot be written as a program");
        return FRIT_INTERNAL;
    }
    status = conform_graph_parse(&program, &graph, &err);
    if (!status) {
        status = conform_graph_bind(&program, graph, &err);
        refused = status == FRIT_INVALID || status == FRIT_UNSUPPORTED;
    }
    frit_graph_free(graph);
    if (!status)
        return FRIT_OK;
    (void)!sscanf(err.text, "case:%*d:%*d: %n", &place);
    snprintf(reason, CONFORM_REASON, "%s: %.300s",
             refused ? "it takes no such operands" : frit_status_name(status), err.text + place);
    return refused ? FRIT_UNSUPPORTED : FRIT_INTERNAL;
}

static enum conform_verdict run_case(const struct lab *lab, const struct conform_case *one,
                                     char reason[CONFORM_REASON])
{
    frit_stats stats = {.struct_size = sizeof(stats)};
    struct results got = {0}, own = {0}, wide = {0};
    enum conform_verdict verdict = VERDICT_FAILED;
    char text[CONFORM_REASON];
    frit_status status;
    bool rounds = one->row.rule >= CONFORM_NEAR && one->row.rule <= CONFORM_PARTS;

    status = one->row.rule == CONFORM_PARTS ? check_rule(one, reason) : FRIT_OK;
    if (status)
        return status == FRIT_UNSUPPORTED ? VERDICT_REFUSED : VERDICT_FAILED;

    frit_stats_get(lab->device, &stats);
    status = lab_run(lab, lab->device, one, PLAIN, &got, reason);
    if ((!status || status == FRIT_UNSUPPORTED) && has_faults(lab, stats.faults, reason))
        verdict = VERDICT_FAILED;
    else if (status == FRIT_UNSUPPORTED)
        verdict = VERDICT_FALLBACK;
    else if (!status && lab_run(lab, lab->reference, one, PLAIN, &own, text))
        snprintf(reason, CONFORM_REASON, "reference: %.300s", text);
    else if (!status) {
        verdict = verdict_of(lab, one, stats.decomposed);
        if (rounds && lab_is_float(one->dtype) && one->dtype != FRIT_F64 &&
            lab_run(lab, lab->reference, one, WIDE, &wide, text))
            results_fini(&wide);
        if (!judge(lab, one, &own, &wide, &got, reason) || !repeats(lab, one, &got, reason))
            verdict = VERDICT_FAILED;
    }
    results_fini(&got);
    results_fini(&own);
    results_fini(&wide);
    return verdict;
}

/* ---- the child ---- */

static bool open_lab(struct lab *lab, const struct conform_options *options,
                     char reason[CONFORM_REASON])
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = options->settings,
                                     .n_settings = options->n_settings};
    frit_status status = frit_host_open(&params, &lab->host, &err);

    if (!status)
        status = frit_device_open(lab->host, options->device, &lab->device, &err);
    if (!status)
        status = frit_device_open(lab->host, "reference:0", &lab->reference, &err);
    *lab->lost |= status == FRIT_DEVICE_LOST;
    if (status) {
        lab_fail(status, err.text, reason);
        return false;
    }
    lab->flushes[FRIT_F32] = denormals_are_zero(lab->device, FRIT_F32);
    lab->flushes[FRIT_F64] = denormals_are_zero(lab->device, FRIT_F64);
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
        lab->flushes[dtype] =
            lab_is_float(dtype) && lab->flushes[frit_dtype_info_of(dtype).compute];
    (void)frit_sync(lab->device, &err); /* what was not read counts for no case */
    return true;
}

/* A reason is one line. */
static void put_verdict(FILE *out, size_t index, enum conform_verdict verdict, char *reason)
{
    reason[strcspn(reason, "\n")] = '\0';
    fprintf(out, "end %zu %d %s\n", index, (int)verdict, reason);
    fflush(out);
}

void conform_child(const struct conform_options *options, const struct conform_cases *cases,
                   size_t first, size_t end, FILE *out)
{
    char reason[CONFORM_REASON] = "";
    struct block_memo *memo = calloc(1, sizeof(*memo));
    bool lost = false, open;
    struct border border;
    struct lab lab = {.memo = memo, .border = &border, .lost = &lost, .out = out};

    fprintf(out, "begin %zu\n", first);
    fflush(out);
    border_read(&border);
    open = memo && open_lab(&lab, options, reason);
    for (size_t i = first; i < end && !(lost && i > first); i++) {
        enum conform_verdict verdict = VERDICT_FAILED;

        fprintf(out, "begin %zu\n", i);
        fflush(out);
        if (open && cases->at[i].check) {
            *reason = '\0';
            verdict = run_check(options, &lab, cases->at[i].check, reason);
        } else if (open) {
            struct conform_case one = adapted(&lab, &cases->at[i]);

            *reason = '\0';
            verdict = run_case(&lab, &one, reason);
        }
        put_verdict(out, i, verdict, reason);
        if (lost)
            fputs("lost\n", out);
    }
    frit_device_close(lab.reference);
    frit_device_close(lab.device);
    frit_host_close(lab.host);
    block_memo_fini(memo);
    free(memo);
    fputs("done\n", out);
    fflush(out);
}
