/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of ops.def as text: one valid call per row, made from a sample of its shape rule and
 * the letters of its operands, must print to what parses back to the same graph.  Each row is tried
 * with all operands and results, with none of the optional ones, and with a scalar for a tensor. */
#include "graph/verify.h"
#include "host/graph/graph_rig.h"

#include <string.h>

/* Dims of the tensor operands, separated by blanks, the last one for all that follow; and
 * attributes. */
struct sample {
    const char *record, *rule, *dims, *attrs;
};

static const struct sample samples[] = {
    {"dims", "reshape", "2,6", "dims=[3, 4]"},
    {"order", "permute", "2,3,4", "order=[2, 0, -2]"},
    {"dims", "expand", "1,3", "dims=[4, 3]"},
    {"slice", "slice", "5,6,7,8", "slices=[::-1, 1:5:2, :, -3:]"},
    {"axes", "flip", "2,3", "axes=[1, 0]"},
    {"unfold", "unfold", "2,9", "axis=1, size=3, step=2"},
    {"swap", "transpose", "2,3", "axis=0, with=-1"},
    {"axes", "squeeze", "1,3,1", "axes=[2]"},
    {"axis", "unsqueeze", "2,3", "axis=1"},
    {"none", "same", "2,3", ""},
    {"none", "same_all", "2,3", ""},
    {"cast", "same", "2,3", "dtype=bf16"},
    {"cast", "bitcast", "2,3", "dtype=u32"},
    {"collective", "same", "2,3", "combine=mean"},
    {"collective", "flat", "2,3", "combine=sum"},
    {"all_gather", "all_gather", "2,3", "ranks=4"},
    {"reduce_scatter", "reduce_scatter", "8,3", "ranks=4, combine=mean"},
    {"broadcast_from", "same", "2,3", "root=1"},
    {"none", "nothing", "", ""},
    {"init", "init", "", "dtype=f32, dims=[2, 0]"},
    {"init", "eye", "", "dtype=f64, dims=[3, 3]"},
    {"init", "arange", "", "dtype=i64, dims=[5]"},
    {"init", "raw", "", "dtype=u64, dims=[2]"},
    {"init", "uniform", "", "dtype=f16, dims=[2]"},
    {"init", "normal", "", "dtype=f32, dims=[]"},
    {"init", "integers", "", "dtype=u8, dims=[4]"},
    {"none", "broadcast", "2,1 3", ""},
    {"reduce", "reduce", "2,3,4", "axes=[0, 2], keep=1"},
    {"reduce", "reduce_some", "2,3", ""},
    {"reduce", "arg_reduce", "2,3", "axis=1"},
    {"axis", "scan", "2,3", "axis=-1"},
    {"sort", "sort", "2,3", "axis=0, descending=1"},
    {"topk", "topk", "2,5", "axis=1, k=3"},
    {"axis", "select", "2,5 4", "axis=1"},
    {"axis", "gather", "2,5 2,3", "axis=1"},
    {"scatter", "scatter", "2,5 2,3", "axis=1, update=add"},
    {"scatter", "select_assign", "2,5 3 2,3", "axis=1, update=max"},
    {"none", "gather_nd", "4,5 3,2", ""},
    {"update", "scatter_nd", "4,5 3,1 3,5", "update=min"},
    {"slice", "slice_assign", "4,5 2,5", "slices=[0:4:2]"},
    {"none", "embedding", "7,3 2,4", ""},
    {"none", "embedding_grad", "7,3 2,4,3 2,4", ""},
    {"axis", "cat", "2,3", "axis=0"},
    {"axis", "stack", "2,3", "axis=-1"},
    {"pad", "pad", "2,3", "low=[1, -1], high=[0, 2]"},
    {"repeat", "repeat", "2,3", "axis=0, times=3"},
    {"none", "matmul", "5,2,3 3,4", ""},
    {"axis", "cross", "2,3", "axis=1"},
    {"none", "linear", "5,3 3,4 4", ""},
    {"none", "linear_grad_x", "5,3 3,4 5,4", ""},
    {"none", "linear_grad_w", "5,3 3,4 5,4", ""},
    {"none", "last_dim", "5,4", ""},
    {"none", "channels", "2,3,4", ""},
    {"attention", "attention", "2,4,5,8 2,4,6,8 2,4,6,8 5,6", "scale=0.1, softcap=30, causal=1"},
    {"attention", "attention_grad", "2,4,5,8 2,4,6,8 2,4,6,8 5,6 4,5,6 2,4,5,8", "causal=1"},
    {"conv", "conv", "2,4,9,8 6,2,3,3 6", "stride=[2, 1], padding=[1, 0], groups=2"},
    {"conv", "conv_grad_x", "2,4,9 6,4,3 2,6,7", ""},
    {"conv", "conv_grad_w", "2,4,9 6,4,3 2,6,7", ""},
    {"conv_transpose", "conv_transpose", "2,4,5,5,5 4,6,3,3,3 6",
     "stride=[2, 2, 2], padding_out=[1, 0, 1]"},
    {"conv_transpose", "conv_transpose_grad_w", "2,4,5 4,6,3 2,6,7", ""},
    {"deform", "deform_conv", "2,4,6,6 2,18,4,4 3,4,3,3 2,9,4,4 3", ""},
    {"deform", "deform_grad", "2,4,6,6 2,18,4,4 3,4,3,3 2,9,4,4 3 2,3,4,4", ""},
    {"avg_pool", "avg_pool", "2,3,8,8", "kernel=[3, 2], padding=[1, 0], ceil=1, exclude_pad=1"},
    {"avg_pool", "avg_pool_grad", "2,3,8 2,3,4", "kernel=[2]"},
    {"max_pool", "max_pool", "2,3,8,8", "kernel=[3, 3], stride=[1, 2], dilation=[2, 1]"},
    {"max_pool", "max_pool_grad", "2,3,8 2,3,4", "kernel=[2]"},
    {"adaptive", "adaptive", "2,3,8,8", "size=[3, 5]"},
    {"none", "adaptive_grad", "2,3,8,8 2,3,3,5", ""},
    {"interpolate", "interpolate", "2,3,8,8", "size=[3, 5], mode=bicubic, align_corners=1"},
    {"interpolate", "interpolate_grad", "2,3,8,8 2,3,3,5", "size=[3, 5], mode=bilinear"},
    {"grid_sample", "grid_sample", "2,3,8,8 2,4,5,2", "mode=bilinear, border=reflection"},
    {"window", "unfold4d", "2,3,8,8", "kernel=[3, 3], padding=[1, 1]"},
    {"norm_axes", "norm_axes", "2,3,4 3,4", "axes=[1, 2], eps=0.001"},
    {"norm", "batch_norm", "2,3,4 3", "eps=1e-3"},
    {"norm_groups", "group_norm", "2,6,4 6", "groups=3"},
    {"fft", "rfft", "2,8", "axis=1, n=6"},
    {"fft", "irfft", "2,5", "axis=1"},
    {"ctc", "ctc_loss", "9,2,5 2,3 2", "blank=0"},
    {"ctc", "ctc_grad", "9,2,5 2,3 2", "blank=4"},
    {"quantize", "quantize", "4,8 2,2 ", "dtype=q8, block=[2, 4], scale=f32"},
    {"dequantize", "dequantize", "4,8 2,2 ", "block=[2, 4], scale=f32"},
};

struct row {
    uint32_t id;
    const char *record, *rule;
};

static const struct row rows[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    {id, #attrs, #shape},
#include <frit/ops.def>
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), N_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static const char *const letter_dtypes[] = {
    [FRIT_LETTER_NONE] = "f32", [FRIT_LETTER_T] = "f32", [FRIT_LETTER_N] = "f32",
    [FRIT_LETTER_F] = "f32",    [FRIT_LETTER_Z] = "i32", [FRIT_LETTER_L] = "i32",
    [FRIT_LETTER_R] = "f32",    [FRIT_LETTER_I] = "i64", [FRIT_LETTER_BOOL] = "bool",
    [FRIT_LETTER_I64] = "i64",  [FRIT_LETTER_P] = "q8",
};

static const struct sample *find_sample(const struct row *row)
{
    for (size_t i = 0; i < N_SAMPLES; i++) {
        if (!strcmp(samples[i].record, row->record) && !strcmp(samples[i].rule, row->rule))
            return &samples[i];
    }
    return NULL;
}

/* The dims of the next tensor operand; the last ones stay. */
static const char *next_dims(const char *dims)
{
    const char *blank = strchr(dims, ' ');

    return blank ? blank + 1 : dims;
}

enum mode { MODE_ALL, MODE_LEAST, MODE_SCALAR };

/* Whether the operand is written as a number; it must be the last one of its row. */
static bool is_number(const frit_op_info *row, uint32_t index, enum mode mode)
{
    return row->in[index].role == FRIT_ROLE_NUM ||
           (mode == MODE_SCALAR && (row->traits & FRIT_OP_SCALARS) && !row->in[index + 1].name);
}

/* Inputs of the row's operands, then the op. */
static void write_program(const frit_op_info *row, const struct sample *sample, enum mode mode,
                          struct str *out)
{
    bool optional = mode == MODE_ALL;
    struct str line = {0};
    const char *dims = sample->dims, *comma = " ";

    for (uint32_t i = 0; row->out[i].name; i++) {
        if (optional || row->out[i].role == FRIT_ROLE_OUT)
            str_addf(&line, "%sout_%s", i ? ", " : "", row->out[i].name);
    }
    str_addf(&line, "%s%s", line.length ? " = " : "", row->name);
    for (uint32_t i = 0; row->in[i].name; i++, comma = ", ") {
        const frit_slot_info *slot = &row->in[i];

        if (is_number(row, i, mode)) {
            str_addf(&line, "%s%u", comma, i + 1);
            continue;
        }
        if (!optional && slot->role == FRIT_ROLE_OPT) {
            str_addf(&line, "%snone", comma);
        } else {
            str_addf(out, "input %s : %s[%.*s]\n", slot->name, letter_dtypes[slot->letter],
                     (int)strcspn(dims, " "), dims);
            str_addf(&line, "%s%s", comma, slot->name);
            if (slot->role == FRIT_ROLE_MANY)
                str_addf(&line, ", %s", slot->name);
        }
        dims = next_dims(dims);
    }
    if (*sample->attrs)
        str_addf(&line, "%s%s", comma, sample->attrs);
    if (optional && (row->record == FRIT_RECORD_quantize || row->record == FRIT_RECORD_dequantize))
        str_addf(&line, ", global=f32");
    str_addf(out, "%s\n", line.text);
    str_fini(&line);
}

static void try_row(const struct row *row, enum mode mode)
{
    const struct sample *sample = find_sample(row);
    struct str text = {0};
    struct graph graph;
    frit_err err = ERR_INIT;

    if (!sample)
        fail_msg("no sample of %s with %s, for %s", row->rule, row->record, op_row(row->id)->name);
    write_program(op_row(row->id), sample, mode, &text);
    if (rig_graph(text.text, &graph, &err))
        fail_msg("%s%s", text.text, err.text);
    assert_int_equal(graph.n_ops, 1);
    assert_int_equal(graph.ops[0].op, row->id);
    assert_int_equal(graph_verify(&graph, &err), FRIT_OK);
    rig_assert_round_trip(&graph);
    graph_fini(&graph);
    str_fini(&text);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        try_row(&rows[i], MODE_ALL);
        try_row(&rows[i], MODE_LEAST);
        try_row(&rows[i], MODE_SCALAR);
    }
}

/* A sample that no row uses tests nothing. */
static void test_samples_are_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        bool used = false;

        for (size_t k = 0; k < N_ROWS; k++)
            used = used || find_sample(&rows[k]) == &samples[i];
        if (!used)
            fail_msg("sample %s %s", samples[i].record, samples[i].rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_samples_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
