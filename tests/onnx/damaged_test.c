/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are no models, or models that Frit cannot run: a message that says where, and nothing
 * else. */
#include "host/api/rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "onnx/onnx.h"

enum { MOST_BYTES = 1 << 14 };

static size_t read_model(const char *name, unsigned char *bytes)
{
    char path[128];
    size_t n;
    FILE *file;

    snprintf(path, sizeof(path), "tests/data/onnx/%s.onnx", name);
    file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(bytes, 1, MOST_BYTES, file);
    fclose(file);
    assert_in_range(n, 1, MOST_BYTES - 1);
    return n;
}

/* Opens and binds with unknown types; *problems is the caller's. */
static frit_status try_model(const void *bytes, size_t n, struct str *problems, frit_err *err)
{
    struct onnx_model *model;
    struct graph graph = {0};
    struct op_type *types;
    frit_status st = onnx_open("m.onnx", bytes, n, &model, err);

    if (st)
        return st;
    types = calloc((size_t)onnx_n_inputs(model) + 1, sizeof(*types));
    assert_non_null(types);
    st = onnx_bind(model, types, NULL, &graph, problems, err);
    free(types);
    graph_fini(&graph);
    onnx_unref(model);
    return st;
}

static void expect(const void *bytes, size_t n, frit_status status, const char *text)
{
    struct str problems = {0};
    frit_err err = {.struct_size = sizeof(err)};

    assert_int_equal(try_model(bytes, n, &problems, &err), status);
    if (!strstr(err.text, text))
        fail_msg("'%s' instead of '%s'", err.text, text);
    str_fini(&problems);
}

static void test_truncated_models_are_refused(void **state)
{
    static const char *const names[] = {"mlp", "control", "quantised"};
    static unsigned char bytes[MOST_BYTES];

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        size_t n = read_model(names[k], bytes);

        for (size_t cut = 0; cut < n; cut++) {
            unsigned char *copy = malloc(cut + 1); /* so that a read beyond is found */
            struct str problems = {0};
            frit_err err = {.struct_size = sizeof(err)};

            memcpy(copy, bytes, cut);
            if (try_model(copy, cut, &problems, &err))
                assert_true(strncmp(err.text, "m.onnx: ", 8) == 0);
            str_fini(&problems);
            free(copy);
        }
    }
}

static void test_changed_bytes_do_no_harm(void **state)
{
    static unsigned char bytes[MOST_BYTES];
    size_t n = read_model("shapes", bytes);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        unsigned char was = bytes[i];

        for (unsigned change = 1; change < 256; change <<= 1) {
            struct str problems = {0};
            frit_err err = {.struct_size = sizeof(err)};

            bytes[i] = (unsigned char)(was ^ change);
            (void)try_model(bytes, n, &problems, &err);
            str_fini(&problems);
        }
        bytes[i] = was;
    }
}

static void test_lengths_and_nesting_are_limited(void **state)
{
    static unsigned char deep[1 << 16];
    size_t n = sizeof(deep);

    (void)state;
    expect("", 0, FRIT_INVALID, "no graph");
    expect("input x : f32[2]\n", 17, FRIT_INVALID, "no ONNX model");
    expect("\x3a\xff\xff\xff\xff\x0f", 6, FRIT_INVALID,
           "longer than what is left at byte 1, in graph[0]");
    expect("\x3a\x02\x0a\x05", 4, FRIT_INVALID, "in graph[0].node[0]");
    expect("\x3a\x01", 2, FRIT_INVALID, "longer than what is left");
    expect("\x38\x05", 2, FRIT_INVALID, "a number in the place of a message");
    /* graph, then node, attribute, graph over and over, from the inside out */
    for (uint32_t level = 0; n > 16 || level % 3 != 1; level++) {
        static const unsigned char tags[] = {0x0a, 0x2a, 0x32}; /* node, attribute, g */
        size_t length = sizeof(deep) - n;

        deep[--n] = (unsigned char)(length >> 14);
        deep[--n] = (unsigned char)(length >> 7 | 0x80);
        deep[--n] = (unsigned char)(length | 0x80);
        deep[--n] = tags[2 - level % 3];
    }
    deep[n] = 0x3a;
    expect(deep + n, sizeof(deep) - n, FRIT_INVALID, "messages nested too deep");
}

/* What the text of a model's protobuf would be: a graph of nodes, each "op:input,...:output". */
struct made {
    unsigned char bytes[2048];
    size_t n;
};

static void put_field(struct made *to, unsigned tag, const void *bytes, size_t n)
{
    to->bytes[to->n++] = (unsigned char)(tag << 3 | 2);
    if (n >= 128) {
        to->bytes[to->n++] = (unsigned char)(n | 0x80);
        to->bytes[to->n++] = (unsigned char)(n >> 7);
    } else {
        to->bytes[to->n++] = (unsigned char)n;
    }
    memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
}

static void put_node(struct made *graph, const char *op, const char *in, const char *out)
{
    struct made node = {.n = 0};

    put_field(&node, 1, in, strlen(in));
    put_field(&node, 2, out, strlen(out));
    put_field(&node, 4, op, strlen(op));
    put_field(graph, 1, node.bytes, node.n);
}

/* An f32[2] input x, the nodes, an output y. */
static struct made make_model(const struct made *nodes)
{
    static const unsigned char type[] = {0x0a, 0x08, 0x08, 0x01, 0x12,
                                         0x04, 0x0a, 0x02, 0x08, 0x02};
    static const unsigned char opset[] = {0x10, 0x11};
    struct made graph = *nodes, value = {.n = 0}, model = {.n = 0};

    put_field(&value, 1, "x", 1);
    put_field(&value, 2, type, sizeof(type));
    put_field(&graph, 11, value.bytes, value.n);
    value.n = 0;
    put_field(&value, 1, "y", 1);
    put_field(&graph, 12, value.bytes, value.n);
    put_field(&model, 7, graph.bytes, graph.n);
    put_field(&model, 8, opset, sizeof(opset));
    return model;
}

static void test_cycles_are_refused(void **state)
{
    struct made nodes = {.n = 0}, model;

    (void)state;
    put_node(&nodes, "Relu", "b", "a");
    put_node(&nodes, "Relu", "a", "b");
    put_node(&nodes, "Neg", "x", "y");
    model = make_model(&nodes);
    expect(model.bytes, model.n, FRIT_UNSUPPORTED, "nodes are missing, out of order or a cycle");
}

/* An operand that the op does not have is no operand to pass over; an absent one at the end is. */
static void test_surplus_operands_are_refused(void **state)
{
    struct made nodes = {.n = 0}, node = {.n = 0}, model;

    (void)state;
    put_field(&node, 1, "x", 1);
    put_field(&node, 1, "x", 1);
    put_field(&node, 2, "y", 1);
    put_field(&node, 4, "Neg", 3);
    put_field(&nodes, 1, node.bytes, node.n);
    model = make_model(&nodes);
    expect(model.bytes, model.n, FRIT_UNSUPPORTED, "2 operands; the op has at most 1");
    nodes.n = node.n = 0;
    put_field(&node, 1, "x", 1);
    put_field(&node, 1, "", 0);
    put_field(&node, 2, "y", 1);
    put_field(&node, 4, "Neg", 3);
    put_field(&nodes, 1, node.bytes, node.n);
    model = make_model(&nodes);
    expect(model.bytes, model.n, FRIT_OK, "");
}

static void test_all_problems_are_listed(void **state)
{
    struct made nodes = {.n = 0}, model;
    struct str problems = {0};
    frit_err err = {.struct_size = sizeof(err)};

    (void)state;
    put_node(&nodes, "Frobnicate", "x", "a");
    put_node(&nodes, "Relu", "a", "b"); /* depends on it: no problem of its own */
    put_node(&nodes, "NonZero", "x", "c");
    put_node(&nodes, "And", "x", "d");
    put_node(&nodes, "Relu", "x", "y");
    model = make_model(&nodes);
    assert_int_equal(try_model(model.bytes, model.n, &problems, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "(and 2 more)"));
    assert_non_null(strstr(problems.text, "node 0 (Frobnicate, which gives a): "));
    assert_null(strstr(problems.text, "node 1"));
    assert_non_null(strstr(problems.text, "node 2 (NonZero"));
    assert_non_null(strstr(problems.text, "node 3 (And"));
    str_fini(&problems);
}

/* Well formed, but what they say would reach beyond memory or run for years (hostile.py). */
static void test_hostile_models_are_refused(void **state)
{
    static const struct {
        const char *name, *text;
    } models[] = {
        {"block-scale", "rank 9"},
        {"blocks", "do not divide"},
        {"einsum", "does not fit operand 0"},
        {"fractions",
         "node 0 (Reshape, which gives r): an operand that names places or dims is f32"},
        {"loops", "more than 1048576 nodes"},
        {"lstm", "do not broadcast"},
        {"mel", "2147483648 bands"},
        {"output-shape", "output_shape has 1 numbers"},
        {"reshape", "more than 63 bits"},
        {"resize", "dim 0 becomes 1073741824"},
        {"rotary", "do not broadcast"},
        {"split", "the parts do not match"},
        {"top", "k is 5, the axis has 2 elements"},
        {"target", "axis 1 of a tensor with 0 dims"},
    };
    static unsigned char bytes[MOST_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        char name[64];

        snprintf(name, sizeof(name), "hostile/%s", models[i].name);
        expect(bytes, read_model(name, bytes), FRIT_UNSUPPORTED, models[i].text);
    }
    expect(bytes, read_model("hostile/mel-below", bytes), FRIT_OK, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_models_are_refused),
        cmocka_unit_test(test_changed_bytes_do_no_harm),
        cmocka_unit_test(test_lengths_and_nesting_are_limited),
        cmocka_unit_test(test_cycles_are_refused),
        cmocka_unit_test(test_surplus_operands_are_refused),
        cmocka_unit_test(test_all_problems_are_listed),
        cmocka_unit_test(test_hostile_models_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
