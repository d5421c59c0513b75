/* SPDX-License-Identifier: Apache-2.0 */
/* Every shape rule with calls it takes and calls it refuses, and the rules that have an obvious
 * slow form against that form on random shapes. */
#include <string.h>

#include "graph/shape/shape.h"
#include "host/graph/calls.h"
#include "unit.h"

struct shape_case {
    const char *op;
    const char *operands;
    const void *attrs;
    const char *text; /* of the results, or of the error */
};

static const struct shape_case good[] = {
    /* views */
    {"reshape", "f32[2, 6]", ATTRS(dims, .dims = {2, {3, -1}}), "f32[3, 4]"},
    {"reshape", "f32[1, 1]", ATTRS(dims, .dims = {0, {0}}), "f32[]"},
    {"reshape", "f32[0, 6]", ATTRS(dims, .dims = {2, {-1, 3}}), "f32[0, 3]"},
    {"permute", "i8[2, 3, 4]", ATTRS(order, .order = {3, {-1, 0, 1}}), "i8[4, 2, 3]"},
    {"permute", "f32[]", NULL, "f32[]"},
    {"expand", "bool[3, 1]", ATTRS(dims, .dims = {3, {2, -1, 4}}), "bool[2, 3, 4]"},
    {"expand", "f32[1]", ATTRS(dims, .dims = {1, {0}}), "f32[0]"},
    {"slice", "f32[10, 4]", ATTRS(slice, .slices = {1, {{1, -1, 3}}}), "f32[3, 4]"},
    {"slice", "f32[5]", ATTRS(slice, .slices = {1, {{3, FRIT_SLICE_END, -2}}}), "f32[2]"},
    {"slice", "f32[5]", ATTRS(slice, .slices = {1, {{4, 2, 1}}}), "f32[0]"},
    {"flip", "u16[2, 3]", ATTRS(axes, .axes = {1, {-1}}), "u16[2, 3]"},
    {"unfold", "f32[2, 10]", ATTRS(unfold, .axis = 1, .size = 4, .step = 3), "f32[2, 3, 4]"},
    {"unfold", "f32[4]", ATTRS(unfold, .axis = 0, .size = 4), "f32[1, 4]"},
    {"transpose", "f32[2, 3, 4]", ATTRS(swap, .axis = 0, .with = -1), "f32[4, 3, 2]"},
    {"squeeze", "f32[1, 3, 1]", NULL, "f32[3]"},
    {"squeeze", "f32[1, 3, 1]", ATTRS(axes, .axes = {1, {-1}}), "f32[1, 3]"},
    {"unsqueeze", "f32[2, 3]", ATTRS(axis, .axis = -1), "f32[2, 3, 1]"},
    {"slice_assign", "f32[4, 5]; f32[2, 5]", ATTRS(slice, .slices = {1, {{0, 4, 2}}}), "f32[4, 5]"},
    /* from nothing, elementwise */
    {"copy", "f32[2, 0]", NULL, "f32[2, 0]"},
    {"cast", "f32[7]", ATTRS(cast, .dtype = FRIT_BOOL), "bool[7]"},
    {"bitcast", "f32[7, 2]", ATTRS(cast, .dtype = FRIT_U32), "u32[7, 2]"},
    {"bitcast", "u8[3]", ATTRS(cast, .dtype = FRIT_F8E5M2), "f8e5m2[3]"},
    {"bitcast", "f8e8m0[3]", ATTRS(cast, .dtype = FRIT_U8), "u8[3]"},
    {"bitcast", "bool[3]", ATTRS(cast, .dtype = FRIT_I8), "i8[3]"},
    {"full", "2.5", ATTRS(init, .dtype = FRIT_BF16, .dims = {2, {2, 3}}), "bf16[2, 3]"},
    {"arange", "0; 2", ATTRS(init, .dtype = FRIT_I16, .dims = {1, {5}}), "i16[5]"},
    {"eye", "", ATTRS(init, .dtype = FRIT_F32, .dims = {3, {2, 3, 4}}), "f32[2, 3, 4]"},
    {"random_raw", "", ATTRS(init, .dtype = FRIT_U64, .dims = {1, {3}}), "u64[3]"},
    {"random_uniform", "-1; 1", ATTRS(init, .dtype = FRIT_F16, .dims = {1, {3}}), "f16[3]"},
    {"random_normal", "0; 1", ATTRS(init, .dtype = FRIT_F64, .dims = {1, {3}}), "f64[3]"},
    {"random_int", "-5; 5", ATTRS(init, .dtype = FRIT_I8, .dims = {1, {3}}), "i8[3]"},
    {"random_bernoulli", "0.5", ATTRS(init, .dtype = FRIT_BOOL, .dims = {1, {3}}), "bool[3]"},
    {"add", "f32[3, 1]; f32[4]", NULL, "f32[3, 4]"},
    {"add", "f32[1]; f32[0]", NULL, "f32[0]"},
    {"add", "f32[]; 1", NULL, "f32[]"},
    {"eq", "bool[2]; 1", NULL, "bool[2]"},
    {"where", "bool[4, 1]; 0; i8[3]", NULL, "i8[4, 3]"},
    {"clamp", "0; f32[2, 1]; f32[3]", NULL, "f32[2, 3]"},
    {"cross", "f32[2, 3]; f32[3]", ATTRS(axis, .axis = -1), "f32[2, 3]"},
    {"relu_backward", "f32[2, 3]; f32[2, 3]", NULL, "f32[2, 3]"},
    {"sync_collective", "", NULL, ""},
    {"all_reduce_coalesced", "f32[2, 3]; f32[]; f32[0, 4]", NULL, "f32[7]"},
    {"all_gather", "f32[2, 3]", ATTRS(all_gather, .ranks = 4), "f32[8, 3]"},
    {"reduce_scatter", "f32[8, 3]", ATTRS(reduce_scatter, .ranks = 4), "f32[2, 3]"},
    {"quantize", "f32[4, 6]; f32[4, 2]; none",
     ATTRS(quantize, .dtype = FRIT_Q8, .block = {2, {1, 4}}, .scale = 1), "q8[4, 6]"},
    {"quantize", "f32[4]; f32[]; f32[]", ATTRS(quantize, .dtype = FRIT_Q4, .global = 2), "q4[4]"},
    {"dequantize", "q8[4, 6]; f16[]; none", NULL, "f16[4, 6]"},
    {"dequantize", "q4[4, 6]; f64[2, 3]; f64[]",
     ATTRS(dequantize, .block = {2, {2, 2}}, .global = 1), "f64[4, 6]"},
    /* along axes */
    {"sum", "f32[2, 3, 4]", NULL, "f32[]"},
    {"sum", "f32[2, 0, 4]", ATTRS(reduce, .axes = {1, {1}}), "f32[2, 4]"},
    {"sum", "f32[2, 3, 4]", ATTRS(reduce, .axes = {2, {-1, 0}}, .keep = 1), "f32[1, 3, 1]"},
    {"max", "f32[2, 3]", ATTRS(reduce, .axes = {1, {0}}), "f32[3]"},
    {"max", "f32[0, 0]", ATTRS(reduce, .axes = {1, {0}}), "f32[0]"},
    {"argmax", "f32[2, 3]", ATTRS(reduce, .axes = {1, {-1}}), "i64[2]"},
    {"argmin", "bool[2, 3]", NULL, "i64[]"},
    {"cumsum", "i32[2, 3]", ATTRS(axis, .axis = 1), "i32[2, 3]"},
    {"sort", "f32[2, 3]", ATTRS(sort, .axis = 1), "f32[2, 3]; i64[2, 3]"},
    {"argsort", "f32[2, 3]", ATTRS(sort, .axis = 1), "i64[2, 3]"},
    {"topk", "f32[2, 3]", ATTRS(topk, .axis = 1, .k = 2), "f32[2, 2]; i64[2, 2]"},
    {"layer_norm", "f32[2, 3, 4]; f32[3, 4]; none", ATTRS(norm_axes, .axes = {2, {2, 1}}),
     "f32[2, 3, 4]"},
    {"rms_norm", "f16[2, 3]; f16[3]", NULL, "f16[2, 3]"},
    {"batch_norm", "f32[2, 3, 4]; f32[3]; f32[3]; f32[3]; f32[3]", NULL, "f32[2, 3, 4]"},
    {"group_norm", "f32[2, 6, 4]; none; f32[6]", ATTRS(norm_groups, .groups = 3), "f32[2, 6, 4]"},
    {"conv_backward_bias", "f32[2, 3, 4, 5]", NULL, "f32[3]"},
    {"linear_backward_bias", "f32[2, 3, 4]", NULL, "f32[4]"},
    /* indexing, joining */
    {"select", "f32[2, 3]; i32[5]", ATTRS(axis, .axis = 1), "f32[2, 5]"},
    {"select_assign", "f32[2, 3]; i64[5]; f32[2, 5]", ATTRS(scatter, .axis = 1), "f32[2, 3]"},
    {"gather", "f32[2, 3]; i64[1, 7]", ATTRS(axis, .axis = 1), "f32[1, 7]"},
    {"scatter", "bool[2, 3]; i64[1, 7]; bool[1, 7]", ATTRS(scatter, .axis = 1, .update = 4),
     "bool[2, 3]"},
    {"gather_nd", "f32[2, 3, 4]; i64[5, 6, 2]", NULL, "f32[5, 6, 4]"},
    {"scatter_nd", "f32[2, 3, 4]; i64[5, 1]; f32[5, 3, 4]", ATTRS(update, .update = 1),
     "f32[2, 3, 4]"},
    {"embedding", "f32[10, 4]; i32[2, 3]", NULL, "f32[2, 3, 4]"},
    {"embedding", "f32[0, 4]; i32[0]", NULL, "f32[0, 4]"},
    {"embedding_backward", "f32[10, 4]; f32[2, 4]; i32[2]", NULL, "f32[10, 4]"},
    {"cat", "f32[2, 3]; f32[0, 3]; f32[5, 3]", ATTRS(axis, .axis = -2), "f32[7, 3]"},
    {"stack", "f32[2]; f32[2]; f32[2]", ATTRS(axis, .axis = 1), "f32[2, 3]"},
    {"pad", "f32[3, 2]; 0",
     ATTRS(pad, .low = {2, {1, 0}}, .high = {2, {-1, 2}}, .inner = {2, {2, 0}}), "f32[7, 4]"},
    {"pad", "f32[0]; 1", ATTRS(pad, .low = {1, {1}}, .inner = {1, {5}}), "f32[1]"},
    {"repeat", "f32[2, 3]", ATTRS(repeat, .axis = 0, .times = 0), "f32[0, 3]"},
    /* contractions */
    {"matmul", "f32[2, 1, 4, 5]; f32[3, 5, 6]", NULL, "f32[2, 3, 4, 6]"},
    {"matmul", "i32[2, 0]; i32[0, 3]", NULL, "i32[2, 3]"},
    {"linear", "f32[5]; f32[5, 6]; f32[6]", NULL, "f32[6]"},
    {"linear_backward_x", "f32[2, 5]; f32[5, 6]; f32[2, 6]", NULL, "f32[2, 5]"},
    {"linear_backward_w", "f32[2, 5]; f32[5, 6]; f32[2, 6]", NULL, "f32[5, 6]"},
    {"attention", "f32[2, 4, 7, 8]; f32[2, 2, 9, 8]; f32[2, 2, 9, 3]; bool[9]; f32[4, 1, 9]", NULL,
     "f32[2, 4, 7, 3]"},
    {"attention_backward",
     "f32[2, 4, 7, 8]; f32[2, 2, 9, 8]; f32[2, 2, 9, 3]; none; f32[4, 1, 9]; f32[2, 4, 7, 3]", NULL,
     "f32[2, 4, 7, 8]; f32[2, 2, 9, 8]; f32[2, 2, 9, 3]; f32[4, 1, 9]"},
    {"rfft", "f32[2, 7]", ATTRS(fft, .axis = 1), "f32[2, 4]; f32[2, 4]"},
    {"irfft", "f32[2, 4]; f32[2, 4]", ATTRS(fft, .axis = 1), "f32[2, 6]"},
    {"irfft", "f32[2, 4]; f32[2, 4]", ATTRS(fft, .axis = 1, .n = 7), "f32[2, 7]"},
    {"ctc_loss", "f32[9, 2, 5]; i64[2, 4]; i64[2]; i64[2]", ATTRS(ctc, .blank = 4), "f32[2]"},
    {"ctc_loss_backward", "f32[9, 2, 5]; i64[2, 4]; i64[2]; i64[2]; f32[2]", NULL, "f32[9, 2, 5]"},
    /* windows */
    {"conv", "f32[2, 4, 9]; f32[6, 2, 3]; f32[6]",
     ATTRS(conv, .stride = {2}, .padding = {1}, .dilation = {2}, .groups = 2), "f32[2, 6, 4]"},
    {"conv", "f32[1, 1, 8, 8]; f32[16, 1, 3, 3]; none", ATTRS(conv, .padding = {1, 1}),
     "f32[1, 16, 8, 8]"},
    {"conv", "f32[1, 1, 4, 5, 6]; f32[2, 1, 2, 2, 2]; none", NULL, "f32[1, 2, 3, 4, 5]"},
    {"conv_backward_x", "f32[1, 1, 8]; f32[4, 1, 3]; f32[1, 4, 6]", NULL, "f32[1, 1, 8]"},
    {"conv_backward_w", "f32[1, 1, 8]; f32[4, 1, 3]; f32[1, 4, 6]", NULL, "f32[4, 1, 3]"},
    {"conv_transpose", "f32[1, 4, 5]; f32[4, 3, 3]; f32[6]",
     ATTRS(conv_transpose, .stride = {2}, .padding = {1}, .padding_out = {1}, .groups = 2),
     "f32[1, 6, 10]"},
    {"conv_transpose_backward_w", "f32[1, 4, 5]; f32[4, 3, 3]; f32[1, 3, 7]", NULL, "f32[4, 3, 3]"},
    {"deform_conv", "f32[1, 4, 6, 6]; f32[1, 36, 4, 4]; f32[8, 4, 3, 3]; f32[1, 18, 4, 4]; f32[8]",
     ATTRS(deform, .offset_groups = 2), "f32[1, 8, 4, 4]"},
    {"deform_conv_backward",
     "f32[1, 4, 6, 6]; f32[1, 18, 4, 4]; f32[8, 4, 3, 3]; f32[1, 9, 4, 4]; f32[8]; f32[1, 8, 4, 4]",
     NULL, "f32[1, 4, 6, 6]; f32[1, 18, 4, 4]; f32[8, 4, 3, 3]; f32[1, 9, 4, 4]; f32[8]"},
    {"unfold4d", "f32[2, 3, 5, 6]", ATTRS(window, .kernel = {2, 3}), "f32[2, 18, 16]"},
    {"avg_pool", "f32[1, 2, 7]", ATTRS(avg_pool, .kernel = {2}), "f32[1, 2, 3]"},
    {"avg_pool", "f32[1, 2, 7]", ATTRS(avg_pool, .kernel = {2}, .ceil = 1), "f32[1, 2, 4]"},
    /* the fourth window would begin in the padding */
    {"avg_pool", "f32[1, 1, 5]",
     ATTRS(avg_pool, .kernel = {2}, .stride = {2}, .padding = {1}, .ceil = 1), "f32[1, 1, 3]"},
    /* nothing is left over */
    {"avg_pool", "f32[1, 1, 5]",
     ATTRS(avg_pool, .kernel = {3}, .stride = {1}, .padding = {1}, .ceil = 1), "f32[1, 1, 5]"},
    {"avg_pool_backward", "f32[1, 2, 7]; f32[1, 2, 3]", ATTRS(avg_pool, .kernel = {2}),
     "f32[1, 2, 7]"},
    {"max_pool", "f32[1, 2, 8, 8]",
     ATTRS(max_pool, .kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}),
     "f32[1, 2, 4, 6]; i64[1, 2, 4, 6]"},
    {"max_pool_backward", "f32[1, 2, 8]; f32[1, 2, 4]; i64[1, 2, 4]",
     ATTRS(max_pool, .kernel = {2}), "f32[1, 2, 8]"},
    {"adaptive_avg_pool", "f32[1, 2, 7, 9]", ATTRS(adaptive, .size = {3, 10}), "f32[1, 2, 3, 10]"},
    {"adaptive_avg_pool_backward", "f32[1, 2, 7]; f32[1, 2, 3]", NULL, "f32[1, 2, 7]"},
    {"interpolate", "f32[1, 2, 7, 9]", ATTRS(interpolate, .size = {3, 10}), "f32[1, 2, 3, 10]"},
    {"interpolate_backward", "f32[1, 2, 7, 9]; f32[1, 2, 3, 10]",
     ATTRS(interpolate, .size = {3, 10}), "f32[1, 2, 7, 9]"},
    {"grid_sample", "f32[1, 2, 7, 9]; f32[1, 3, 4, 2]", NULL, "f32[1, 2, 3, 4]"},
};

static const struct shape_case bad[] = {
    /* collectives */
    {"all_reduce_coalesced", "f32[144115188075855872]; f32[144115188075855872]", NULL,
     "all_reduce_coalesced: result y: shape overflow: f32[288230376151711744] has more bytes than "
     "63 bits count"},
    {"all_gather", "f32[2, 3]", ATTRS(all_gather, .ranks = 0),
     "all_gather: ranks is 0, at least 1; x f32[2, 3]"},
    {"all_gather", "f32[]", ATTRS(all_gather, .ranks = 2),
     "all_gather: x must have rank 1 or more; x f32[]"},
    {"reduce_scatter", "f32[9, 3]", ATTRS(reduce_scatter, .ranks = 4),
     "reduce_scatter: the first dim is not a multiple of the 4 ranks; x f32[9, 3]"},
    /* views */
    {"reshape", "f32[2, 6]", ATTRS(dims, .dims = {2, {5, -1}}),
     "reshape: 12 elements do not divide by the other extents' 5; x f32[2, 6]"},
    {"reshape", "f32[2, 6]", ATTRS(dims, .dims = {1, {5}}),
     "reshape: 12 elements cannot become 5; x f32[2, 6]"},
    {"reshape", "f32[2, 6]", ATTRS(dims, .dims = {2, {-1, -1}}),
     "reshape: only one extent in dims may be -1; x f32[2, 6]"},
    {"reshape", "f32[0]", ATTRS(dims, .dims = {2, {0, -1}}),
     "reshape: -1 in dims is ambiguous beside an extent of 0; x f32[0]"},
    {"reshape", "f32[2]", ATTRS(dims, .dims = {2, {-2, -1}}),
     "reshape: extent -2 in dims; x f32[2]"},
    {"reshape", "f32[2]", ATTRS(dims, .dims = {3, {1ll << 40, 1ll << 40, -1}}),
     "reshape: shape overflow: 1099511627776 * 1099511627776; x f32[2]"},
    {"permute", "f32[2, 3]", ATTRS(order, .order = {2, {0, 0}}),
     "permute: order names axis 0 twice; x f32[2, 3]"},
    {"permute", "f32[2, 3]", ATTRS(order, .order = {1, {0}}),
     "permute: order has 1 axes, it must name each of 2 once; x f32[2, 3]"},
    {"expand", "f32[3, 4]", ATTRS(dims, .dims = {2, {3, 8}}),
     "expand: extent 4 of dim 1 cannot become 8, only 1 stretches; x f32[3, 4]"},
    {"expand", "f32[3]", ATTRS(dims, .dims = {2, {-1, 3}}),
     "expand: extent -1 in dims; -1 keeps an extent that is there; x f32[3]"},
    {"expand", "f32[3, 4]", ATTRS(dims, .dims = {1, {4}}),
     "expand: dims has 1 entries, fewer than the rank; x f32[3, 4]"},
    {"slice", "f32[3]", ATTRS(slice, .slices = {2, {{0}}}), "slice: 2 slices for rank 1; x f32[3]"},
    {"flip", "f32[3, 4]", ATTRS(axes, .axes = {2, {0, -2}}),
     "flip: axis 0 is given twice; x f32[3, 4]"},
    {"unfold", "f32[3]", ATTRS(unfold, .axis = 0, .size = 4),
     "unfold: size is 4, it must be 1 to the extent 3 of axis 0; x f32[3]"},
    {"unfold", "f32[1, 1, 1, 1, 1, 1, 1, 1]", ATTRS(unfold, .axis = 0, .size = 1),
     "unfold: the result would have rank 9, the largest is 8; x f32[1, 1, 1, 1, 1, 1, 1, 1]"},
    {"transpose", "f32[3]", ATTRS(swap, .axis = 0, .with = 1),
     "transpose: there is no axis 1 in rank 1; x f32[3]"},
    {"squeeze", "f32[1, 3]", ATTRS(axes, .axes = {1, {1}}),
     "squeeze: dim 1 has extent 3, only 1 can go; x f32[1, 3]"},
    {"bitcast", "f32[3]", ATTRS(cast, .dtype = FRIT_F16),
     "bitcast: f32 has 32 bits, f16 has 16; they must have the same number; x f32[3]"},
    {"bitcast", "u8[3]", ATTRS(cast, .dtype = FRIT_BOOL),
     "bitcast: bits of u8 are no bool; compare with `ne`; x u8[3]"},
    {"unsqueeze", "f32[3]", ATTRS(axis, .axis = 2),
     "unsqueeze: there is no axis 2 in rank 2; x f32[3]"},
    {"slice_assign", "f32[4]; f32[3]", ATTRS(slice, .slices = {1, {{0, 4, 2}}}),
     "slice_assign: values must be f32[2]; x f32[4], values f32[3]"},
    /* from nothing, elementwise */
    {"full", "0", ATTRS(init, .dtype = FRIT_F32, .dims = {2, {2, -1}}),
     "full: result y: dim 1 has the negative extent -1"},
    {"full", "0", ATTRS(init, .dtype = FRIT_F32, .dims = {2, {1ll << 32, 1ll << 31}}),
     "full: result y: shape overflow: f32[4294967296, 2147483648] has more bytes than 63 bits "
     "count"},
    {"arange", "0; 1", ATTRS(init, .dtype = FRIT_F32, .dims = {2, {2, 2}}),
     "arange: dims has 2 entries, it must have one"},
    {"arange", "0; 1", ATTRS(init, .dtype = FRIT_BOOL, .dims = {1, {2}}),
     "arange: dtype is bool, it must be a float or integer type"},
    {"eye", "", ATTRS(init, .dtype = FRIT_F32, .dims = {1, {2}}),
     "eye: dims has 1 entries, it must have two or more"},
    {"random_raw", "", ATTRS(init, .dtype = FRIT_I32, .dims = {1, {2}}),
     "random_raw: dtype is i32, it must be u32 or u64"},
    {"random_uniform", "0; 1", ATTRS(init, .dtype = FRIT_I32, .dims = {1, {2}}),
     "random_uniform: dtype is i32, it must be a float type"},
    {"random_uniform", "-3e38; 3e38", ATTRS(init, .dtype = FRIT_F32, .dims = {1, {2}}),
     "random_uniform: low = -3e+38 and high = 3e+38 are not finite or too far apart"},
    {"random_normal", "0; 1", ATTRS(init, .dtype = FRIT_U8, .dims = {1, {2}}),
     "random_normal: dtype is u8, it must be a float type"},
    {"random_int", "3; 3", ATTRS(init, .dtype = FRIT_I32, .dims = {1, {2}}),
     "random_int: low = 3 is not below high = 3"},
    {"random_int", "0; 3", ATTRS(init, .dtype = FRIT_F32, .dims = {1, {2}}),
     "random_int: dtype is f32, it must be an integer type"},
    {"add", "f32[3, 4]; f32[5]", NULL,
     "add: operands f32[3, 4] and f32[5] do not broadcast (dim 1: 4 and 5)"},
    {"where", "bool[2]; f32[7, 2]; f32[3, 1]", NULL,
     "where: operands bool[2], f32[7, 2] and f32[3, 1] do not broadcast (dim 0: 7 and 3)"},
    {"cross", "f32[2, 3]; f32[2, 1]", ATTRS(axis, .axis = 1),
     "cross: both operands must have extent 3 at axis 1 of the result; a f32[2, 3], b f32[2, 1]"},
    {"cross", "f32[3, 3]; f32[3]", ATTRS(axis, .axis = 0),
     "cross: both operands must have extent 3 at axis 0 of the result; a f32[3, 3], b f32[3]"},
    {"relu_backward", "f32[2, 3]; f32[3]", NULL,
     "relu_backward: grad must be f32[2, 3]; y f32[2, 3], grad f32[3]"},
    {"quantize", "f32[4, 6]; f32[4, 2]; none",
     ATTRS(quantize, .dtype = FRIT_Q8, .block = {2, {1, 3}}, .global = 1),
     "quantize: operand global and attribute global must be given together; x f32[4, 6], "
     "scales f32[4, 2]"},
    {"quantize", "f32[4, 6]; f32[4, 2]; none",
     ATTRS(quantize, .dtype = FRIT_Q8, .block = {2, {1, 2}}),
     "quantize: scales must be f32[4, 3]; x f32[4, 6], scales f32[4, 2]"},
    {"dequantize", "q8[4]; f32[4]; none", NULL,
     "dequantize: scales must be f32[]; x q8[4], scales f32[4]"},
    /* along axes */
    {"sum", "f32[2, 3]", ATTRS(reduce, .axes = {1, {2}}),
     "sum: there is no axis 2 in rank 2; x f32[2, 3]"},
    {"sum", "f32[2, 3]", ATTRS(reduce, .axes = {2, {1, -1}}),
     "sum: axis 1 is given twice; x f32[2, 3]"},
    {"max", "f32[2, 0]", ATTRS(reduce, .axes = {1, {1}}),
     "max: a reduced axis is empty, there is nothing to choose from; x f32[2, 0]"},
    {"argmax", "f32[2, 3, 4]", ATTRS(reduce, .axes = {2, {0, 1}}),
     "argmax: 2 axes, it takes one or all; x f32[2, 3, 4]"},
    {"argmax", "f32[0]", NULL,
     "argmax: a reduced axis is empty, there is nothing to choose from; x f32[0]"},
    {"cumsum", "f32[]", ATTRS(axis, .axis = 0), "cumsum: there is no axis 0 in rank 0; x f32[]"},
    {"sort", "f32[2]", ATTRS(sort, .axis = -2), "sort: there is no axis -2 in rank 1; x f32[2]"},
    {"topk", "f32[2]", ATTRS(topk, .axis = 0, .k = 3),
     "topk: k is 3, axis 0 has 2 elements; x f32[2]"},
    {"layer_norm", "f32[2, 3]; f32[2]; none", NULL,
     "layer_norm: gamma must be f32[3]; x f32[2, 3], gamma f32[2]"},
    {"layer_norm", "f32[2, 3]; none; none", ATTRS(norm_axes, .eps = -1),
     "layer_norm: eps is -1, it must be positive and in the range of f32; x f32[2, 3]"},
    {"rms_norm", "f32[]; none", NULL, "rms_norm: x must have rank 1 or more; x f32[]"},
    {"batch_norm", "f32[2, 3]; f32[3]; f32[3]; f32[3]; f32[2]", NULL,
     "batch_norm: var must be f32[3]; x f32[2, 3], gamma f32[3], beta f32[3], mean f32[3], "
     "var f32[2]"},
    {"group_norm", "f32[2, 6]; none; none", ATTRS(norm_groups, .groups = 4),
     "group_norm: 4 groups do not divide 6 channels; x f32[2, 6]"},
    {"conv_backward_bias", "f32[2]", NULL,
     "conv_backward_bias: grad must have rank 2 or more; grad f32[2]"},
    {"linear_backward_bias", "f32[]", NULL,
     "linear_backward_bias: grad must have rank 1 or more; grad f32[]"},
    /* indexing, joining */
    {"select", "f32[2, 3]; i32[2, 2]", ATTRS(axis, .axis = 1),
     "select: index must have rank 1; x f32[2, 3], index i32[2, 2]"},
    {"select", "f32[2, 0]; i32[1]", ATTRS(axis, .axis = 1),
     "select: there is no element to read, the extent is 0; x f32[2, 0], index i32[1]"},
    {"select_assign", "f32[2, 3]; i32[2]; f32[2, 3]", ATTRS(scatter, .axis = 1),
     "select_assign: values must be f32[2, 2]; x f32[2, 3], index i32[2], values f32[2, 3]"},
    {"gather", "f32[2, 3]; i64[3, 1]", ATTRS(axis, .axis = 1),
     "gather: dim 0 of index is beyond x's: 3 and 2; x f32[2, 3], index i64[3, 1]"},
    {"gather", "f32[2, 3]; i64[3]", ATTRS(axis, .axis = 1),
     "gather: index must have rank 2; x f32[2, 3], index i64[3]"},
    {"scatter", "f32[2, 3]; i64[1, 2]; f32[1, 3]", ATTRS(scatter, .axis = 1),
     "scatter: values must be f32[1, 2]; x f32[2, 3], index i64[1, 2], values f32[1, 3]"},
    {"scatter", "bool[2]; i64[1]; bool[1]", ATTRS(scatter, .update = FRIT_CHOICE_update_add),
     "scatter: update add and mul take no bool; max is or, min is and; x bool[2], index i64[1], "
     "values bool[1]"},
    {"gather_nd", "f32[2, 3]; i64[5, 3]", NULL,
     "gather_nd: the last dim of index holds 3 coordinates, x takes 1 to 2; x f32[2, 3], "
     "index i64[5, 3]"},
    {"gather_nd", "f32[2, 0]; i64[5, 2]", NULL,
     "gather_nd: there is no element to read, the extent is 0; x f32[2, 0], index i64[5, 2]"},
    {"scatter_nd", "f32[2, 3]; i64[5, 1]; f32[5]", NULL,
     "scatter_nd: values must be f32[5, 3]; x f32[2, 3], index i64[5, 1], values f32[5]"},
    {"embedding", "f32[2]; i64[5]", NULL,
     "embedding: table must have rank 2; table f32[2], index i64[5]"},
    {"embedding_backward", "f32[9, 2]; f32[5, 3]; i64[5]", NULL,
     "embedding_backward: grad must be f32[5, 2]; table f32[9, 2], grad f32[5, 3], index i64[5]"},
    {"cat", "f32[2, 3]; f32[2]", ATTRS(axis, .axis = 0),
     "cat: operand 1 has rank 1, the first has 2; xs f32[2, 3], xs f32[2]"},
    {"cat", "f32[2, 3]; f32[2, 4]", ATTRS(axis, .axis = 0),
     "cat: dim 1 of operand 1 is 4, of the first 3; xs f32[2, 3], xs f32[2, 4]"},
    {"stack", "f32[2]; f32[3]", ATTRS(axis, .axis = 0),
     "stack: operand 1 has other dims than the first; xs f32[2], xs f32[3]"},
    {"pad", "f32[3]; 0", ATTRS(pad, .low = {1, {-2}}, .high = {1, {-2}}),
     "pad: more is cropped from dim 0 than there is; x f32[3]"},
    {"pad", "f32[3]; 0", ATTRS(pad, .low = {2, {1, 1}}),
     "pad: low, high and inner take one number per dim, not 2; x f32[3]"},
    {"pad", "f32[3]; 0", ATTRS(pad, .high = {1, {INT64_MAX}}),
     "pad: shape overflow: 3 + 9223372036854775807; x f32[3]"},
    {"repeat", "f32[3]", ATTRS(repeat, .axis = 0, .times = INT64_MAX),
     "repeat: shape overflow: 3 * 9223372036854775807; x f32[3]"},
    /* contractions */
    {"matmul", "f32[2, 3]; f32[2, 3]", NULL,
     "matmul: the last dim of a is 3, the last but one of b 2; a f32[2, 3], b f32[2, 3]"},
    {"matmul", "f32[3]; f32[3, 2]", NULL,
     "matmul: a must have rank 2 or more; a f32[3], b f32[3, 2]"},
    {"matmul", "f32[2, 1, 1]; f32[3, 1, 1]", NULL,
     "matmul: leading dims do not broadcast (dim 0 of the result); a f32[2, 1, 1], b f32[3, 1, 1]"},
    {"linear", "f32[2, 4]; f32[5, 6]; none", NULL,
     "linear: the last dim of x is 4, the first of w 5; x f32[2, 4], w f32[5, 6]"},
    {"linear", "f32[2, 5]; f32[5, 6]; f32[5]", NULL,
     "linear: bias must be f32[6]; x f32[2, 5], w f32[5, 6], bias f32[5]"},
    {"linear_backward_x", "f32[2, 5]; f32[5, 6]; f32[2, 5]", NULL,
     "linear_backward_x: grad must be f32[2, 6]; x f32[2, 5], w f32[5, 6], grad f32[2, 5]"},
    {"linear_backward_w", "f32[2, 5]; f32[5, 6]; f32[6]", NULL,
     "linear_backward_w: grad must be f32[2, 6]; x f32[2, 5], w f32[5, 6], grad f32[6]"},
    {"attention", "f32[3, 7, 8]; f32[2, 9, 8]; f32[2, 9, 8]; none; none", NULL,
     "attention: 3 heads of q are not a multiple of 2 of k; q f32[3, 7, 8], k f32[2, 9, 8], "
     "v f32[2, 9, 8]"},
    {"attention", "f32[2, 7, 8]; f32[2, 9, 8]; f32[2, 9, 8]; bool[2, 2, 7, 9]; none", NULL,
     "attention: mask does not broadcast to the scores bool[2, 7, 9]; q f32[2, 7, 8], "
     "k f32[2, 9, 8], v f32[2, 9, 8], mask bool[2, 2, 7, 9]"},
    {"attention_backward", "f32[2, 7, 8]; f32[2, 9, 8]; f32[2, 9, 8]; none; f32[9]; f32[2, 7, 9]",
     NULL,
     "attention_backward: grad must be f32[2, 7, 8]; q f32[2, 7, 8], k f32[2, 9, 8], v f32[2, 9, "
     "8], "
     "bias f32[9], grad f32[2, 7, 9]"},
    {"attention_backward", "f32[2, 7, 8]; f32[2, 9, 8]; f32[2, 9, 8]; none; none; f32[2, 7, 8]",
     NULL,
     "attention_backward: result dbias is wanted without operand bias; q f32[2, 7, 8], k f32[2, 9, "
     "8], v f32[2, 9, 8], grad f32[2, 7, 8]"},
    {"rfft", "f32[0]", ATTRS(fft, .axis = 0),
     "rfft: the signal has length 0, it must be 1 or more; x f32[0]"},
    {"irfft", "f32[3]; f32[4]", ATTRS(fft, .axis = 0),
     "irfft: im must be f32[3]; re f32[3], im f32[4]"},
    {"irfft", "f32[1]; f32[1]", ATTRS(fft, .axis = 0),
     "irfft: the signal has length 0, it must be 1 or more; re f32[1], im f32[1]"},
    {"ctc_loss", "f32[9, 2, 5]; i64[2, 4]; i64[2]; i64[2]", ATTRS(ctc, .blank = 5),
     "ctc_loss: blank is 5 of 5 classes; log_probs f32[9, 2, 5], targets i64[2, 4], "
     "input_lengths i64[2], target_lengths i64[2]"},
    {"ctc_loss_backward", "f32[9, 2, 5]; i64[2, 4]; i64[2]; i64[2]; f32[3]", NULL,
     "ctc_loss_backward: grad must be f32[2]; log_probs f32[9, 2, 5], targets i64[2, 4], "
     "input_lengths i64[2], target_lengths i64[2], grad f32[3]"},
    /* windows */
    {"conv", "f32[1, 3, 4]; f32[8, 3, 5]; none", NULL,
     "conv: the window spans 5 elements of dim 2, which with padding has 4; x f32[1, 3, 4], "
     "w f32[8, 3, 5]"},
    {"conv", "f32[1, 3, 4]; f32[8, 2, 3]; none", NULL,
     "conv: dim 1 of w is 2, it must be x's 3 channels / 1 groups; x f32[1, 3, 4], w f32[8, 2, 3]"},
    {"conv", "f32[1, 3, 4]; f32[8, 1, 3]; none", ATTRS(conv, .groups = 2),
     "conv: 2 groups do not divide 3 and 8 channels; x f32[1, 3, 4], w f32[8, 1, 3]"},
    {"conv", "f32[1, 3, 4]; f32[8, 3, 3]; none", ATTRS(conv, .padding = {1, 1}),
     "conv: padding has 2 entries for 1 spatial dim; x f32[1, 3, 4], w f32[8, 3, 3]"},
    {"conv", "f32[1, 3]; f32[8, 3]; none", NULL,
     "conv: x must have a rank of 3 to 5; x f32[1, 3], w f32[8, 3]"},
    {"conv", "f32[1, 3, 4]; f32[8, 3, 0]; none", NULL,
     "conv: a window has extent 0, it must be 1 or more; x f32[1, 3, 4], w f32[8, 3, 0]"},
    {"conv_backward_x", "f32[1, 1, 8]; f32[4, 1, 3]; f32[1, 4, 8]", NULL,
     "conv_backward_x: grad must be f32[1, 4, 6]; x f32[1, 1, 8], w f32[4, 1, 3], "
     "grad f32[1, 4, 8]"},
    {"conv_backward_w", "f32[1, 1, 8]; f32[4, 1, 3]; f32[1, 6]", NULL,
     "conv_backward_w: grad must be f32[1, 4, 6]; x f32[1, 1, 8], w f32[4, 1, 3], grad f32[1, 6]"},
    {"conv_transpose", "f32[1, 4, 5]; f32[4, 3, 3]; none",
     ATTRS(conv_transpose, .stride = {2}, .padding_out = {2}),
     "conv_transpose: padding_out 2 is not below stride or dilation; x f32[1, 4, 5], "
     "w f32[4, 3, 3]"},
    {"conv_transpose", "f32[1, 4, 1]; f32[4, 3, 3]; none", ATTRS(conv_transpose, .padding = {2}),
     "conv_transpose: padding crops dim 2 of the result to nothing; x f32[1, 4, 1], "
     "w f32[4, 3, 3]"},
    {"conv_transpose_backward_w", "f32[1, 4, 5]; f32[4, 3, 3]; f32[1, 3, 5]", NULL,
     "conv_transpose_backward_w: grad must be f32[1, 3, 7]; x f32[1, 4, 5], w f32[4, 3, 3], "
     "grad f32[1, 3, 5]"},
    {"deform_conv", "f32[1, 4, 6, 6]; f32[1, 9, 4, 4]; f32[8, 4, 3, 3]; none; none", NULL,
     "deform_conv: offset must be f32[1, 18, 4, 4]; x f32[1, 4, 6, 6], offset f32[1, 9, 4, 4], "
     "w f32[8, 4, 3, 3]"},
    {"deform_conv_backward",
     "f32[1, 4, 6, 6]; f32[1, 18, 4, 4]; f32[8, 4, 3, 3]; none; f32[8]; f32[1, 8, 4, 4]", NULL,
     "deform_conv_backward: result dmask is wanted without operand mask; x f32[1, 4, 6, 6], "
     "offset f32[1, 18, 4, 4], w f32[8, 4, 3, 3], bias f32[8], grad f32[1, 8, 4, 4]"},
    {"unfold4d", "f32[2, 3, 5]", ATTRS(window, .kernel = {2, 3}),
     "unfold4d: x must have rank 4; x f32[2, 3, 5]"},
    {"avg_pool", "f32[1, 2, 7]", NULL,
     "avg_pool: a window has extent 0, it must be 1 or more; x f32[1, 2, 7]"},
    {"avg_pool", "f32[1, 2, 7]", ATTRS(avg_pool, .kernel = {3}, .padding = {2}),
     "avg_pool: padding 2 is beyond half of the window 3; x f32[1, 2, 7]"},
    {"avg_pool", "f32[1, 2, 0]", ATTRS(avg_pool, .kernel = {2}, .padding = {1}),
     "avg_pool: a window has no element of dim 2, only padding; x f32[1, 2, 0]"},
    {"avg_pool_backward", "f32[1, 2, 7]; f32[1, 2, 7]", ATTRS(avg_pool, .kernel = {2}),
     "avg_pool_backward: grad must be f32[1, 2, 3]; x f32[1, 2, 7], grad f32[1, 2, 7]"},
    {"max_pool", "f32[1, 2, 1]", ATTRS(max_pool, .kernel = {2}, .padding = {1}, .dilation = {2}),
     "max_pool: a window has no element of dim 2, only padding; x f32[1, 2, 1]"},
    {"max_pool_backward", "f32[1, 2, 8]; f32[1, 2, 4]; i64[1, 2, 5]",
     ATTRS(max_pool, .kernel = {2}),
     "max_pool_backward: index must be i64[1, 2, 4]; x f32[1, 2, 8], grad f32[1, 2, 4], "
     "index i64[1, 2, 5]"},
    {"adaptive_avg_pool", "f32[1, 2, 7]", NULL,
     "adaptive_avg_pool: size is 0 in spatial dim 0, it must be 1 or more; x f32[1, 2, 7]"},
    {"adaptive_avg_pool_backward", "f32[1, 2, 7]; f32[1, 3, 3]", NULL,
     "adaptive_avg_pool_backward: x and grad must agree in the first two dims; x f32[1, 2, 7], "
     "grad f32[1, 3, 3]"},
    {"interpolate", "f32[1, 2, 0, 9]", ATTRS(interpolate, .size = {3, 10}),
     "interpolate: there is no element to read, the extent is 0; x f32[1, 2, 0, 9]"},
    {"interpolate_backward", "f32[1, 2, 7, 9]; f32[1, 2, 3, 9]",
     ATTRS(interpolate, .size = {3, 10}),
     "interpolate_backward: grad must be f32[1, 2, 3, 10]; x f32[1, 2, 7, 9], grad f32[1, 2, 3, "
     "9]"},
    {"grid_sample", "f32[1, 2, 7, 9]; f32[1, 3, 4, 3]", NULL,
     "grid_sample: grid must be [1, h, w, 2]; x f32[1, 2, 7, 9], grid f32[1, 3, 4, 3]"},
    {"grid_sample", "f32[1, 2, 7, 9]; f32[1, 3, 4, 2]",
     ATTRS(grid_sample, .mode = FRIT_CHOICE_resample_lanczos3),
     "grid_sample: mode must be nearest, bilinear or bicubic; x f32[1, 2, 7, 9], "
     "grid f32[1, 3, 4, 2]"},
};

enum { N_GOOD = sizeof(good) / sizeof(good[0]), N_BAD = sizeof(bad) / sizeof(bad[0]) };

static void test_good(void **state)
{
    struct call call, again;

    (void)state;
    for (size_t i = 0; i < N_GOOD; i++) {
        assert_string_equal(call_check(&call, good[i].op, good[i].operands, good[i].attrs),
                            good[i].text);
        assert_int_equal(call.status, FRIT_OK);
        /* A checked call passes again and stays as it is. */
        again = call;
        again.call.in = again.in;
        again.call.attrs = call.call.attrs ? &again.attrs : NULL;
        assert_int_equal(op_check(&again.call, again.out, &again.err), FRIT_OK);
        assert_memory_equal(&again.attrs, &call.attrs, sizeof(call.attrs));
        assert_memory_equal(again.in, call.in, sizeof(call.in));
        assert_memory_equal(again.out, call.out, sizeof(call.out));
    }
}

static void test_bad(void **state)
{
    struct call call;

    (void)state;
    for (size_t i = 0; i < N_BAD; i++) {
        assert_string_equal(call_check(&call, bad[i].op, bad[i].operands, bad[i].attrs),
                            bad[i].text);
        assert_int_equal(call.status, FRIT_INVALID);
    }
}

static bool has_rule(const struct shape_case *cases, size_t n, const char *rule)
{
    static const char *const rules[FRIT_OP_LIMIT] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) [id] = #shape,
#include <frit/ops.def>
    };

    for (size_t i = 0; i < n; i++) {
        if (strcmp(rules[op_find((frit_str){cases[i].op, strlen(cases[i].op)})->id], rule) == 0)
            return true;
    }
    return false;
}

/* The tables above leave no rule out. */
static void test_coverage(void **state)
{
    static const char *const names[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) #shape,
#include <frit/ops.def>
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        /* Nothing can be wrong with these dims. */
        bool total = strcmp(names[i], "same") == 0 || strcmp(names[i], "nothing") == 0;

        if (!has_rule(good, N_GOOD, names[i]))
            fail_msg("no call that rule %s takes", names[i]);
        if (!total && !has_rule(bad, N_BAD, names[i]))
            fail_msg("no call that rule %s refuses", names[i]);
    }
}

/* ---- attributes as drivers see them ---- */

static void test_axes(void **state)
{
    struct call call;

    (void)state;
    call_check(&call, "sum", "f32[2, 3, 4]", NULL);
    assert_memory_equal(&call.attrs.reduce, ATTRS(reduce, .axes = {3, {0, 1, 2}}),
                        sizeof(call.attrs.reduce));
    call_check(&call, "sum", "f32[2, 3, 4]", ATTRS(reduce, .axes = {2, {-1, 0}}));
    assert_memory_equal(&call.attrs.reduce, ATTRS(reduce, .axes = {2, {0, 2}}),
                        sizeof(call.attrs.reduce));
    call_check(&call, "layer_norm", "f32[2, 3, 4]; none; none", NULL);
    assert_memory_equal(&call.attrs.norm_axes, ATTRS(norm_axes, .axes = {1, {2}}, .eps = 1e-5),
                        sizeof(call.attrs.norm_axes));
    call_check(&call, "squeeze", "f32[1, 3, 1]", NULL);
    assert_memory_equal(&call.attrs.axes, ATTRS(axes, .axes = {2, {0, 2}}),
                        sizeof(call.attrs.axes));
    call_check(&call, "permute", "f32[2, 3, 4]", ATTRS(order, .order = {3, {-1, 0, -2}}));
    assert_memory_equal(&call.attrs.order, ATTRS(order, .order = {3, {2, 0, 1}}),
                        sizeof(call.attrs.order));
}

static void test_defaults(void **state)
{
    struct call call;

    (void)state;
    call_check(&call, "conv", "f32[1, 1, 8, 8]; f32[1, 1, 3, 3]; none", NULL);
    assert_memory_equal(&call.attrs.conv,
                        ATTRS(conv, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1),
                        sizeof(call.attrs.conv));
    call_check(&call, "max_pool", "f32[1, 1, 8, 8]", ATTRS(max_pool, .kernel = {2, 3}));
    assert_memory_equal(&call.attrs.max_pool,
                        ATTRS(max_pool, .kernel = {2, 3}, .stride = {2, 3}, .dilation = {1, 1}),
                        sizeof(call.attrs.max_pool));
    call_check(&call, "pad", "f32[2, 1]; 0", ATTRS(pad, .low = {2, {1, 1}}, .inner = {2, {1, 1}}));
    assert_memory_equal(&call.attrs.pad,
                        ATTRS(pad, .low = {2, {1, 1}}, .high = {2, {0}}, .inner = {2, {1, 0}}),
                        sizeof(call.attrs.pad));
    call_check(&call, "reshape", "f32[2, 6]", ATTRS(dims, .dims = {2, {3, -1}}));
    assert_memory_equal(&call.attrs.dims, ATTRS(dims, .dims = {2, {3, 4}}),
                        sizeof(call.attrs.dims));
    call_check(&call, "rfft", "f32[7]", ATTRS(fft, .axis = -1));
    assert_memory_equal(&call.attrs.fft, ATTRS(fft, .axis = 0, .n = 7), sizeof(call.attrs.fft));
}

/* ---- against slow forms ---- */

static uint32_t seed = 1;

static int64_t draw(int64_t low, int64_t high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)(seed >> 8) % (high - low + 1);
}

static struct op_type draw_type(uint32_t max_rank, int64_t low, int64_t high)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = (uint32_t)draw(0, max_rank)};

    for (uint32_t i = 0; i < type.rank; i++)
        type.dims[i] = draw(low, high);
    return type;
}

/* A result exists if one can give every pair of aligned extents a common one. */
static bool slow_broadcast(const struct op_type *a, const struct op_type *b, struct op_type *out)
{
    *out = (struct op_type){.dtype = FRIT_F32, .rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t x = i + a->rank >= out->rank ? a->dims[i + a->rank - out->rank] : 1;
        int64_t y = i + b->rank >= out->rank ? b->dims[i + b->rank - out->rank] : 1;

        for (out->dims[i] = 0; out->dims[i] < 10; out->dims[i]++) {
            if ((x == 1 || x == out->dims[i]) && (y == 1 || y == out->dims[i]) &&
                (out->dims[i] == x || out->dims[i] == y))
                break;
        }
        if (out->dims[i] == 10)
            return false;
    }
    return true;
}

static void test_broadcast(void **state)
{
    (void)state;
    for (int n = 0; n < 20000; n++) {
        struct op_input in[2] = {{.kind = FRIT_OPERAND_TENSOR}, {.kind = FRIT_OPERAND_TENSOR}};
        struct op_call call = {.op = FRIT_OP_add, .n_in = 2, .in = in};
        struct op_type out[FRIT_OP_MAX_OUT], expected;
        bool fits;

        in[0].type = draw_type(4, 0, 3);
        in[1].type = draw_type(4, 0, 3);
        fits = slow_broadcast(&in[0].type, &in[1].type, &expected);
        assert_int_equal(op_check(&call, out, NULL) == FRIT_OK, fits);
        if (fits)
            assert_true(op_type_equal(&out[0], &expected));
    }
}

static void test_reduce(void **state)
{
    (void)state;
    for (int n = 0; n < 20000; n++) {
        struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = draw_type(5, 0, 3)};
        frit_attrs_reduce a = {.struct_size = sizeof(a), .keep = draw(0, 1)};
        struct op_call call = {.op = FRIT_OP_sum, .n_in = 1, .in = &in, .attrs = &a};
        struct op_type out[FRIT_OP_MAX_OUT], expected = {.dtype = FRIT_F32};
        int times[FRIT_MAX_RANK] = {0};
        bool fits = true, all;

        a.axes.count = draw(0, 3);
        all = a.axes.count == 0;
        for (int64_t i = 0; i < a.axes.count; i++) {
            int64_t axis = a.axes.axis[i] = draw(-5, 4);

            axis += axis < 0 ? in.type.rank : 0;
            fits = fits && axis >= 0 && axis < in.type.rank && times[axis]++ == 0;
        }
        for (uint32_t i = 0; i < in.type.rank; i++) {
            if (!all && !times[i])
                expected.dims[expected.rank++] = in.type.dims[i];
            else if (a.keep)
                expected.dims[expected.rank++] = 1;
        }
        assert_int_equal(op_check(&call, out, NULL) == FRIT_OK, fits);
        if (fits)
            assert_true(op_type_equal(&out[0], &expected));
    }
}

/* A bound as the language reference of Python words it: negative counts from the end, then the ends
 * limit it. */
static int64_t slow_bound(int64_t bound, int64_t n, bool backwards)
{
    if (bound < 0)
        bound += n;
    if (backwards)
        return bound < -1 ? -1 : bound > n - 1 ? n - 1 : bound;
    return bound < 0 ? 0 : bound > n ? n : bound;
}

static void test_slice(void **state)
{
    (void)state;
    for (int n = 0; n < 50000; n++) {
        int64_t extent = draw(0, 6), count = 0, step = draw(-4, 4), i, stop;
        struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = {FRIT_F32, 1, {extent}}};
        frit_range range = {draw(-14, 14), draw(-14, 14), step ? step : 1};
        bool open = draw(0, 3) == 0;
        frit_attrs_slice a = {.struct_size = sizeof(a), .slices = {.count = 1}};
        struct op_call call = {.op = FRIT_OP_slice, .n_in = 1, .in = &in, .attrs = &a};
        struct op_type out[FRIT_OP_MAX_OUT];
        const frit_range *got = &a.slices.dim[0];

        range.stop = open ? FRIT_SLICE_END : range.stop;
        a.slices.dim[0] = range;
        assert_int_equal(op_check(&call, out, NULL), FRIT_OK);
        i = slow_bound(range.start, extent, range.step < 0);
        stop = open && range.step < 0 ? -1 : slow_bound(range.stop, extent, range.step < 0);
        for (; range.step < 0 ? i > stop : i < stop; i += range.step)
            assert_int_equal(got->start + count++ * got->step, i);
        assert_int_equal(out[0].dims[0], count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_bad),
        cmocka_unit_test(test_coverage), cmocka_unit_test(test_axes),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_reduce),   cmocka_unit_test(test_slice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
