/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a script on a device, through the public interface alone. */
#ifndef EQUIV_PLAY_H
#define EQUIV_PLAY_H

#include "script.h"

/* In which types a play computes. */
enum play_precision {
    PLAY_OWN,      /* those of the script */
    PLAY_WIDE,     /* floats are F64 */
    PLAY_DISTURBED /* the same, with errors where an op rounds */
};

struct play_params {
    enum play_precision precision;
    uint32_t variant; /* of extents and slices */
    uint32_t round;   /* of elements and scalars; see seeds.c */
    uint32_t errors;  /* PLAY_DISTURBED: which ones */
    bool layouts;     /* inputs are laid out in ways that depend on the variant */
};

/* What a reading action got. */
struct reading {
    frit_status status;
    char *data; /* NULL: the action does not read, or is off */
};

struct play {
    struct reading *readings; /* one per action, then one per value that is left at the end */
    const char *fault;        /* NULL, or what went wrong beside the values; see `text` */
    char text[600];
};

/* `left`: as script_settle gave it.  All tensors are gone afterwards.  play_fini in any case. */
void play_script(struct play *play, frit_device *device, const struct script *script,
                 const struct play_params *params, const uint8_t *left);
void play_fini(struct play *play, const struct script *script);

/* False if readings differ, and `text` says how; all NaNs count as equal. */
bool play_compare(const struct script *script, uint32_t variant, const struct play *plain,
                  const struct play *fused, char *text, size_t size);

/* Statistics of comparisons with what is computed in f64. */
struct play_seen {
    uint64_t elements; /* floats */
    uint64_t rough;    /* of these, with a tolerance above a hundredth of the tensor's largest */
    double most;       /* the largest difference, relative to its tolerance */
};

enum { PLAY_ERRORS = 24 };

/* The plays of a script that compare two drivers, which may round differently. */
struct play_near {
    const struct play *own;  /* on the driver that is the measure (--near) */
    const struct play *wide; /* the same in f64; NULL: only `own` has been played */
    const struct play *disturbed[PLAY_ERRORS];
    uint32_t n_disturbed; /* may be 0 */
    const struct play *other;
};

/* False, and how in `text`, where a reading of `other` is not what it may be.  Integers and bools:
 * the same.  Floats: no further from `wide` than four times the largest distance that `own` or
 * one of `disturbed` has in this tensor, and 4 units in the last place; without `wide`: no further
 * from `own` than 3 units in its last place, from which the other follows. */
bool play_compare_near(const struct script *script, uint32_t variant, const struct play_near *plays,
                       struct play_seen *seen, char *text, size_t size);

#endif
