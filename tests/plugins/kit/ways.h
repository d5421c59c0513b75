/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver of ways.c counts.  One thread at a time. */
#ifndef TEST_KIT_WAYS_H
#define TEST_KIT_WAYS_H

#include "kit/kit.h"

struct ways {
    uint32_t plain_adds, rows; /* launches by such a candidate */
    uint32_t codes;            /* that were compiled and are not released */
};
extern struct ways ways;

#endif
