/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the short names as C++ sees them, for ops_test.c. */
#ifndef TESTS_HOST_API_OPS_CPP_H
#define TESTS_HOST_API_OPS_CPP_H

#include <frit/frit.h>

#ifdef __cplusplus
extern "C" {
#endif

frit_tensor *cpp_conv(frit_tensor *x, frit_tensor *w, frit_tensor *bias); /* stride 2, groups 4 */
frit_tensor *cpp_sum(frit_tensor *x);                                     /* axes 0 and 2 */
frit_tensor *cpp_sum_all(frit_tensor *x);                                 /* no attributes */
frit_tensor *cpp_slice(frit_tensor *x); /* every second from 1 on, then a whole dim */

#ifdef __cplusplus
}
#endif

#endif
