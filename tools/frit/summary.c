/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

static void summarise(const void *data, struct summary *out)
{
    double sum = 0;

    out->min = out->max = (double)NAN;
    for (uint64_t i = 0; i < out->count; i++) {
        double value = element_value(out->dtype, data, i);

        if (i < SUMMARY_FIRST)
            out->first[out->n_first++] = value;
        if (isnan(value)) {
            out->n_nan++;
            continue;
        }
        out->min = out->min <= value ? out->min : value;
        out->max = out->max >= value ? out->max : value;
        sum += value;
    }
    out->mean = sum / (double)(out->count - out->n_nan);
}

frit_status summary_of(frit_tensor *tensor, struct summary *out)
{
    uint64_t bytes = frit_bytes(tensor);
    void *data = malloc(bytes + 1);
    frit_status status;

    *out = (struct summary){.dtype = frit_dtype(tensor), .dims = frit_dims_of(tensor), .count = 1};
    if (!data)
        return FRIT_NO_HOST_MEMORY;
    status = frit_read(tensor, data, bytes);
    if (!status) {
        for (int64_t i = 0; i < out->dims.rank; i++)
            out->count *= (uint64_t)out->dims.dim[i];
        summarise(data, out);
    }
    free(data);
    return status;
}

void summary_print(const struct summary *summary, const char *name, FILE *out)
{
    fprintf(out, "%-12s %s[", name, frit_dtype_name(summary->dtype));
    for (int64_t i = 0; i < summary->dims.rank; i++)
        fprintf(out, "%s%" PRId64, i ? ", " : "", summary->dims.dim[i]);
    fputs("]", out);
    if (summary->count > summary->n_nan)
        fprintf(out, "  min %.6g  max %.6g  mean %.6g", summary->min, summary->max, summary->mean);
    if (summary->n_nan)
        fprintf(out, "  NaN %" PRIu64, summary->n_nan);
    fputs("  [", out);
    for (uint64_t i = 0; i < summary->n_first; i++)
        fprintf(out, "%s%.6g", i ? ", " : "", summary->first[i]);
    fputs(summary->count > summary->n_first ? ", ...]\n" : "]\n", out);
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
    json_real(json, "min", summary->min);
    json_real(json, "max", summary->max);
    json_real(json, "mean", summary->mean);
    json_list(json, "first");
    for (uint64_t i = 0; i < summary->n_first; i++)
        json_real(json, NULL, summary->first[i]);
    json_close(json);
}
