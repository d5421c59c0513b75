/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

/* Compares two elements of one type, neither NaN. */
static bool is_less(frit_scalar a, frit_scalar b)
{
    switch (a.kind) {
    case FRIT_SCALAR_I64:
        return (int64_t)a.bits < (int64_t)b.bits;
    case FRIT_SCALAR_U64:
        return a.bits < b.bits;
    default:
        return element_number(a) < element_number(b);
    }
}

static void summarise(const void *data, struct summary *out)
{
    double sum = 0;
    uint64_t n_finite = 0;

    for (uint64_t i = 0; i < out->count; i++) {
        frit_scalar element = element_scalar(out->dtype, data, i);
        double value = element_number(element);

        if (i < SUMMARY_FIRST)
            out->first[out->n_first++] = element;
        if (isnan(value)) {
            out->n_nan++;
            continue;
        }
        if (out->min.kind == FRIT_SCALAR_NONE || is_less(element, out->min))
            out->min = element;
        if (out->max.kind == FRIT_SCALAR_NONE || is_less(out->max, element))
            out->max = element;
        if (isinf(value)) {
            out->n_infinite++;
            continue;
        }
        sum += value;
        n_finite++;
    }
    out->mean = sum / (double)n_finite;
}

frit_status summary_of(frit_tensor *tensor, struct summary *out)
{
    uint64_t bytes = frit_tensor_bytes(tensor);
    void *data = malloc(bytes + 1);
    frit_status status;

    *out = (struct summary){
        .dtype = frit_tensor_dtype(tensor), .dims = frit_tensor_dims(tensor), .count = 1};
    if (!data)
        return FRIT_NO_HOST_MEMORY;
    status = frit_read(tensor, data, bytes, NULL);
    if (!status) {
        for (int64_t i = 0; i < out->dims.rank; i++)
            out->count *= (uint64_t)out->dims.dim[i];
        summarise(data, out);
    }
    free(data);
    return status;
}

static void print_element(frit_scalar element, FILE *out)
{
    if (element.kind == FRIT_SCALAR_I64)
        fprintf(out, "%" PRId64, (int64_t)element.bits);
    else if (element.kind == FRIT_SCALAR_U64)
        fprintf(out, "%" PRIu64, element.bits);
    else if (isnan(element_number(element))) /* whatever its sign */
        fputs("nan", out);
    else
        fprintf(out, "%.6g", element_number(element));
}

void summary_print(const struct summary *summary, const char *name, FILE *out)
{
    fprintf(out, "%-12s %s[", name, frit_dtype_name(summary->dtype));
    for (int64_t i = 0; i < summary->dims.rank; i++)
        fprintf(out, "%s%" PRId64, i ? ", " : "", summary->dims.dim[i]);
    fputs("]", out);
    if (summary->count > summary->n_nan) {
        fputs("  min ", out);
        print_element(summary->min, out);
        fputs("  max ", out);
        print_element(summary->max, out);
    }
    if (isfinite(summary->mean))
        fprintf(out, "  mean %.6g", summary->mean);
    if (summary->n_nan)
        fprintf(out, "  NaN %" PRIu64, summary->n_nan);
    if (summary->n_infinite)
        fprintf(out, "  infinite %" PRIu64, summary->n_infinite);
    fputs("  [", out);
    for (uint64_t i = 0; i < summary->n_first; i++) {
        fputs(i ? ", " : "", out);
        print_element(summary->first[i], out);
    }
    fputs(summary->count > summary->n_first ? ", ...]\n" : "]\n", out);
}

/* NaN and infinities are written as text, since JSON has no numbers for them. */
static void json_element(struct json *json, const char *key, frit_scalar element)
{
    double value = element_number(element);

    if (element.kind == FRIT_SCALAR_I64)
        json_int(json, key, (int64_t)element.bits);
    else if (element.kind == FRIT_SCALAR_U64)
        json_uint(json, key, element.bits);
    else if (element.kind == FRIT_SCALAR_NONE || isfinite(value))
        json_real(json, key, value);
    else
        json_text(json, key, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

void summary_json(const struct summary *summary, struct json *json)
{
    json_text(json, "dtype", frit_dtype_name(summary->dtype));
    json_list(json, "dims");
    for (int64_t i = 0; i < summary->dims.rank; i++)
        json_int(json, NULL, summary->dims.dim[i]);
    json_close(json);
    json_uint(json, "count", summary->count);
    json_uint(json, "nan", summary->n_nan);
    json_uint(json, "infinite", summary->n_infinite);
    json_element(json, "min", summary->min);
    json_element(json, "max", summary->max);
    json_real(json, "mean", summary->mean);
    json_list(json, "first");
    for (uint64_t i = 0; i < summary->n_first; i++)
        json_element(json, NULL, summary->first[i]);
    json_close(json);
}
