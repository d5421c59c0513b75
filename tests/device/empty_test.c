/* SPDX-License-Identifier: Apache-2.0 */
/* Products, convolutions and attention with an extent of 0: sums of nothing are 0, alone, behind
 * ops on the operands and before ops on the result; gradients likewise.  What a program has to give
 * is what reference:0 gives for the same program with zeros in the product's place. */
#include "device/rig.h"

#include <stdio.h>
#include <string.h>

#include <frit/grad.h>

enum { MAX_TEXT = 2048, MAX_PORTS = 8 };

/* ---- programs ---- */

/* "T" stands for the element type.  `product` makes m; so does `zeros`, without a product. */
struct product {
    const char *inputs, *product, *zeros;
};

/* Sums over an empty k, and results without elements: rows, columns, batches. */
static const struct product of_numbers[] = {
    {"a : T[3, 0]; b : T[0, 5]; c : T[3, 5]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[3, 5]"},
    {"a : T[70, 0]; b : T[0, 133]; c : T[133]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[70, 133]"},
    {"a : T[0, 70]; b : T[133, 0]; c : T[70, 1]",
     "p = permute a, order=[1, 0]; q = permute b, order=[1, 0]; m = matmul p, q",
     "m = full 0, dtype=T, dims=[70, 133]"},
    {"a : T[1, 0]; b : T[0, 300]; c : T[1, 300]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[1, 300]"},
    {"a : T[2, 1, 3, 0]; b : T[4, 0, 5]; c : T[4, 1, 5]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[2, 4, 3, 5]"},
    {"a : T[0, 4]; b : T[4, 5]; c : T[1, 5]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[0, 5]"},
    {"a : T[3, 4]; b : T[4, 0]; c : T[3, 1]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[3, 0]"},
    {"a : T[0, 3, 4]; b : T[4, 5]; c : T[1, 5]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[0, 3, 5]"},
    {"a : T[0, 0]; b : T[0, 0]; c : T[1, 1]", "m = matmul a, b",
     "m = full 0, dtype=T, dims=[0, 0]"},
};

static const struct product of_reals[] = {
    {"a : T[7, 0]; b : T[0, 5]; e : T[5]; c : T[7, 5]", "m = linear a, b, e",
     "zero = full 0, dtype=T, dims=[7, 5]; m = add zero, e"},
    {"a : T[0, 4]; b : T[4, 5]; e : T[5]; c : T[1, 5]", "m = linear a, b, e",
     "m = full 0, dtype=T, dims=[0, 5]"},
    {"a : T[0, 4]; g : T[0, 5]; b : T[4, 5]; c : T[4, 5]", "m = linear_backward_w a, b, g",
     "m = full 0, dtype=T, dims=[4, 5]"},
    {"a : T[7, 4]; g : T[7, 0]; b : T[4, 0]; c : T[7, 4]", "m = linear_backward_x a, b, g",
     "m = full 0, dtype=T, dims=[7, 4]"},
    {"x : T[2, 0, 9, 7]; w : T[4, 0, 3, 3]; e : T[4]; c : T[4, 1, 1]",
     "m = conv x, w, e, padding=[1, 1]",
     "zero = full 0, dtype=T, dims=[2, 4, 9, 7]; f = reshape e, dims=[4, 1, 1]; m = add zero, f"},
    {"x : T[2, 3, 9, 7]; w : T[0, 3, 3, 3]; c : T[5]", "m = conv x, w",
     "m = full 0, dtype=T, dims=[2, 0, 7, 5]"},
    {"x : T[0, 3, 11]; w : T[4, 3, 3]; e : T[4]; c : T[9]", "m = conv x, w, e",
     "m = full 0, dtype=T, dims=[0, 4, 9]"},
    {"x : T[2, 0, 5]; w : T[0, 4, 3]; e : T[4]; c : T[4, 1]", "m = conv_transpose x, w, e",
     "zero = full 0, dtype=T, dims=[2, 4, 7]; f = reshape e, dims=[4, 1]; m = add zero, f"},
    {"x : T[2, 3, 9]; w : T[0, 3, 3]; g : T[2, 0, 7]; c : T[3, 9]", "m = conv_backward_x x, w, g",
     "m = full 0, dtype=T, dims=[2, 3, 9]"},
    {"x : T[0, 3, 9]; w : T[4, 3, 3]; g : T[0, 4, 7]; c : T[3, 3]", "m = conv_backward_w x, w, g",
     "m = full 0, dtype=T, dims=[4, 3, 3]"},
    {"x : T[0, 3, 5]; w : T[3, 4, 3]; g : T[0, 4, 7]; c : T[4, 3]",
     "m = conv_transpose_backward_w x, w, g", "m = full 0, dtype=T, dims=[3, 4, 3]"},
    {"q : T[2, 3, 0, 8]; k : T[2, 3, 7, 8]; v : T[2, 3, 7, 4]; c : T[4]", "m = attention q, k, v",
     "m = full 0, dtype=T, dims=[2, 3, 0, 4]"},
    {"q : T[2, 0, 5, 8]; k : T[2, 1, 7, 8]; v : T[2, 1, 7, 4]; c : T[4]", "m = attention q, k, v",
     "m = full 0, dtype=T, dims=[2, 0, 5, 4]"},
    {"q : T[0, 3, 5, 8]; k : T[0, 3, 7, 8]; v : T[0, 3, 7, 4]; c : T[4]",
     "m = attention q, k, v, causal=1", "m = full 0, dtype=T, dims=[0, 3, 5, 4]"},
    {"q : T[2, 3, 5, 8]; k : T[2, 3, 7, 8]; v : T[2, 3, 7, 0]; c : T[1]", "m = attention q, k, v",
     "m = full 0, dtype=T, dims=[2, 3, 5, 0]"},
};

/* Attention without keys, or of vectors without elements, which its kernels refuse: core ops run.
 */
static const struct product of_no_keys[] = {
    {"q : T[2, 3, 5, 8]; k : T[2, 3, 0, 8]; v : T[2, 3, 0, 4]; c : T[5, 4]",
     "m = attention q, k, v", "m = full 0, dtype=T, dims=[2, 3, 5, 4]"},
    {"q : T[2, 6, 70, 64]; k : T[2, 3, 0, 64]; v : T[2, 3, 0, 64]; e : T[70, 0]; c : T[64]",
     "m = attention q, k, v, none, e, causal=1", "m = full 0, dtype=T, dims=[2, 6, 70, 64]"},
    /* Scores of 0: the mean of 4 values. */
    {"q : T[1, 2, 3, 0]; k : T[1, 2, 4, 0]; v : T[1, 2, 4, 5]; c : T[5]",
     "m = attention q, k, v, scale=1.0",
     "h = mean v, axes=[2], keep=1; zero = full 0, dtype=T, dims=[1, 2, 3, 5]; m = add zero, h"},
    /* Without a name: products and a softmax. */
    {"q : T[2, 5, 0]; k : T[2, 0, 4]; v : T[2, 4, 6]; c : T[6]",
     "n = matmul q, k; r = softmax n, axis=2; m = matmul r, v",
     "h = mean v, axes=[1], keep=1; zero = full 0, dtype=T, dims=[2, 5, 6]; m = add zero, h"},
    {"q : T[2, 5, 8]; k : T[2, 8, 0]; v : T[2, 0, 6]; c : T[6]",
     "n = matmul q, k; r = softmax n, axis=2; m = matmul r, v",
     "m = full 0, dtype=T, dims=[2, 5, 6]"},
};

/* How an operand NAME : TDIMS comes about; @ stands for NAME, $ for DIMS. */
static const char *const before[] = {
    "input @ : T$;",
    "input of_@ : T$; @ = mul of_@, 2;",
    "input of_@ : i8$; @ = cast of_@, dtype=T;",
};

static const char *const after[] = {
    "output y = m",
    "s = add m, c; output y = relu s",
    "s = add m, c; output y = relu s; output twice = mul s, 2",
    "s = add m, c; output y = sum s, axes=[-1]",
};

enum { N_BEFORE = sizeof(before) / sizeof(before[0]), N_AFTER = sizeof(after) / sizeof(after[0]) };

/* Appends `from` to `text`, with what its signs stand for. */
static void put(char *text, const char *from, const char *type, const char *name, size_t n_name,
                const char *dims, size_t n_dims)
{
    size_t n = strlen(text);

    for (; *from && n + 64 < MAX_TEXT; from++) {
        if (*from == 'T')
            n += (size_t)snprintf(text + n, MAX_TEXT - n, "%s", type);
        else if (*from == '@')
            n += (size_t)snprintf(text + n, MAX_TEXT - n, "%.*s", (int)n_name, name);
        else if (*from == '$')
            n += (size_t)snprintf(text + n, MAX_TEXT - n, "%.*s", (int)n_dims, dims);
        else
            text[n++] = *from == ';' ? '\n' : *from;
    }
    text[n] = 0;
}

static void put_text(char *text, const char *from, const char *type)
{
    put(text, from, type, "", 0, "", 0);
}

/* `inputs` is a list of NAME : TDIMS. */
static void put_inputs(char *text, const char *inputs, const char *type, const char *how)
{
    for (const char *next = inputs; *next; next += strspn(next, "; ")) {
        const char *dims = strchr(next, '[');
        const bool is_operand = *next != 'c' && *next != 'e';

        put(text, is_operand ? how : before[0], type, next, strcspn(next, " "), dims,
            strcspn(dims, "]") + 1);
        next += strcspn(next, ";");
    }
}

/* ---- runs ---- */

/* The program, bound to the types of its inputs, which `ports` gets. */
static frit_graph *parse(const char *text, frit_port *ports, uint64_t *n_ports)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph;

    if (frit_graph_parse("empty", text, strlen(text), &graph, &err))
        fail_msg("%s in\n%s", err.text, text);
    for (*n_ports = 0; *n_ports < MAX_PORTS; ++*n_ports) {
        ports[*n_ports] = (frit_port){.struct_size = sizeof(*ports)};
        if (frit_graph_input_at(graph, *n_ports, &ports[*n_ports]))
            break;
    }
    if (frit_graph_bind(graph, ports, *n_ports, &err))
        fail_msg("%s in\n%s", err.text, text);
    return graph;
}

/* Whole numbers between -4 and 4, the same for the same input; made on `by`, so that the device has
 * the program's own ops alone. */
static frit_tensor *numbers_for(frit_device *device, frit_device *by, const frit_port *port,
                                uint64_t number)
{
    const uint64_t count = rig_count(port->dims);
    frit_err err = {.struct_size = sizeof(err)};
    uint64_t state = number * 2 + 1, bytes;
    int8_t *data = malloc(count + 1);
    frit_tensor *whole, *cast;
    void *elements;

    assert_non_null(data);
    for (uint64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u; /* MMIX's */
        data[i] = (int8_t)((int8_t)((state >> 33) % 9) - 4);
    }
    whole = frit_from_host(by, FRIT_I8, port->dims, data, count);
    cast = frit_cast(whole, port->dtype);
    bytes = frit_storage_bytes(port->dtype, (int64_t)count);
    elements = malloc(bytes + 1);
    assert_non_null(elements);
    assert_int_equal(frit_read(cast, elements, bytes, &err), FRIT_OK);
    frit_release(whole);
    frit_release(cast);
    cast = frit_from_host(device, port->dtype, port->dims, elements, bytes);
    free(elements);
    free(data);
    return cast;
}

/* The results of a program. */
struct results {
    char *y[2];
    uint64_t bytes[2], n;
};

static char *read_bytes(frit_tensor *tensor, const frit_port *port, uint64_t *bytes)
{
    char *data;

    *bytes = frit_storage_bytes(port->dtype, (int64_t)rig_count(port->dims));
    data = malloc(*bytes + 1);
    assert_non_null(data);
    if (frit_read(tensor, data, *bytes, NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    frit_release(tensor);
    return data;
}

static struct results run(frit_device *device, frit_device *by, const char *text)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_port ports[MAX_PORTS], port = {.struct_size = sizeof(port)};
    frit_tensor *in[MAX_PORTS], *out[2];
    struct results r = {.n = 0};
    uint64_t n_in;
    frit_graph *graph = parse(text, ports, &n_in);

    for (uint64_t i = 0; i < n_in; i++)
        in[i] = numbers_for(device, by, &ports[i], i);
    while (r.n < 2 && !frit_graph_output_at(graph, r.n, &port))
        r.n++;
    if (frit_graph_run(graph, device, in, n_in, out, r.n, &err))
        fail_msg("%s in\n%s", err.text, text);
    for (uint64_t k = 0; k < r.n; k++) {
        assert_int_equal(frit_graph_output_at(graph, k, &port), FRIT_OK);
        r.y[k] = read_bytes(out[k], &port, &r.bytes[k]);
    }
    for (uint64_t i = 0; i < n_in; i++)
        frit_release(in[i]);
    frit_graph_free(graph);
    return r;
}

static void compare(const char *text, const struct results *got, const struct results *want)
{
    assert_int_equal(got->n, want->n);
    for (uint64_t k = 0; k < got->n; k++) {
        assert_int_equal(got->bytes[k], want->bytes[k]);
        for (uint64_t i = 0; i < got->bytes[k]; i++)
            if (got->y[k][i] != want->y[k][i])
                fail_msg("result %llu, byte %llu of %llu is %#x, not %#x, of\n%s",
                         (unsigned long long)k, (unsigned long long)i,
                         (unsigned long long)got->bytes[k], (unsigned char)got->y[k][i],
                         (unsigned char)want->y[k][i], text);
        free(got->y[k]);
        free(want->y[k]);
    }
}

/* ---- hosts ---- */

/* What cpu:0 may do with a kernel: interpret it, or compile it. */
static const char *const tiers[] = {"0", "1"};

static void open_with_tier(struct rig *rig, const char *tier)
{
    const frit_setting settings[] = {{"frit", "poison", "yes"},
                                     {"plugin.cpu", "option.tier", tier}};

    rig_open_with(rig, settings, 2);
}

static size_t n_tiers(void)
{
    const char *device = getenv("FRIT_TEST_DEVICE");

    return !device || strncmp(device, "cpu", 3) == 0 ? 2 : 1;
}

/* ---- products ---- */

static void check(struct rig *rig, frit_device *reference, const struct product *p,
                  const char *type, size_t b, size_t a)
{
    static char text[MAX_TEXT], zeros[MAX_TEXT];
    struct results got, want;

    text[0] = 0;
    put_inputs(text, p->inputs, type, before[b]);
    strcpy(zeros, text);
    put_text(text, p->product, type);
    put_text(zeros, p->zeros, type);
    put_text(text, ";", type);
    put_text(zeros, ";", type);
    put_text(text, after[a], type);
    put_text(zeros, after[a], type);
    got = run(rig->dev, reference, text);
    want = run(reference, reference, zeros);
    compare(text, &got, &want);
}

/* Each product of each type, in one of the surroundings; in all of them with FRIT_TEST_LONG=1. */
static void check_all(const struct product *products, size_t n, const char *const *types,
                      size_t n_types, bool is_refused)
{
    frit_err err = {.struct_size = sizeof(err)};
    const size_t every = getenv("FRIT_TEST_LONG") ? 1 : (size_t)N_BEFORE * N_AFTER;
    const size_t step = rig_is_short() ? 3 : 1;
    frit_device *reference;
    struct rig rig;

    for (size_t t = 0; t < n_tiers(); t++) {
        open_with_tier(&rig, tiers[t]);
        assert_int_equal(frit_device_open(rig.host, "reference:0", &reference, &err), FRIT_OK);
        for (size_t i = 0; i < n * n_types; i += step)
            for (size_t k = (i + i / n) % every; k < (size_t)N_BEFORE * N_AFTER; k += every)
                check(&rig, reference, &products[i % n], types[i / n], k % N_BEFORE, k / N_BEFORE);
        frit_device_close(reference);
        rig.may_run_by_ops = is_refused;
        rig_close(&rig);
    }
}

static void test_numbers(void **state)
{
    static const char *const types[] = {"f32", "f16", "i32", "i8", "f64"};

    (void)state;
    check_all(of_numbers, sizeof(of_numbers) / sizeof(of_numbers[0]), types, 5, false);
}

static void test_reals(void **state)
{
    static const char *const types[] = {"f32", "bf16"};

    (void)state;
    check_all(of_reals, sizeof(of_reals) / sizeof(of_reals[0]), types, 2, false);
    check_all(of_no_keys, sizeof(of_no_keys) / sizeof(of_no_keys[0]), types, 2, true);
}

/* ---- gradients ---- */

/* Of three tensors.  Of the sum of its result's squares the gradient by the last operand is the
 * operand itself `times`, all others are 0. */
struct function {
    const char *name;
    frit_tensor *(*of)(frit_tensor *const *in);
    double times;
    frit_dims dims[3];
};

static frit_tensor *of_matmul(frit_tensor *const *in)
{
    return frit_add(frit_matmul(in[0], in[1]), in[2]);
}

static frit_tensor *of_linear(frit_tensor *const *in)
{
    return frit_linear(in[0], in[1], in[2]);
}

static frit_tensor *of_conv(frit_tensor *const *in)
{
    return frit_conv(in[0], in[1], in[2], .padding = {1, 1});
}

static frit_tensor *of_conv_transpose(frit_tensor *const *in)
{
    return frit_conv_transpose(in[0], in[1], in[2], .stride = {2});
}

static frit_tensor *of_attention(frit_tensor *const *in)
{
    return frit_attention(in[0], in[1], in[2], NULL, NULL, .scale = 1, .causal = 1);
}

static const struct function functions[] = {
    {"matmul, k = 0", of_matmul, 6, {{2, {3, 0}}, {2, {0, 5}}, {1, {5}}}},
    {"matmul, no rows", of_matmul, 0, {{2, {0, 4}}, {2, {4, 5}}, {1, {5}}}},
    {"linear, k = 0", of_linear, 14, {{2, {7, 0}}, {2, {0, 5}}, {1, {5}}}},
    {"linear, no rows", of_linear, 0, {{3, {2, 0, 4}}, {2, {4, 5}}, {1, {5}}}},
    {"linear, no columns", of_linear, 0, {{2, {7, 4}}, {2, {4, 0}}, {1, {0}}}},
    {"conv, no channels", of_conv, 100, {{4, {2, 0, 5, 5}}, {4, {4, 0, 3, 3}}, {1, {4}}}},
    {"conv, no results", of_conv, 0, {{4, {2, 3, 5, 5}}, {4, {0, 3, 3, 3}}, {1, {0}}}},
    {"conv, no batch", of_conv, 0, {{4, {0, 3, 5, 5}}, {4, {4, 3, 3, 3}}, {1, {4}}}},
    {"conv_transpose, no channels",
     of_conv_transpose,
     44,
     {{3, {2, 0, 5}}, {3, {0, 4, 3}}, {1, {4}}}},
    {"conv_transpose, no batch", of_conv_transpose, 0, {{3, {0, 3, 5}}, {3, {3, 4, 3}}, {1, {4}}}},
    {"attention, no keys",
     of_attention,
     0,
     {{4, {1, 2, 5, 4}}, {4, {1, 2, 0, 4}}, {4, {1, 2, 0, 4}}}},
    {"attention, no queries",
     of_attention,
     0,
     {{4, {1, 2, 0, 4}}, {4, {1, 2, 5, 4}}, {4, {1, 2, 5, 4}}}},
};

/* The gradients by all operands. */
static void differentiate(frit_device *device, const struct function *f, frit_tensor *const *in,
                          frit_tensor **grads)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_scope scope = frit_scope_begin(device);
    frit_tensor *y;

    assert_int_equal(frit_grad_begin(device, &err), FRIT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(frit_grad_watch(in[i], &err), FRIT_OK);
    y = f->of(in);
    if (frit_grad_backward(frit_sum(frit_mul(y, y)), &err))
        fail_msg("%s: %s", f->name, err.text);
    for (int i = 0; i < 3; i++)
        grads[i] = frit_keep(frit_ref(frit_grad_of(in[i])));
    frit_grad_end(device);
    frit_scope_end(scope);
}

static void check_gradients(struct rig *rig, const struct function *f)
{
    float *numbers = rig_numbers(1024);
    frit_tensor *in[3], *grads[3];

    for (int i = 0; i < 3; i++)
        in[i] = rig_tensor(rig, f->dims[i], numbers);
    differentiate(rig->dev, f, in, grads);
    for (int i = 0; i < 3; i++) {
        float *grad = rig_read(grads[i]);

        for (uint64_t k = 0; k < rig_count(f->dims[i]); k++) {
            const double want = i == 2 ? f->times * (double)numbers[k] : 0;

            if (!rig_near((double)grad[k], want, want, 16))
                fail_msg("%s: gradient %d, element %llu is %g, not %g", f->name, i,
                         (unsigned long long)k, (double)grad[k], want);
        }
        free(grad);
        frit_release(in[i]);
    }
    free(numbers);
}

static void test_gradients(void **state)
{
    struct rig rig;

    (void)state;
    for (size_t t = 0; t < n_tiers(); t++) {
        open_with_tier(&rig, tiers[t]);
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
            check_gradients(&rig, &functions[i]);
        rig.may_run_by_ops = true; /* attention without keys */
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
