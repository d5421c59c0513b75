/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a text program in a process of its own, whatever becomes of it.  One thread; the
 * calling process must have no host open. */
#ifndef DOCTOR_TRIAL_H
#define DOCTOR_TRIAL_H

#include <stdbool.h>
#include <stdio.h>

#include <frit/frit.h>

enum { TRIAL_SETTINGS = 16, TRIAL_WORDS = 400 };

/* The elements of a tensor. */
struct trial_value {
    uint32_t dtype;
    frit_dims dims;
    uint64_t bytes;
    void *data; /* NULL: there is no value */
};

void trial_value_fini(struct trial_value *value);
bool trial_value_send(const struct trial_value *value, FILE *to);
/* False: the stream ended or there is no memory; `out` is empty then. */
bool trial_value_take(struct trial_value *out, FILE *from);
/* Reads the tensor; false with its error in `words`. */
bool trial_value_read(frit_tensor *tensor, struct trial_value *out, char words[TRIAL_WORDS]);
/* "f32[2, 3]", malloc'd; NULL: no memory. */
char *trial_value_type(const struct trial_value *value);

/* What ran as one program, or by itself. */
struct trial_block {
    char fuser[112]; /* "plugin/fuser"; "" for a single op */
    char label[128];
    uint32_t flags; /* FRIT_STEP_* */
};

struct trial_request {
    const char *device;
    const frit_setting *settings;
    size_t n_settings;
    const char *text;
    const struct trial_value *const *inputs; /* in the order of the text */
    size_t n_inputs, n_outputs;
    uint32_t repeat; /* runs, one after the other */
    double seconds;  /* that it may take */
};

struct trial {
    bool ran;                    /* else `words` say why not */
    char words[TRIAL_WORDS];     /* "it crashed: ..." */
    char device[64];             /* that was opened; "" if none was */
    struct trial_value *outputs; /* of the first run, then of the second ... */
    size_t n_outputs;            /* of all runs */
    struct trial_block *blocks;  /* of the first run */
    size_t n_blocks;
};

/* trial_fini must be called. */
void trial_run(const struct trial_request *request, struct trial *out);
void trial_fini(struct trial *trial);

#endif
