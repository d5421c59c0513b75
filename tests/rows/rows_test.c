/* SPDX-License-Identifier: Apache-2.0 */
/* Every stored case against a device: FRIT_TEST_DEVICE, by default the reference driver.  With
 * FRIT_TEST_DECOMPOSE=1 composite rows run as core ops.  Only the reference driver computes in
 * double and rounds once; what others may differ by is what core ops may. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>
#include <frit/op_table.h>

#include "rows/cases.h"
#include "rows/compare.h"
#include "rows/pack.h"

enum { SHOWN = 3, SHOWN_IN_ALL = 200 };

struct run {
    frit_host *host;
    frit_device *device;
    struct packs packs;
    bool decompose;
    bool loose; /* of the tolerances */
    unsigned results, wrong;
};

static void complain(struct run *run, const struct row_case *one, const char *name,
                     const char *text)
{
    if (run->wrong++ < SHOWN_IN_ALL)
        print_error("%s:%u: %s %s, %s: %s\n", one->file, one->line, one->row, one->dtype, name,
                    text);
}

static void compare(struct run *run, const struct row_case *one, const struct case_tensor *out,
                    const char *got)
{
    const struct tolerance *tolerance = run->loose ? &one->loose : &one->tight;
    const char *want = packs_at(&run->packs, out->dtype, out->place, out->count);
    size_t size = frit_storage_bytes(out->dtype, 1);
    char text[160], first[32], second[32];
    unsigned wrong = 0;

    for (uint64_t i = 0; i < out->count; i++) {
        if (compare_element(out->dtype, tolerance, want + i * size, got + i * size))
            continue;
        snprintf(text, sizeof(text), "element %llu is %s, not %s", (unsigned long long)i,
                 compare_text(out->dtype, got + i * size, second, sizeof(second)),
                 compare_text(out->dtype, want + i * size, first, sizeof(first)));
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
                         frit_tensor *tensor)
{
    uint64_t bytes = frit_storage_bytes(out->dtype, (int64_t)out->count);
    frit_dims dims = frit_dims_of(tensor);
    char *got = malloc(bytes + 1);

    assert_non_null(got);
    run->results++;
    if (frit_tensor_status(tensor) != FRIT_OK)
        complain(run, one, out->name, frit_tensor_error(tensor));
    else if (frit_dtype(tensor) != out->dtype || !same_dims(&dims, &out->dims))
        complain(run, one, out->name, "another element type or other dims");
    else if (frit_read(tensor, got, bytes) != FRIT_OK)
        complain(run, one, out->name, frit_tensor_error(tensor));
    else
        compare(run, one, out, got);
    free(got);
}

/* Parses, binds and records; false with a complaint. */
static bool record(struct run *run, const struct row_case *one, frit_tensor *const *inputs,
                   frit_tensor **outputs)
{
    frit_port ports[CASE_TENSORS];
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph = NULL;
    bool good;

    for (unsigned i = 0; i < one->n_in; i++)
        ports[i] = (frit_port){
            .struct_size = sizeof(ports[i]), .dtype = one->in[i].dtype, .dims = one->in[i].dims};
    good =
        frit_graph_parse(one->row, one->program, strlen(one->program), &graph, &err) == FRIT_OK &&
        frit_graph_bind(graph, ports, one->n_in, &err) == FRIT_OK &&
        frit_graph_run(graph, run->device, inputs, one->n_in, outputs, one->n_out, &err) == FRIT_OK;
    if (!good)
        complain(run, one, "program", err.text);
    frit_graph_free(graph);
    return good;
}

static uint64_t decomposed(const struct run *run)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(run->device, &stats);
    return stats.decomposed;
}

static bool is_composite(const char *name)
{
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && strcmp(row->name, name) == 0)
            return row->level == FRIT_LEVEL_COMPOSITE;
    }
    return false;
}

static void run_case(const struct row_case *one, void *ctx)
{
    struct run *run = ctx;
    frit_tensor *inputs[CASE_TENSORS] = {NULL}, *outputs[CASE_TENSORS] = {NULL};
    uint64_t before = decomposed(run);

    if (one->has_seed)
        frit_seed(run->host, one->seed);
    for (unsigned i = 0; i < one->n_in; i++) {
        const struct case_tensor *in = &one->in[i];

        inputs[i] = frit_from_host(run->device, in->dtype, in->dims,
                                   packs_at(&run->packs, in->dtype, in->place, in->count),
                                   frit_storage_bytes(in->dtype, (int64_t)in->count));
    }
    if (record(run, one, inputs, outputs)) {
        for (unsigned i = 0; i < one->n_out; i++) {
            check_output(run, one, &one->out[i], outputs[i]);
            frit_release(outputs[i]);
        }
    }
    for (unsigned i = 0; i < one->n_in; i++)
        frit_release(inputs[i]);
    if (run->decompose && is_composite(one->row) && decomposed(run) == before)
        complain(run, one, "program", "the row did not run as core ops");
}

static void open_device(struct run *run)
{
    const frit_setting decompose = {"frit", "decompose", "yes"};
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = run->decompose ? &decompose : NULL,
                                     .n_settings = run->decompose};
    const char *name = getenv("FRIT_TEST_DEVICE");

    run->loose = run->decompose || (name && strncmp(name, "reference", strlen("reference")) != 0);
    if (frit_host_open(&params, &run->host) != FRIT_OK ||
        frit_device_open(run->host, name ? name : "reference:0", &run->device) != FRIT_OK)
        fail_msg("%s", frit_host_error(run->host));
}

static void rows_give_stored_results(void **state)
{
    const char *decompose = getenv("FRIT_TEST_DECOMPOSE");
    struct run run = {.decompose = decompose && strcmp(decompose, "1") == 0};
    unsigned cases;

    (void)state;
    open_device(&run);
    cases = cases_each(run_case, &run);
    print_message("%u cases, %u results\n", cases, run.results);
    packs_fini(&run.packs);
    frit_device_close(run.device);
    frit_host_close(run.host);
    assert_true(run.results > cases);
    if (run.wrong)
        fail_msg("%u complaints", run.wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_give_stored_results)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
