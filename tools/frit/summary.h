/* SPDX-License-Identifier: Apache-2.0 */
/* What the elements of a tensor are like.  One thread. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <frit/frit.h>

#include "json.h"

enum { SUMMARY_FIRST = 6 };

struct summary {
    uint32_t dtype;
    frit_dims dims;
    uint64_t count;
    uint64_t n_nan, n_infinite;
    frit_scalar min, max; /* of those that are not NaN; FRIT_SCALAR_NONE if all are */
    double mean;          /* of the finite ones; NaN if none is */
    uint64_t n_first;
    frit_scalar first[SUMMARY_FIRST];
};

/* Reads the tensor; on failure its text is frit_tensor_error. */
frit_status summary_of(frit_tensor *tensor, struct summary *out);

/* "logits  f32[500, 10]  min -1  max 2  mean 0.5  [1, 2, ...]" */
void summary_print(const struct summary *summary, const char *name, FILE *out);
/* Keys dtype, dims, count, nan, infinite, min, max, mean, first.  Integers are exact; elements that
 * JSON has no number for are "nan", "inf" or "-inf", and null where there is none. */
void summary_json(const struct summary *summary, struct json *json);

#endif
