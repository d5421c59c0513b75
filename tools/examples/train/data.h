/* SPDX-License-Identifier: Apache-2.0 */
/* Handwritten digits: what is learned from, and what is tested with. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <frit/frit.h>

enum {
    SIDE = 8,
    PIXELS = SIDE * SIDE,
    CLASSES = 10,
    MAX_IMAGES = 1297,
    TEST_IMAGES = 500,
    HELD_OUT = 297
};

struct images {
    uint32_t n;
    float pixels[MAX_IMAGES][PIXELS]; /* 0 (paper) to 1 (ink) */
    int32_t labels[MAX_IMAGES];
};

struct data {
    struct images train, test;
};

/* Reads ROOT/tests/data/digits by the device.  `split` not 0: a seed by which HELD_OUT of the
 * images to learn from are taken to test with, and the test set is not touched: for choosing how to
 * train.
 */
frit_status data_load(struct data *data, frit_device *device, const char *root, uint64_t split,
                      frit_err *err);

/* The order of the images in an epoch. */
void data_order(uint32_t *order, uint32_t n, uint64_t seed, uint64_t epoch);

/* Images by their numbers, each moved by up to `shift` pixels in both directions, with fractions of
 * a pixel; `draw` names the random numbers. */
struct draw {
    uint64_t seed, step;
    double shift;
};
void data_batch(const struct images *images, const uint32_t *which, uint32_t n,
                const struct draw *draw, float *pixels, int32_t *labels);

#endif
