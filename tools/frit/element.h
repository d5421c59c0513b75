/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors as numbers.  Pure. */
#ifndef CLI_ELEMENT_H
#define CLI_ELEMENT_H

#include <frit/frit.h>

/* Element `i`, exactly; packed values without their scale.  FRIT_SCALAR_NONE: no element type. */
frit_scalar element_scalar(uint32_t dtype, const void *data, uint64_t i);
/* As a double: 64-bit integers lose what it cannot hold.  NaN for FRIT_SCALAR_NONE. */
double element_number(frit_scalar scalar);
double element_value(uint32_t dtype, const void *data, uint64_t i);

/* How two tensors of one type differ. */
struct difference {
    uint64_t count;   /* elements */
    uint64_t differ;  /* of these; two NaN are equal, as are 0 and -0 */
    double max_abs;   /* infinite where only one is a number, or the signs of infinities differ */
    uint64_t max_ulp; /* floats: numbers of the type from one to the other; integers: |a - b| */
};
void element_compare(uint32_t dtype, const void *a, const void *b, uint64_t count,
                     struct difference *out);

#endif
