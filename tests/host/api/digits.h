/* SPDX-License-Identifier: Apache-2.0 */
/* The two trained networks as a workload for tests. */
#ifndef TESTS_API_DIGITS_H
#define TESTS_API_DIGITS_H

#include <frit/frit.h>

enum { DIGITS_ALL = 500 };

struct digits {
    frit_graph *graph;
    frit_tensor *inputs[16];
    uint64_t n_inputs;
};

/* Loads tools/models/<name>.frit and the first `images` images of the test set onto a device. */
frit_status digits_open(const char *name, frit_device *device, int64_t images, struct digits *out,
                        frit_err *err);
/* Runs the network once; *right is the number of images that it classifies correctly. */
frit_status digits_run(const struct digits *digits, frit_device *device, int64_t images, int *right,
                       frit_err *err);
/* Releases what was loaded; also after a failed digits_open. */
void digits_close(struct digits *digits);

#endif
