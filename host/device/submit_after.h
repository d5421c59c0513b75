/* SPDX-License-Identifier: Apache-2.0 */
/* What a submit waits for, besides the earlier commands of its queue. */
#ifndef DEVICE_SUBMIT_AFTER_H
#define DEVICE_SUBMIT_AFTER_H

#include <stdbool.h>

#include "memory/point.h"

struct submit_after {
    struct points points;
    bool effects; /* it has effects, which follow those of all earlier submits (effects.h) */
};

#endif
