/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a tensor's elements.  One thread. */
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
    frit_scalar min, max; /* without NaNs; FRIT_SCALAR_NONE if all elements are NaN */
    double mean;          /* of finite elements; NaN if there are none */
    uint64_t n_first;
    frit_scalar first[SUMMARY_FIRST];
};

/* Reads the tensor; frit_tensor_error has the message of a failure. */
frit_status summary_of(frit_tensor *tensor, struct summary *out);

/* Prints "logits  f32[500, 10]  min -1  max 2  mean 0.5  [1, 2, ...]". */
void summary_print(const struct summary *summary, const char *name, FILE *out);
/* Writes the keys dtype, dims, count, nan, infinite, min, max, mean, first.  Integers are exact;
 * NaN and infinities are "nan", "inf" and "-inf"; null where there is no element. */
void summary_json(const struct summary *summary, struct json *json);

#endif
