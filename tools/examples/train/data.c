/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data.h"

#include "train/random.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static frit_status load_npy(frit_device *device, const char *root, const char *name, void *out,
                            uint64_t bytes, frit_err *err)
{
    char path[4096];
    frit_tensor *tensor;
    frit_status st;

    snprintf(path, sizeof(path), "%s/tests/data/digits/%s.npy", root, name);
    tensor = frit_load_npy(device, path);
    st = frit_read(tensor, out, bytes, err);
    frit_release(tensor);
    return st;
}

static frit_status load_train(struct images *images, frit_device *device, const char *root,
                              frit_err *err)
{
    static uint8_t pixels[MAX_IMAGES][PIXELS], labels[MAX_IMAGES];
    frit_status st = load_npy(device, root, "train_images", pixels, sizeof(pixels), err);

    if (!st)
        st = load_npy(device, root, "train_labels", labels, sizeof(labels), err);
    images->n = MAX_IMAGES;
    for (uint32_t i = 0; i < MAX_IMAGES; i++) {
        for (uint32_t k = 0; k < PIXELS; k++)
            images->pixels[i][k] = (float)pixels[i][k] / 16;
        images->labels[i] = labels[i];
    }
    return st;
}

static frit_status load_test(struct images *images, frit_device *device, const char *root,
                             frit_err *err)
{
    static int64_t labels[TEST_IMAGES];
    frit_status st = load_npy(device, root, "images", images->pixels,
                              sizeof(images->pixels[0]) * TEST_IMAGES, err);

    if (!st)
        st = load_npy(device, root, "labels", labels, sizeof(labels), err);
    images->n = TEST_IMAGES;
    for (uint32_t i = 0; i < TEST_IMAGES; i++)
        images->labels[i] = (int32_t)labels[i];
    return st;
}

static void move_image(struct images *to, const struct images *from, uint32_t i)
{
    memcpy(to->pixels[to->n], from->pixels[i], sizeof(from->pixels[i]));
    to->labels[to->n++] = from->labels[i];
}

static void hold_out(struct data *data, uint64_t seed)
{
    static struct images all;
    uint32_t order[MAX_IMAGES];

    all = data->train;
    data_order(order, all.n, seed, RANDOM_HOLDOUT);
    data->train.n = data->test.n = 0;
    for (uint32_t i = 0; i < all.n; i++)
        move_image(i < HELD_OUT ? &data->test : &data->train, &all, order[i]);
}

frit_status data_load(struct data *data, frit_device *device, const char *root, uint64_t split,
                      frit_err *err)
{
    frit_status st = load_train(&data->train, device, root, err);

    if (st)
        return st;
    if (!split)
        return load_test(&data->test, device, root, err);
    hold_out(data, split);
    return FRIT_OK;
}

/* Fisher and Yates. */
void data_order(uint32_t *order, uint32_t n, uint64_t seed, uint64_t epoch)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = (uint32_t)(random_at(seed, RANDOM_ORDER, epoch, i) * i);
        const uint32_t other = order[k];

        order[k] = order[i - 1];
        order[i - 1] = other;
    }
}

static double pixel_at(const float *image, int row, int column)
{
    if (row < 0 || row >= SIDE || column < 0 || column >= SIDE)
        return 0;
    return (double)image[row * SIDE + column];
}

/* Bilinear, with paper around the image. */
static void shift_image(const float *image, double down, double right, float *out)
{
    const int whole_down = (int)floor(down), whole_right = (int)floor(right);
    const double u = down - whole_down, v = right - whole_right;

    for (int row = 0; row < SIDE; row++) {
        for (int column = 0; column < SIDE; column++) {
            const int y = row + whole_down, x = column + whole_right;
            const double upper = (1 - v) * pixel_at(image, y, x) + v * pixel_at(image, y, x + 1);
            const double lower =
                (1 - v) * pixel_at(image, y + 1, x) + v * pixel_at(image, y + 1, x + 1);

            out[row * SIDE + column] = (float)((1 - u) * upper + u * lower);
        }
    }
}

void data_batch(const struct images *images, const uint32_t *which, uint32_t n,
                const struct draw *draw, float *pixels, int32_t *labels)
{
    for (uint32_t i = 0; i < n; i++) {
        const double down = random_at(draw->seed, RANDOM_SHIFT, draw->step, 2 * i) * 2 - 1;
        const double right = random_at(draw->seed, RANDOM_SHIFT, draw->step, 2 * i + 1) * 2 - 1;

        shift_image(images->pixels[which[i]], down * draw->shift, right * draw->shift,
                    pixels + i * PIXELS);
        labels[i] = images->labels[which[i]];
    }
}
