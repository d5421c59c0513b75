/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of one launch again, on memory and elements of its own: to measure the candidates of its
 * program, and to compare their results with those of its ops run one by one.  Nothing that the
 * program sees changes; the stream's own commands may wait in a batch meanwhile.
 * Threads: one at a time; the caller holds the stream's baton. */
#ifndef RUN_TRIAL_H
#define RUN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

#include "tune/key.h"

struct launch;
struct launch_trial;

/* Inputs are laid out as the launch's are, and lie where they would: alone or among others, as
 * aligned, with as long a tail.  FRIT_UNSUPPORTED where the launch cannot be repeated: it has
 * effects, or needs more memory than trials may take. */
frit_status trial_create(const struct launch *l, struct launch_trial **out, frit_err *err);
void trial_destroy(struct launch_trial *trial); /* NULL does nothing */

/* The digest of a launch's ops without their sizes, for tune_key. */
frit_status trial_digest(const struct launch *l, uint8_t out[TUNE_DIGEST], frit_err *err);

/* In the place of a candidate's number: the ops one by one, as parts.h adds them; of a choice
 * (choice.h) the op by itself, and what it stands for one by one. */
#define TRIAL_PARTS      UINT32_MAX
#define TRIAL_NATIVE     (UINT32_MAX - 1)
#define TRIAL_DECOMPOSED (UINT32_MAX - 2)

/* Whether it is none of a program's candidates. */
static inline bool trial_is_in_parts(uint32_t candidate)
{
    return candidate >= TRIAL_DECOMPOSED;
}

/* What a check found.  Other than TRIAL_RIGHT: never use the candidate. */
enum trial_finding {
    TRIAL_RIGHT,
    TRIAL_REFUSED, /* prepare or a submit */
    TRIAL_FAILED,  /* the command, on the device */
    TRIAL_SILENT,  /* it wrote nothing */
    TRIAL_BEYOND,  /* it wrote outside of its outputs */
    TRIAL_WRONG
};

/* Compiles the candidate and runs it once on memory filled with 0xff between zones that must not
 * change, and, where its spec lets an output take an operand's memory, once more so.  Results are
 * compared within its class: of EXACT ones with those of candidate 0, of others with the ops'.
 * Fails only where the comparison itself cannot be made; `why` has the evidence. */
frit_status trial_check(struct launch_trial *trial, uint32_t candidate, uint32_t numeric_class,
                        enum trial_finding *finding, frit_err *why, frit_err *err);

struct trial_time {
    uint64_t ns;      /* of one launch */
    bool from_device; /* by the device's clock; else the host's, around submit and wait */
};
/* The time of `n` launches, one after the other, in one submit. */
frit_status trial_time(struct launch_trial *trial, uint32_t candidate, uint32_t n,
                       struct trial_time *out, frit_err *err);

#endif
