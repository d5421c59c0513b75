/* SPDX-License-Identifier: Apache-2.0 */
/* Runs parts of a program with other settings and compares with the reference.  One thread. */
#ifndef DOCTOR_JUDGE_H
#define DOCTOR_JUDGE_H

#include "doctor/slice.h"
#include "doctor/trial.h"

struct invocation;

/* A program, and what each of its values is on the reference. */
struct judge {
    const char *device, *against; /* requested */
    char device_name[64], against_name[64];
    double tolerance; /* relative to the largest value of an output; < 0: by its type */
    uint32_t repeat;
    double seconds; /* that a run may take */
    struct slice_program program;
    struct trial_value *values; /* one per value of the program */
    char **types;               /* as text */
    uint32_t n_trials;          /* so far */
};

/* A part of the program. */
struct region {
    size_t first, last; /* ops */
};

/* How a run compares. */
struct verdict {
    bool agrees;
    char words[TRIAL_WORDS]; /* "y f32[2, 3]: 4 of 6 elements differ, by at most 0.5" */
};

/* Loads the program in->args[1] with its inputs, and runs it on the reference.  judge_fini must be
 * called. */
int judge_open(struct judge *judge, const struct invocation *in);
void judge_fini(struct judge *judge);

/* Runs the region on the device, its inputs as the reference has them; `blocks` (may be NULL)
 * receives the trial, the caller's. */
void judge_run(struct judge *judge, const struct region *region, const frit_setting *settings,
               size_t n_settings, struct verdict *out, struct trial *blocks);

#endif
