/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of scripts beside finite differences. */
#ifndef GRAD_CHECK_H
#define GRAD_CHECK_H

#include "host/grad/script.h"

enum check_result {
    CHECK_RIGHT,
    CHECK_WRONG, /* after a message with the script */
    CHECK_KINK   /* the differences do not agree with each other: no gradient there */
};

/* Sums the float outputs of the script with random factors, some left out, and compares the
 * gradients by its float inputs, some left out, with central differences along random directions.
 */
enum check_result check_script(frit_device *device, struct script *s);

#endif
