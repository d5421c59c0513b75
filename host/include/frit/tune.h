/* SPDX-License-Identifier: Apache-2.0 */
/* What the tuner found for a device: which candidate of a program is launched for which sizes, how
 * long each took, and which must not be used.  For `frit tune` and other tools.  Threads: any. */
#ifndef FRIT_TUNE_H
#define FRIT_TUNE_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- decisions ---- */

/* The decisions for a device at some time: those of this process, and those that option
 * [tune] store keeps. */
typedef struct frit_decisions frit_decisions;

/* They belong to the caller, independent of the device. */
FRIT_NODISCARD frit_status frit_decisions_read(frit_device *device, frit_decisions **out,
                                               frit_err *err);
void frit_decisions_free(frit_decisions *decisions); /* NULL does nothing */

typedef struct frit_decision_desc {
    uint64_t struct_size;
    const char *what;      /* the ops of the program and their sizes */
    const char *clock;     /* that measured: "host" or "device" */
    const char *reason;    /* why the first candidate is launched: "measured", "roofline": it is as
                              fast as the device can be, "budget": the time was up, "only": no other
                              one is right */
    uint64_t n_candidates; /* in the order in which they are launched */
} frit_decision_desc;

/* In the order of `what`; FRIT_INVALID beyond the last. */
frit_status frit_decision_at(const frit_decisions *decisions, uint64_t index,
                             frit_decision_desc *out);

typedef struct frit_tried_desc {
    uint64_t struct_size;
    const char *identity; /* stable name */
    uint32_t version;
    uint32_t is_quarantined;     /* it is not used: its results were wrong, or it crashed or hung */
    const char *numeric_class;   /* "exact", "reordered", "reduced", "relaxed" */
    const char *state;           /* "right", "slow", "refused", "wrong" ... */
    const char *evidence;        /* of what is wrong with it; "" if nothing is */
    uint64_t best_ns, median_ns; /* 0: it was not measured */
    uint64_t n_samples;
    const uint64_t *samples_ns; /* in the order in which they were measured */
} frit_tried_desc;

/* A candidate of a decision; FRIT_INVALID beyond the last. */
frit_status frit_decision_candidate_at(const frit_decisions *decisions, uint64_t index,
                                       uint64_t candidate, frit_tried_desc *out);

/* Forgets the decisions whose `what` contains the text, NULL: all, so that they are tuned anew;
 * their number in *n_forgotten (may be NULL).  FRIT_IO if the file still has them. */
frit_status frit_decisions_forget(frit_device *device, const char *what, uint64_t *n_forgotten,
                                  frit_err *err);

/* How many decisions the file of option [tune] store has for the device at `index` of
 * frit_device_info_at, which is not opened; 0 where there is no such file.  FRIT_INVALID beyond the
 * last. */
FRIT_NODISCARD frit_status frit_decisions_count(frit_host *host, uint64_t index, uint64_t *out,
                                                frit_err *err);

/* ---- bundles ---- */

/* What was written to a bundle, or read from one. */
typedef struct frit_bundle_desc {
    uint64_t struct_size;
    uint64_t n_decisions;
    uint64_t n_known;     /* decisions of the bundle that were left as they were here */
    uint64_t n_artefacts; /* compiled kernels, and the like, of the device's driver */
} frit_bundle_desc;

/* Writes the decisions, and what the driver keeps in the folder of [frit] artefacts, to a file, so
 * that another machine of the same kind starts tuned.  `out` may be NULL. */
frit_status frit_decisions_export(frit_device *device, const char *path, frit_bundle_desc *out,
                                  frit_err *err);
/* Reads a bundle; decisions that this device has already stay.  It holds code that will run: only
 * from who may run programs here.  FRIT_INCOMPATIBLE, and nothing is read, if it is of a device
 * with another fingerprint, or of other builds of driver or plugin; FRIT_INVALID if it is damaged.
 */
frit_status frit_decisions_import(frit_device *device, const char *path, frit_bundle_desc *out,
                                  frit_err *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
