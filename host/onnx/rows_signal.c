/* SPDX-License-Identifier: Apache-2.0 */
/* Spectra and windows.  A transform is a product with a matrix of sines and cosines, which are
 * computed in f64 and rounded once. */
#include <math.h>
#include <string.h>

#include "onnx/emit.h"
#include "onnx/fold.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"

enum { MAX_LENGTH = 1 << 12 };

/* cos or sin of 2 pi j k / length as [in, out]. */
static val *waves(struct import_node *n, uint32_t dtype, double (*wave)(double x), int64_t in,
                  int64_t out, int64_t length, double scale)
{
    const struct op_type type = {dtype, 2, {in, out}};
    void *at;

    if (in > MAX_LENGTH || out > MAX_LENGTH) {
        problem_node(n, "a transform of %lld elements, at most %d", (long long)in, MAX_LENGTH);
        return NULL;
    }
    at = import_elements(n->import, frit_storage_bytes(dtype, op_elements(&type)) + 1);
    for (int64_t j = 0; at && j < in; j++) {
        for (int64_t k = 0; k < out; k++) {
            const double angle = 2 * M_PI * (double)(j * k % length) / (double)length;

            fold_put(dtype, at, j * out + k, (struct fold_number){.real = wave(angle) * scale});
        }
    }
    return at ? import_constant(n->import, &type, at, NULL) : NULL;
}

/* The transform of the last dim; im may be NULL.  Results are *re and *im. */
static void transform(struct import_node *n, val **re, val **im, int64_t length, bool inverse,
                      bool half)
{
    int64_t out = half ? length / 2 + 1 : length;
    double scale = inverse ? 1 / (double)length : 1, sign = inverse ? -scale : scale;
    val *cosine = waves(n, e_dtype(*re), cos, length, out, length, scale);
    val *sine = waves(n, e_dtype(*re), sin, length, out, length, sign), *real, *imaginary;

    real = e_matmul(n, *re, cosine);
    imaginary = e_un(n, FRIT_OP_neg, e_matmul(n, *re, sine));
    if (*im) {
        real = e_add(n, real, e_matmul(n, *im, sine));
        imaginary = e_add(n, imaginary, e_matmul(n, *im, cosine));
    }
    *re = real;
    *im = imaginary;
}

/* Real and imaginary parts along a new last dim. */
static val *join(struct import_node *n, val *re, val *im)
{
    uint32_t rank = e_rank(re);

    return e_cat(n, rank, (val *[]){e_unsqueeze(n, re, rank), e_unsqueeze(n, im, rank)}, 2);
}

/* One part, with the axis as the last of at least two dims, cut or filled with zeros. */
static val *lines_of(struct import_node *n, val *x, int64_t part, uint32_t axis, int64_t length)
{
    int64_t high[FRIT_MAX_RANK] = {0}, turn[FRIT_MAX_RANK];
    uint32_t last;

    x = e_take(n, x, e_rank(x) - 1, part);
    if (!x)
        return NULL;
    last = x->type.rank - 1;
    for (uint32_t d = 0; d <= last; d++)
        turn[d] = d == axis ? last : d == last ? axis : d;
    high[axis] = length - x->type.dims[axis];
    x = e_permute(n, e_pad(n, x, e_num(n, 0), NULL, high), turn);
    return last == 0 ? e_unsqueeze(n, x, 0) : x;
}

/* Values that the spectrum of a real signal repeats mirrored, conjugated: the missing ones are put
 * behind. */
static void mirror(struct import_node *n, val **re, val **im, int64_t length)
{
    uint32_t last = e_rank(*re) - 1;
    int64_t known = *re ? (*re)->type.dims[last] : 0, missing = length - known;
    val *tail;

    if (!*re || missing <= 0)
        return;
    tail = e_flip(n, e_slice(n, *re, last, 1, missing + 1, 1), last);
    *re = e_cat(n, last, (val *[]){*re, tail}, 2);
    if (!*im)
        return;
    tail = e_un(n, FRIT_OP_neg, e_flip(n, e_slice(n, *im, last, 1, missing + 1, 1), last));
    *im = e_cat(n, last, (val *[]){*im, tail}, 2);
}

/* x [..., 1 or 2]: real or complex in the last dim. */
void onnx_row_dft(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *re, *im = NULL, *y;
    bool inverse = attr_int(n, "inverse", 0) != 0, half = attr_int(n, "onesided", 0) != 0;
    int64_t axis_given = n->opset < 20 ? attr_int(n, "axis", 1) : e_int(n, 2, -2);
    uint32_t axis = x ? e_axis(n, axis_given, e_rank(x)) : 0, rank = e_rank(x);
    int64_t length, turn[FRIT_MAX_RANK];

    (void)arg;
    if (n->failed || !x || rank < 2 || axis == rank - 1) {
        problem_node(n, "the axis is that of the parts");
        return;
    }
    length = e_int(n, 1, inverse && half ? 2 * (x->type.dims[axis] - 1) : x->type.dims[axis]);
    if (length < 1 || length > MAX_LENGTH) {
        problem_node(n, "a transform of %lld elements, at most %d", (long long)length, MAX_LENGTH);
        return;
    }
    re = lines_of(n, x, 0, axis, inverse && half ? length / 2 + 1 : length);
    if (x->type.dims[rank - 1] == 2)
        im = lines_of(n, x, 1, axis, inverse && half ? length / 2 + 1 : length);
    if (inverse && half)
        mirror(n, &re, &im, length);
    transform(n, &re, &im, length, inverse, half && !inverse);
    y = inverse && half ? e_unsqueeze(n, re, e_rank(re)) : join(n, re, im);
    if (rank == 2) { /* the line was made a matrix */
        e_out(n, 0, y ? e_squeeze(n, y, 0) : NULL);
        return;
    }
    for (uint32_t d = 0; d < rank; d++)
        turn[d] = d == axis ? rank - 2 : d == rank - 2 ? axis : d;
    e_out(n, 0, e_permute(n, y, turn));
}

/* operands: signal [batch, length, 1 or 2], step, window, length of a frame */
void onnx_row_stft(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *window = e_has(n, 2) ? e_in(n, 2) : NULL, *re, *im = NULL;
    frit_attrs_unfold attrs = E_ATTRS(unfold);
    bool half = attr_int(n, "onesided", 1) != 0;

    (void)arg;
    if (!x || x->type.rank < 2) {
        problem_node(n, "a signal without dims");
        return;
    }
    if (x->type.rank == 2)
        x = e_unsqueeze(n, x, 2);
    attrs.axis = 1;
    attrs.step = e_int(n, 1, 1);
    attrs.size = e_int(n, 3, window ? e_elements(window) : 1);
    re = E_OP(n, FRIT_OP_unfold, &attrs, e_take(n, x, 2, 0));
    if (x && x->type.dims[2] == 2)
        im = E_OP(n, FRIT_OP_unfold, &attrs, e_take(n, x, 2, 1));
    re = window ? e_mul(n, re, window) : re;
    im = window && im ? e_mul(n, im, window) : im;
    transform(n, &re, &im, attrs.size, false, half && !im);
    e_out(n, 0, join(n, re, im));
}

/* a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N) */
void onnx_row_window(struct import_node *n, uint32_t arg)
{
    static const double terms[][3] = {
        [WINDOW_HANN] = {0.5, 0.5, 0},
        [WINDOW_HAMMING] = {25.0 / 46, 21.0 / 46, 0},
        [WINDOW_BLACKMAN] = {0.42, 0.5, 0.08},
    };
    int64_t size = e_int(n, 0, 0), period = 0;
    uint32_t dtype = tensor_dtype((int32_t)attr_int(n, "output_datatype", 1));
    const struct op_type type = {dtype, 1, {size}};
    void *data;

    e_in(n, 0);
    if (n->failed || size < 0 || size > FOLD_MAX_ELEMENTS || dtype == FRIT_NO_DTYPE) {
        problem_node(n, "a window of %lld elements", (long long)size);
        return;
    }
    period = attr_int(n, "periodic", 1) ? size : size - 1;
    data = import_elements(n->import, (size_t)size * sizeof(double) + 1);
    for (int64_t i = 0; data && i < size; i++) {
        double at = period ? 2 * M_PI * (double)i / (double)period : 0;
        double value = terms[arg][0] - terms[arg][1] * cos(at) + terms[arg][2] * cos(2 * at);

        fold_put(dtype, data, i, (struct fold_number){fold_whole(value), value});
    }
    e_out(n, 0, data ? import_constant(n->import, &type, data, NULL) : NULL);
}

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* Rounded down; what is far outside of every spectrum is not further outside than that. */
static int64_t bin_of(double place)
{
    const double far = 2.0 * MAX_LENGTH * MAX_LENGTH;

    return (int64_t)floor(fmax(-far, fmin(far, place)));
}

/* Triangles over the bins of a spectrum, evenly spread on the mel scale. */
void onnx_row_mel_weights(struct import_node *n, uint32_t arg)
{
    int64_t bands = e_int(n, 0, 0), length = e_int(n, 1, 0), rate = e_int(n, 2, 1), bins;
    double low = mel_of(e_real(n, 3, 0)), high = mel_of(e_real(n, 4, 0));
    uint32_t dtype = tensor_dtype((int32_t)attr_int(n, "output_datatype", 1));
    struct op_type type = {dtype, 2, {length / 2 + 1, bands}};
    void *data;

    (void)arg;
    bins = type.dims[0];
    if (n->failed || bands < 1 || length < 1 || rate < 1 || bands > MAX_LENGTH ||
        length > MAX_LENGTH * MAX_LENGTH || bins * bands > MAX_LENGTH * MAX_LENGTH ||
        dtype == FRIT_NO_DTYPE) {
        problem_node(n, "%lld bands of %lld bins", (long long)bands, (long long)bins);
        return;
    }
    data = import_elements(n->import, (size_t)(bins * bands) * sizeof(double) + 1);
    for (int64_t k = 0; data && k < bands; k++) {
        int64_t edge[3];

        for (int64_t i = 0; i < 3; i++) {
            double mel = low + (double)(k + i) * (high - low) / (double)(bands + 2);
            double hertz = 700 * (pow(10, mel / 2595) - 1);

            edge[i] = bin_of((double)(length + 1) * hertz / (double)rate);
        }
        for (int64_t i = edge[0] < 0 ? 0 : edge[0]; i <= edge[2] && i < bins; i++) {
            int64_t side = i <= edge[1] ? edge[1] - edge[0] : edge[2] - edge[1];
            double rise = (double)(i <= edge[1] ? i - edge[0] : edge[2] - i);
            double value = side ? rise / (double)side : 1;

            if (i <= edge[1] || i < edge[2])
                fold_put(dtype, data, i * bands + k,
                         (struct fold_number){fold_whole(value), value});
        }
    }
    e_out(n, 0, data ? import_constant(n->import, &type, data, NULL) : NULL);
}
