/* SPDX-License-Identifier: Apache-2.0 */
/* Every stored case against a device: FRIT_TEST_DEVICE, by default the reference driver.  With
 * FRIT_TEST_DECOMPOSE=1 composite rows run as core ops.  Only the reference driver computes in
 * double and rounds once; what others may differ by is what core ops may.
 *
 * A device may flush denormal floats to zero in some of its ops; two ops detect whether it does.
 * Then denormal results may be zero, and where inputs or scalars have denormals, what the reference
 * driver gives for zeros in their place is right too.  FRIT_TEST_ROW names a row
 * to run alone; of all cases one in FRIT_TEST_EVERY is run, each with FRIT_TEST_LONG=1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>
#include <frit/inspect.h>
#include <frit/op_table.h>

#include "denormals.h"
#include "rows/cases.h"
#include "rows/compare.h"
#include "rows/pack.h"

enum { SHOWN = 3, SHOWN_IN_ALL = 200 };

struct run {
    frit_host *host;
    frit_device *device;
    struct packs packs;
    bool decompose;
    bool loose;                     /* of the tolerances */
    bool flushes[FRIT_DTYPE_LIMIT]; /* takes denormals of the type for zero */
    frit_device *reference;         /* NULL: denormals are kept */
    const char *only;               /* row, or NULL */
    unsigned every, number;         /* one in how many cases; of the case */
    unsigned results, wrong;
};

static void complain(struct run *run, const struct row_case *one, const char *name,
                     const char *text)
{
    if (run->wrong++ < SHOWN_IN_ALL)
        print_error("%s:%u: %s %s, %s: %s\n", one->file, one->line, one->row, one->dtype, name,
                    text);
}

/* What an output should be, malloc'd. */
struct wanted {
    char *stored;
    char *flushed; /* NULL, or as right: with zeros for denormals */
};

/* A device that takes denormals for zero, in some of its ops, may end on either side of the
 * smallest normal number, also after it went through a small factor. */
static struct tolerance tolerance_of(const struct run *run, const struct row_case *one,
                                     uint32_t dtype)
{
    struct tolerance tolerance = run->loose ? one->loose : one->tight;

    if (run->flushes[dtype] && tolerance.absolute < 4 * compare_least(dtype))
        tolerance.absolute = 4 * compare_least(dtype);
    return tolerance;
}

/* leaky_relu of a denormal by a large slope may be anything on a device that compares denormals as
 * zeros but multiplies them as they are. */
static bool may_be_anything(const char *row, uint32_t dtype, const char *stored)
{
    const double number = fabs(compare_number(dtype, stored));

    return strcmp(row, "leaky_relu") == 0 && number > 0 && number < compare_least(dtype);
}

/* Whether an element is as stored, or as with zeros for denormals: these do not count where the
 * device takes them for zero. */
static bool is_right(const struct run *run, const struct row_case *one,
                     const struct tolerance *tolerance, uint32_t dtype, char *stored, char *flushed,
                     char *got)
{
    if (run->flushes[dtype]) {
        if (flushed && may_be_anything(one->row, dtype, stored))
            return true;
        compare_flush(dtype, got, 1);
        compare_flush(dtype, stored, 1);
        if (flushed)
            compare_flush(dtype, flushed, 1);
    }
    return compare_element(dtype, tolerance, stored, got) ||
           (flushed && compare_element(dtype, tolerance, flushed, got));
}

static void compare(struct run *run, const struct row_case *one, const struct case_tensor *out,
                    const struct wanted *want, char *got)
{
    const struct tolerance tolerance = tolerance_of(run, one, out->dtype);
    size_t size = frit_storage_bytes(out->dtype, 1);
    char text[160], first[32], second[32];
    unsigned wrong = 0;

    for (uint64_t i = 0; i < out->count; i++) {
        char *stored = want->stored + i * size, *element = got + i * size;
        char *flushed = want->flushed ? want->flushed + i * size : NULL;

        if (is_right(run, one, &tolerance, out->dtype, stored, flushed, element))
            continue;
        snprintf(text, sizeof(text), "element %llu is %s, not %s", (unsigned long long)i,
                 compare_text(out->dtype, element, second, sizeof(second)),
                 compare_text(out->dtype, stored, first, sizeof(first)));
        if (++wrong <= SHOWN)
            complain(run, one, out->name, text);
    }
    if (wrong > SHOWN) {
        snprintf(text, sizeof(text), "%u of %llu elements", wrong, (unsigned long long)out->count);
        complain(run, one, out->name, text);
    }
}

static bool same_dims(const frit_dims *a, const frit_dims *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0])) == 0;
}

static void check_output(struct run *run, const struct row_case *one, const struct case_tensor *out,
                         const struct wanted *want, frit_tensor *tensor)
{
    uint64_t bytes = frit_storage_bytes(out->dtype, (int64_t)out->count);
    frit_dims dims = frit_tensor_dims(tensor);
    char *got = malloc(bytes + 1);

    assert_non_null(got);
    run->results++;
    if (frit_tensor_status(tensor) != FRIT_OK)
        complain(run, one, out->name, frit_tensor_error(tensor));
    else if (frit_tensor_dtype(tensor) != out->dtype || !same_dims(&dims, &out->dims))
        complain(run, one, out->name, "another element type or other dims");
    else if (frit_read(tensor, got, bytes, NULL) != FRIT_OK)
        complain(run, one, out->name, frit_tensor_error(tensor));
    else
        compare(run, one, out, want, got);
    free(got);
}

/* Parses, binds and records; false with a complaint. */
static bool record(struct run *run, frit_device *device, const struct row_case *one,
                   frit_tensor *const *inputs, frit_tensor **outputs, const char *program)
{
    frit_port ports[CASE_TENSORS];
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph = NULL;
    bool good;

    for (unsigned i = 0; i < one->n_in; i++)
        ports[i] = (frit_port){
            .struct_size = sizeof(ports[i]), .dtype = one->in[i].dtype, .dims = one->in[i].dims};
    good = frit_graph_parse(one->row, program, strlen(program), &graph, &err) == FRIT_OK &&
           frit_graph_bind(graph, ports, one->n_in, &err) == FRIT_OK &&
           frit_graph_run(graph, device, inputs, one->n_in, outputs, one->n_out, &err) == FRIT_OK;
    if (!good)
        complain(run, one, "program", err.text);
    frit_graph_free(graph);
    return good;
}

static frit_stats stats_of(const struct run *run)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(run->device, &stats);
    return stats;
}

/* Whether the host knows the row as core ops, of however many operands. */
static bool has_core_form(const char *name)
{
    static const uint32_t rows[] = {
#define DECOMPOSE(row, mode) FRIT_OP_##row,
#include "graph/decompose/decompose.def"
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const frit_op_info *row = frit_op_info_at(rows[i]);

        if (strcmp(row->name, name) == 0)
            return row->level == FRIT_LEVEL_COMPOSITE;
    }
    return false;
}

static char *copy_of(struct run *run, const struct case_tensor *tensor)
{
    uint64_t bytes = frit_storage_bytes(tensor->dtype, (int64_t)tensor->count);
    char *copy = malloc(bytes + 1);

    assert_non_null(copy);
    memcpy(copy, packs_at(&run->packs, tensor->dtype, tensor->place, tensor->count), bytes);
    return copy;
}

/* Makes zeros of denormal scalars in the text; true if there were any. */
static bool flush_scalars(char *program, double least)
{
    bool any = false;

    for (char *at = program; *at; at++) {
        char *end = at;
        double number;

        if (!strchr(" ,(", *at) || !strchr("-0123456789", at[1]))
            continue;
        number = strtod(at + 1, &end);
        if (number == 0 || fabs(number) >= least)
            continue;
        memset(at + 1, ' ', (size_t)(end - at - 1));
        memcpy(end - 3, "0.0", 3);
        if (number < 0)
            end[-4] = '-';
        any = true;
    }
    return any;
}

/* Records the case on a device; false with a complaint, and without outputs.  `flushed` (NULL:
 * nothing is flushed): whether there were denormals, which are made zero. */
static bool run_on(struct run *run, frit_device *device, const struct row_case *one, bool *flushed,
                   frit_tensor **outputs)
{
    frit_tensor *inputs[CASE_TENSORS] = {NULL};
    char *program = strdup(one->program);
    bool good;

    assert_non_null(program);
    if (one->has_seed)
        frit_seed(run->host, one->seed);
    for (unsigned i = 0; i < one->n_in; i++) {
        const struct case_tensor *in = &one->in[i];
        char *data = copy_of(run, in);

        if (flushed && run->flushes[in->dtype])
            *flushed |= compare_flush(in->dtype, data, in->count) > 0;
        if (flushed && run->flushes[in->dtype])
            *flushed |= flush_scalars(program, compare_least(in->dtype));
        inputs[i] = frit_from_host(device, in->dtype, in->dims, data,
                                   frit_storage_bytes(in->dtype, (int64_t)in->count));
        free(data);
    }
    good = record(run, device, one, inputs, outputs, program);
    for (unsigned i = 0; i < one->n_in; i++)
        frit_release(inputs[i]);
    free(program);
    return good;
}

static void expect(struct run *run, const struct row_case *one, struct wanted *want)
{
    frit_tensor *outputs[CASE_TENSORS] = {NULL};
    bool flushed = false, good;

    for (unsigned i = 0; i < one->n_out; i++)
        want[i].stored = copy_of(run, &one->out[i]);
    if (!run->reference)
        return;
    good = run_on(run, run->reference, one, &flushed, outputs);
    for (unsigned i = 0; i < one->n_out && good; i++) {
        const struct case_tensor *out = &one->out[i];

        if (flushed) {
            want[i].flushed = copy_of(run, out);
            if (frit_read(outputs[i], want[i].flushed,
                          frit_storage_bytes(out->dtype, (int64_t)out->count), NULL) != FRIT_OK)
                complain(run, one, out->name, frit_tensor_error(outputs[i]));
        }
        frit_release(outputs[i]);
    }
}

static void run_case(const struct row_case *one, void *ctx)
{
    struct run *run = ctx;
    frit_tensor *outputs[CASE_TENSORS] = {NULL};
    struct wanted want[CASE_TENSORS] = {{NULL, NULL}};
    const frit_stats before = stats_of(run);
    frit_stats after;

    if ((run->only && strcmp(run->only, one->row) != 0) || run->number++ % run->every)
        return;
    expect(run, one, want);
    if (run_on(run, run->device, one, NULL, outputs)) {
        for (unsigned i = 0; i < one->n_out; i++) {
            check_output(run, one, &one->out[i], &want[i], outputs[i]);
            frit_release(outputs[i]);
        }
    }
    for (unsigned i = 0; i < one->n_out; i++) {
        free(want[i].stored);
        free(want[i].flushed);
    }
    after = stats_of(run);
    if (run->decompose && has_core_form(one->row) && after.decomposed == before.decomposed)
        complain(run, one, "program", "the row did not run as core ops");
    if (after.fallbacks_device != before.fallbacks_device)
        complain(run, one, "program", "another device ran the row");
}

static void request_denormals(struct run *run)
{
    frit_err err = {.struct_size = sizeof(err)};

    run->flushes[FRIT_F32] = denormals_are_zero(run->device, FRIT_F32);
    run->flushes[FRIT_BF16] = run->flushes[FRIT_F32]; /* computed as f32 */
    run->flushes[FRIT_F64] = denormals_are_zero(run->device, FRIT_F64);
    if (!run->flushes[FRIT_F32] && !run->flushes[FRIT_F64])
        return;
    print_message("the device takes denormals of%s%s for zero\n",
                  run->flushes[FRIT_F32] ? " f32" : "", run->flushes[FRIT_F64] ? " f64" : "");
    if (frit_device_open(run->host, "reference:0", &run->reference, &err) != FRIT_OK)
        fail_msg("%s", err.text);
}

static void open_device(struct run *run)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting decompose = {"frit", "decompose", "yes"};
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = run->decompose ? &decompose : NULL,
                                     .n_settings = run->decompose};
    const char *name = getenv("FRIT_TEST_DEVICE");

    run->loose = run->decompose || (name && strncmp(name, "reference", strlen("reference")) != 0);
    if (frit_host_open(&params, &run->host, &err) != FRIT_OK ||
        frit_device_open(run->host, name ? name : "reference:0", &run->device, &err) != FRIT_OK)
        fail_msg("%s", err.text);
    request_denormals(run);
}

static void rows_give_stored_results(void **state)
{
    const char *decompose = getenv("FRIT_TEST_DECOMPOSE"), *every = getenv("FRIT_TEST_EVERY");
    struct run run = {.decompose = decompose && strcmp(decompose, "1") == 0,
                      .only = getenv("FRIT_TEST_ROW"),
                      .every = every && !getenv("FRIT_TEST_LONG") ? (unsigned)atoi(every) : 1};
    unsigned cases;

    (void)state;
    open_device(&run);
    cases = cases_each(run_case, &run);
    print_message("%u cases, %u results\n", cases, run.results);
    packs_fini(&run.packs);
    frit_device_close(run.reference);
    frit_device_close(run.device);
    frit_host_close(run.host);
    assert_true(run.results > (run.only ? 0 : cases / run.every));
    if (run.wrong)
        fail_msg("%u complaints", run.wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_give_stored_results)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
