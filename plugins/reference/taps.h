/* SPDX-License-Identifier: Apache-2.0 */
/* Resampling along one dim: which samples make a value between them, and with which weights. */
#ifndef TAPS_H
#define TAPS_H

#include <stdint.h>

enum { TAPS_MAX = 6 };

/* `n` neighbours from `first` on, which may lie outside of the dim. */
struct taps {
    int64_t first;
    int n;
    double weight[TAPS_MAX];
};

/* At the point `at`, sample i being at i; bilinear, bicubic or lanczos3 (FRIT_CHOICE_resample_*).
 */
struct taps taps_at(int64_t mode, double at);
/* The one sample `i`. */
struct taps taps_one(int64_t i);

#endif
