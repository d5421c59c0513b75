/* SPDX-License-Identifier: Apache-2.0 */
/* Where `frit bench overhead` measures: a host with the device `null`, and threads that run the mix
 * on it, each on one CPU where the system lets them. */
#ifndef CLI_BENCH_STAGE_H
#define CLI_BENCH_STAGE_H

#include "bench/bench.h"
#include "bench/mix.h"

enum {
    STAGE_STEPS = MIX_KEPT, /* of a round: 512 ops */
    STAGE_WARM_ROUNDS = 20
};

/* What the device is like: options of the plugin. */
struct stage_form {
    const char *inlined; /* "yes": commands run inside submit */
    const char *hold;
    const char *memory;
    const char *fusers;
    const char *max_fused_ops;
    const struct mix_form *mix;
};

/* A host with the device, and the tensors that all threads use. */
struct stage {
    const struct bench *bench;
    const struct stage_form *form;
    frit_host *host;
    frit_device *device;
    frit_tensor *weights[MIX_SHAPES];
};

/* CLI_FAILED after a message. */
int stage_open(struct stage *stage, const struct bench *bench, const struct stage_form *form);
void stage_close(struct stage *stage);
/* CLI_FAILED after a message if an op failed since the last time. */
int stage_check(const struct stage *stage);

/* Measures on `n_measured` threads, while `n_other` more run the mix too.  The median of a round in
 * nanoseconds, mean over the threads; below 0 after a message. */
double stage_run(const struct stage *stage, int n_measured, int n_other);

#endif
