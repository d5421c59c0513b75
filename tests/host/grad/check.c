/* SPDX-License-Identifier: Apache-2.0 */
#include "host/grad/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/grad.h>

enum { OUTPUTS = 8, MOVES = 4, ELEMENTS = 8192 };

struct check {
    frit_device *device;
    struct script *s;
    frit_graph *graph;
    uint32_t n_out;
    struct output {
        uint32_t dtype;
        frit_dims dims;
        uint64_t count;
        double *factors; /* NULL: not in the sum */
    } out[OUTPUTS];
    bool watched[SCRIPT_INPUTS];
    double *gradients[SCRIPT_INPUTS];
    frit_err err;
};

static enum check_result complain(const struct check *c, const char *what)
{
    print_error("%s: %s\n%s", c->s->row->name, what, c->s->text);
    return CHECK_WRONG;
}

/* ---- tensors ---- */

static void *element_bytes(const struct script_input *in, uint64_t *bytes)
{
    const uint64_t size = frit_storage_bytes(in->dtype, 1);
    char *data = malloc(in->count * size + 1);

    assert_non_null(data);
    *bytes = in->count * size;
    for (uint64_t i = 0; i < in->count; i++) {
        if (in->floats)
            memcpy(data + i * size, &in->floats[i], size);
        else /* little-endian: the low bytes come first */
            memcpy(data + i * size, &in->integers[i], size);
    }
    return data;
}

static frit_tensor *make_input(const struct check *c, uint32_t i)
{
    const struct script_input *in = &c->s->in[i];
    uint64_t bytes;
    void *data = element_bytes(in, &bytes);
    frit_tensor *tensor = frit_from_host(c->device, in->dtype, in->dims, data, bytes);

    free(data);
    return tensor;
}

static frit_tensor *make_floats(const struct check *c, uint32_t dtype, frit_dims dims,
                                const double *numbers)
{
    const uint64_t count = script_count(dims);
    float narrow[ELEMENTS];

    assert_true(count <= ELEMENTS);
    for (uint64_t i = 0; i < count; i++)
        narrow[i] = (float)numbers[i];
    return dtype == FRIT_F64
               ? frit_from_host(c->device, dtype, dims, numbers, count * sizeof(*numbers))
               : frit_from_host(c->device, dtype, dims, narrow, count * sizeof(*narrow));
}

/* ---- what the script is ---- */

static bool prepare_graph(struct check *c)
{
    frit_port ports[SCRIPT_INPUTS];

    c->err = (frit_err){.struct_size = sizeof(c->err)};
    for (uint32_t i = 0; i < c->s->n_in; i++)
        ports[i] = (frit_port){
            .struct_size = sizeof(ports[i]), .dtype = c->s->in[i].dtype, .dims = c->s->in[i].dims};
    return !frit_graph_parse(c->s->row->name, c->s->text, c->s->length, &c->graph, &c->err) &&
           !frit_graph_bind(c->graph, ports, c->s->n_in, &c->err);
}

static double factor(struct script *s)
{
    return script_real(s, 0.3, 1) * (script_chance(s, 50) ? 1 : -1);
}

static void prepare_outputs(struct check *c)
{
    frit_port port = {.struct_size = sizeof(port)};
    bool some = false;

    for (; !frit_graph_output_at(c->graph, c->n_out, &port); c->n_out++) {
        struct output *out = &c->out[c->n_out];

        *out = (struct output){port.dtype, port.dims, script_count(port.dims), NULL};
        if (port.dtype != FRIT_F64 && port.dtype != FRIT_F32)
            continue;
        if (some && script_chance(c->s, 30))
            continue;
        some = true;
        out->factors = malloc((out->count + 1) * sizeof(*out->factors));
        assert_non_null(out->factors);
        for (uint64_t i = 0; i < out->count; i++)
            out->factors[i] = factor(c->s);
    }
}

/* Some of the float inputs, one at least. */
static void prepare_inputs(struct check *c)
{
    const uint32_t first = (uint32_t)script_draw(c->s, c->s->n_in);
    bool some = false;

    for (uint32_t k = 0; k < c->s->n_in; k++) {
        const uint32_t i = (first + k) % c->s->n_in;

        c->watched[i] = c->s->in[i].floats && (!some || script_chance(c->s, 85));
        some |= c->watched[i];
    }
}

/* ---- gradients ---- */

static frit_status go_back(struct check *c, frit_tensor **out)
{
    frit_tensor *reached[OUTPUTS], *grads[OUTPUTS];
    uint32_t n = 0;
    frit_status st;

    for (uint32_t k = 0; k < c->n_out; k++) {
        if (!c->out[k].factors)
            continue;
        reached[n] = out[k];
        grads[n++] = make_floats(c, c->out[k].dtype, c->out[k].dims, c->out[k].factors);
    }
    st = frit_grad_backward_many(reached, grads, n, 0, &c->err);
    for (uint32_t k = 0; k < n; k++)
        frit_release(grads[k]);
    return st;
}

static frit_status read_gradient(struct check *c, uint32_t i, frit_tensor *grad)
{
    const struct script_input *in = &c->s->in[i];
    const frit_dims dims = frit_tensor_dims(grad);

    c->gradients[i] = malloc((in->count + 1) * sizeof(double));
    assert_non_null(c->gradients[i]);
    if (!frit_tensor_status(grad) &&
        (dims.rank != in->dims.rank ||
         memcmp(dims.dim, in->dims.dim, (size_t)dims.rank * sizeof(*dims.dim)) != 0 ||
         frit_tensor_dtype(grad) != in->dtype)) {
        snprintf(c->err.text, sizeof(c->err.text), "the gradient by %s has another type", in->name);
        return FRIT_INVALID;
    }
    return frit_read(grad, c->gradients[i], in->count * sizeof(double), &c->err);
}

static frit_status find_gradients(struct check *c)
{
    frit_tensor *in[SCRIPT_INPUTS] = {NULL}, *out[OUTPUTS] = {NULL};
    frit_tensor *grads[SCRIPT_INPUTS] = {NULL};
    frit_status st = frit_grad_begin(c->device, &c->err);

    for (uint32_t i = 0; i < c->s->n_in; i++) {
        in[i] = make_input(c, i);
        if (!st && c->watched[i])
            st = frit_grad_watch(in[i], &c->err);
    }
    if (!st)
        st = frit_graph_run(c->graph, c->device, in, c->s->n_in, out, c->n_out, &c->err);
    if (!st)
        st = go_back(c, out);
    for (uint32_t i = 0; i < c->s->n_in; i++) {
        if (!st && c->watched[i])
            grads[i] = frit_ref(frit_grad_of(in[i]));
    }
    frit_grad_end(c->device);
    for (uint32_t i = 0; i < c->s->n_in; i++) {
        if (!st && grads[i])
            st = read_gradient(c, i, grads[i]);
        frit_release(grads[i]);
        frit_release(in[i]);
    }
    for (uint32_t k = 0; k < c->n_out; k++)
        frit_release(out[k]);
    return st;
}

/* ---- differences ---- */

static double element(const struct output *out, const void *data, uint64_t i)
{
    return out->dtype == FRIT_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Reads and releases the outputs of a run; `size` becomes the sum of absolute values. */
static frit_status sum_up(struct check *c, frit_tensor **tensors, long double *sum, double *size)
{
    static double data[ELEMENTS];
    frit_status st = FRIT_OK;

    *sum = 0;
    *size = 0;
    for (uint32_t k = 0; k < c->n_out; k++) {
        const struct output *out = &c->out[k];

        assert_true(out->count <= ELEMENTS);
        if (!st && out->factors)
            st = frit_read(tensors[k], data, frit_storage_bytes(out->dtype, (int64_t)out->count),
                           &c->err);
        for (uint64_t i = 0; !st && out->factors && i < out->count; i++) {
            *sum += (long double)element(out, data, i) * out->factors[i];
            *size += fabs(element(out, data, i));
        }
        frit_release(tensors[k]);
    }
    return st;
}

struct sums {
    long double at[MOVES]; /* at -2, -1, 1 and 2 steps */
    double size;
};

/* The program with input `i` moved along `direction`. */
static frit_status move(struct check *c, uint32_t i, const double *direction, struct sums *sums)
{
    static const double steps[MOVES] = {-2, -1, 1, 2};
    struct script_input *in = &c->s->in[i];
    frit_tensor *inputs[SCRIPT_INPUTS] = {NULL}, *out[MOVES][OUTPUTS] = {{NULL}};
    double *before = in->floats, *moved = malloc((in->count + 1) * sizeof(*moved));
    frit_status st = FRIT_OK;

    assert_non_null(moved);
    in->floats = moved;
    for (uint32_t k = 0; k < c->s->n_in; k++)
        inputs[k] = k == i ? NULL : make_input(c, k);
    for (int m = 0; m < MOVES && !st; m++) {
        for (uint64_t e = 0; e < in->count; e++)
            moved[e] = before[e] + steps[m] * c->s->step * direction[e];
        inputs[i] = make_input(c, i);
        st = frit_graph_run(c->graph, c->device, inputs, c->s->n_in, out[m], c->n_out, &c->err);
        frit_release(inputs[i]);
    }
    for (int m = 0; m < MOVES && !st; m++)
        st = sum_up(c, out[m], &sums->at[m], &sums->size);
    for (uint32_t k = 0; k < c->s->n_in; k++) {
        if (k != i)
            frit_release(inputs[k]);
    }
    in->floats = before;
    free(moved);
    return st;
}

/* A gradient along a random direction beside the differences of order four; those of order two over
 * one and two steps show whether there is a derivative. */
static enum check_result compare(struct check *c, uint32_t i)
{
    const struct script_input *in = &c->s->in[i];
    double *direction = malloc((in->count + 1) * sizeof(*direction));
    double along = 0, size = 0, near, far, best, error;
    const double h = c->s->step;
    struct sums sums = {0};
    char text[256];
    frit_status st;

    assert_non_null(direction);
    for (uint64_t e = 0; e < in->count; e++) {
        direction[e] = factor(c->s) * fmax(fabs(in->floats[e]), 0.5);
        along += c->gradients[i][e] * direction[e];
        size += fabs(c->gradients[i][e] * direction[e]);
    }
    st = move(c, i, direction, &sums);
    free(direction);
    if (st)
        return complain(c, c->err.text);
    near = (double)(sums.at[2] - sums.at[1]) / (2 * h);
    far = (double)(sums.at[3] - sums.at[0]) / (4 * h);
    best = (4 * near - far) / 3;
    error = c->s->tolerance * (size + fabs(best)) + 2e-16 * 40 * sums.size / h + 1e-12;
    if (in->count == 0 || fabs(along - best) <= error)
        return CHECK_RIGHT;
    if (fabs(near - far) > 0.01 * fabs(along - best)) /* of a smooth function: about step^2 */
        return CHECK_KINK;
    snprintf(text, sizeof(text), "by %s the gradient is %.15g, differences give %.15g", in->name,
             along, best);
    return complain(c, text);
}

enum check_result check_script(frit_device *device, struct script *s)
{
    struct check c = {.device = device, .s = s};
    enum check_result result = CHECK_RIGHT;

    if (!prepare_graph(&c))
        return complain(&c, c.err.text);
    prepare_outputs(&c);
    prepare_inputs(&c);
    if (find_gradients(&c))
        result = complain(&c, c.err.text);
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (result == CHECK_RIGHT && c.watched[i])
            result = compare(&c, i);
        free(c.gradients[i]);
    }
    for (uint32_t k = 0; k < c.n_out; k++)
        free(c.out[k].factors);
    frit_graph_free(c.graph);
    return result;
}
