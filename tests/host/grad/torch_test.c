/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients beside those that PyTorch gave: of each row that it has, and of random programs
 * (tests/data/gradients).  FRIT_TEST_DEVICE: the device, reference:0 by default.  --programs
 * FOLDER: other programs, as make.py --programs writes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/grad.h>
#include <frit/inspect.h>
#include <frit/op_table.h>

#include "grad/rule.h"
#include "host/grad/stored.h"

enum { OUTPUTS = 4, ELEMENTS = 4096, FACTORS = 900000 /* as in book.py */, SHOWN = 20 };

static const char *folder = "tests/data/gradients", *programs = "tests/data/gradients";

struct run {
    frit_host *host;
    frit_device *device;
    unsigned gradients, wrong;
    bool seen[FRIT_OP_LIMIT];
    frit_err err;
};

static void complain(struct run *run, const struct stored_case *one, const char *what)
{
    if (run->wrong++ < SHOWN)
        print_error("line %u, %s %s: %s\n%s", one->line, one->name, frit_dtype_name(one->dtype),
                    what, one->program);
}

/* ---- inputs and factors ---- */

static double value_of(const struct stored_input *in, double number)
{
    const double range = in->high - in->low;

    if (frit_dtype_info_of(in->dtype).cls != FRIT_DTYPE_FLOAT)
        return floor(in->low + (range + 1) * number);
    number = in->low + range * number;
    return in->parts > 0 ? floor(number * in->parts) / in->parts : number;
}

static void store(uint32_t dtype, double value, void *data, uint64_t i)
{
    if (dtype == FRIT_F64)
        ((double *)data)[i] = value;
    else if (dtype == FRIT_F32)
        ((float *)data)[i] = (float)value;
    else if (dtype == FRIT_I64)
        ((int64_t *)data)[i] = (int64_t)value;
    else
        ((unsigned char *)data)[i] = value != 0;
}

static double load(uint32_t dtype, const void *data, uint64_t i)
{
    double wide;
    float narrow;

    if (dtype == FRIT_F32) {
        memcpy(&narrow, (const char *)data + i * sizeof(narrow), sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&wide, (const char *)data + i * sizeof(wide), sizeof(wide));
    return wide;
}

static bool is_narrow(uint32_t dtype)
{
    return dtype == FRIT_F16 || dtype == FRIT_BF16;
}

/* A tensor of these numbers. */
static frit_tensor *make(const struct run *run, uint32_t dtype, frit_dims dims, uint64_t count,
                         const double *numbers)
{
    static double data[ELEMENTS];
    const uint32_t made = is_narrow(dtype) ? FRIT_F32 : dtype;
    frit_tensor *tensor;

    for (uint64_t i = 0; i < count; i++)
        store(made, numbers[i], data, i);
    tensor =
        frit_from_host(run->device, made, dims, data, frit_storage_bytes(made, (int64_t)count));
    return made == dtype ? tensor : frit_cast(frit_take(tensor), dtype);
}

static frit_tensor *make_input(const struct run *run, const struct stored_input *in)
{
    static double numbers[ELEMENTS];

    assert_true(in->count <= ELEMENTS);
    stored_draw(in->seed, in->count, numbers);
    for (uint64_t i = 0; i < in->count; i++)
        numbers[i] = value_of(in, numbers[i]);
    return make(run, in->dtype, in->dims, in->count, numbers);
}

static frit_tensor *make_factors(const struct run *run, const frit_port *port, uint32_t k)
{
    static double numbers[ELEMENTS];
    uint64_t count = 1;

    for (int64_t d = 0; d < port->dims.rank; d++)
        count *= (uint64_t)port->dims.dim[d];
    assert_true(count <= ELEMENTS);
    stored_draw(FACTORS + k, count, numbers);
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = 2 * numbers[i] - 1;
    return make(run, port->dtype, port->dims, count, numbers);
}

/* ---- a case ---- */

static double tolerance_of(uint32_t dtype)
{
    return dtype == FRIT_F64 ? 1e-11 : dtype == FRIT_F32 ? 2e-5 : dtype == FRIT_F16 ? 0.01 : 0.08;
}

/* Within a few roundings of the tensor's largest element. */
static bool is_near(uint32_t dtype, double got, double want, double scale)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= tolerance_of(dtype) * fmax(scale, 1);
}

static void compare(struct run *run, const struct stored_case *one, const struct stored_input *in,
                    frit_tensor *grad)
{
    static double data[ELEMENTS];
    const uint32_t stored = is_narrow(in->dtype) ? FRIT_F32 : in->dtype;
    const uint64_t bytes = frit_storage_bytes(stored, (int64_t)in->count);
    frit_tensor *wide = is_narrow(in->dtype) ? frit_cast(grad, FRIT_F32) : frit_ref(grad);
    const frit_status st = frit_read(wide, data, bytes, &run->err);
    double scale = 0;
    char text[160];

    run->gradients++;
    frit_release(wide);
    if (st || frit_tensor_dtype(grad) != in->dtype) {
        complain(run, one, st ? run->err.text : "a gradient of another element type");
        return;
    }
    for (uint64_t i = 0; i < in->count; i++) {
        const double want = load(stored, in->grad, i);

        scale = isfinite(want) ? fmax(scale, fabs(want)) : scale;
    }
    for (uint64_t i = 0; i < in->count; i++) {
        const double got = load(stored, data, i), want = load(stored, in->grad, i);

        if (is_near(in->dtype, got, want, scale))
            continue;
        snprintf(text, sizeof(text), "element %llu of the gradient by %s is %.15g, not %.15g",
                 (unsigned long long)i, in->name, got, want);
        complain(run, one, text);
        return;
    }
}

static void compare_losses(struct run *run, const struct stored_case *one, frit_tensor **out)
{
    for (uint32_t k = 0; k < one->n_losses; k++) {
        double got;

        if (frit_read(out[k], &got, sizeof(got), &run->err))
            complain(run, one, run->err.text);
        else if (!is_near(FRIT_F64, got, one->losses[k], fabs(one->losses[k])))
            complain(run, one, "another loss");
    }
}

/* All outputs in one pass; or, for two losses, one pass each. */
static frit_status go_back(struct run *run, const struct stored_case *one, frit_graph *graph,
                           frit_tensor **out, uint32_t n_out)
{
    frit_tensor *grads[OUTPUTS] = {NULL};
    frit_port port = {.struct_size = sizeof(port)};
    frit_status st = FRIT_OK;

    if (one->n_losses && one->line % 2) {
        st = frit_grad_backward_many(&out[0], NULL, 1, FRIT_GRAD_KEEP, &run->err);
        return st ? st : frit_grad_backward(out[1], &run->err);
    }
    for (uint32_t k = 0; k < n_out && !one->n_losses; k++) {
        if (!frit_graph_output_at(graph, k, &port))
            grads[k] = make_factors(run, &port, k);
    }
    st = frit_grad_backward_many(out, grads, n_out, 0, &run->err);
    for (uint32_t k = 0; k < n_out; k++)
        frit_release(grads[k]);
    return st;
}

static frit_status prepare(struct run *run, const struct stored_case *one, frit_graph **graph)
{
    frit_port ports[STORED_INPUTS];
    frit_status st =
        frit_graph_parse(one->name, one->program, strlen(one->program), graph, &run->err);

    for (uint32_t i = 0; i < one->n_in; i++)
        ports[i] = (frit_port){
            .struct_size = sizeof(ports[i]), .dtype = one->in[i].dtype, .dims = one->in[i].dims};
    return st ? st : frit_graph_bind(*graph, ports, one->n_in, &run->err);
}

static void run_case(const struct stored_case *one, void *ctx)
{
    struct run *run = ctx;
    frit_tensor *in[STORED_INPUTS] = {NULL}, *out[OUTPUTS] = {NULL};
    frit_port port = {.struct_size = sizeof(port)};
    frit_graph *graph = NULL;
    uint32_t n_out = 0;
    frit_status st = prepare(run, one, &graph);

    while (!st && n_out < OUTPUTS && !frit_graph_output_at(graph, n_out, &port))
        n_out++;
    if (!st)
        st = frit_grad_begin(run->device, &run->err);
    for (uint32_t i = 0; i < one->n_in && !st; i++) {
        in[i] = make_input(run, &one->in[i]);
        if (one->in[i].grad)
            st = frit_grad_watch(in[i], &run->err);
    }
    if (!st)
        st = frit_graph_run(graph, run->device, in, one->n_in, out, n_out, &run->err);
    if (!st)
        st = go_back(run, one, graph, out, n_out);
    if (st)
        complain(run, one, run->err.text);
    for (uint32_t i = 0; i < one->n_in && !st; i++) {
        if (one->in[i].grad)
            compare(run, one, &one->in[i], frit_grad_of(in[i]));
    }
    if (!st)
        compare_losses(run, one, out);
    frit_grad_end(run->device);
    for (uint32_t i = 0; i < one->n_in; i++)
        frit_release(in[i]);
    for (uint32_t k = 0; k < n_out; k++)
        frit_release(out[k]);
    frit_graph_free(graph);
}

/* The f32 case with inputs of another float type. */
static void run_narrow(const struct stored_case *one, uint32_t dtype, struct run *run)
{
    static struct stored_case narrow;
    const char *name = frit_dtype_name(dtype), *at = one->program, *next;
    size_t length = 0;

    narrow = *one;
    narrow.dtype = dtype;
    for (uint32_t i = 0; i < narrow.n_in; i++) {
        if (narrow.in[i].dtype == FRIT_F32)
            narrow.in[i].dtype = dtype;
    }
    for (; (next = strstr(at, " : f32[")); at = next + strlen(" : f32["))
        length += (size_t)snprintf(narrow.program + length, sizeof(narrow.program) - length,
                                   "%.*s : %s[", (int)(next - at), at, name);
    snprintf(narrow.program + length, sizeof(narrow.program) - length, "%s", at);
    run_case(&narrow, run);
}

static void run_row(const struct stored_case *one, void *ctx)
{
    struct run *run = ctx;

    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && strcmp(row->name, one->name) == 0)
            run->seen[id] = true;
    }
    run_case(one, ctx);
    if (one->dtype == FRIT_F32) {
        run_narrow(one, FRIT_F16, run);
        run_narrow(one, FRIT_BF16, run);
    }
}

/* ---- the tests ---- */

static void open_device(struct run *run)
{
    const frit_host_params params = {.struct_size = sizeof(params)};
    const char *name = getenv("FRIT_TEST_DEVICE");

    run->err = (frit_err){.struct_size = sizeof(run->err)};
    if (frit_host_open(&params, &run->host, &run->err) ||
        frit_device_open(run->host, name ? name : "reference:0", &run->device, &run->err))
        fail_msg("%s", run->err.text);
}

static void close_device(struct run *run)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(run->device, &stats);
    assert_int_equal(stats.tensors_now, 0);
    assert_int_equal(stats.queued_now, 0);
    frit_device_close(run->device);
    frit_host_close(run->host);
    if (run->wrong)
        fail_msg("%u complaints", run->wrong);
}

/* PyTorch has no deform_conv of its own, and its quantised tensors have no gradients. */
static bool is_missing(uint32_t id)
{
    const frit_op_info *row = frit_op_info_at(id);

    return row && row->cls != FRIT_CLASS_GRADIENT && row->cls != FRIT_CLASS_COLLECTIVE &&
           grad_row_of(id)->kind != GRAD_NONE && id != FRIT_OP_deform_conv &&
           id != FRIT_OP_quantize;
}

static void rows_agree(void **state)
{
    struct run run = {0};
    unsigned cases, unseen = 0;

    (void)state;
    open_device(&run);
    cases = stored_each(folder, "rows", run_row, &run);
    print_message("%u cases, %u gradients\n", cases, run.gradients);
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        if (!is_missing(id) || run.seen[id])
            continue;
        print_error("%s has no case\n", frit_op_info_at(id)->name);
        unseen++;
    }
    close_device(&run);
    assert_int_equal(unseen, 0);
}

static void programs_agree(void **state)
{
    struct run run = {0};
    unsigned cases;

    (void)state;
    open_device(&run);
    cases = stored_each(programs, "programs", run_case, &run);
    print_message("%u programs, %u gradients\n", cases, run.gradients);
    close_device(&run);
    assert_true(cases > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_agree),
                                       cmocka_unit_test(programs_agree)};

    if (argc == 3 && strcmp(argv[1], "--programs") == 0)
        programs = argv[2];
    else if (argc > 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
