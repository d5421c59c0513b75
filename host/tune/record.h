/* SPDX-License-Identifier: Apache-2.0 */
/* What was found for one key of the tuner: its candidates, the one to launch first, with all their
 * times and why others are not used.  A record is constant once it is made.
 *
 * Its text form is a line for each fact:
 *     decision 1
 *     key 0a1f                              bytes in hexadecimal
 *     what matmul 128x128x128 f32
 *     clock device
 *     reason measured
 *     split 00c0ffee00c0ffee                a key that was separated; may be repeated
 *     candidate right reordered 3 tile 64   its state, class, version and identity
 *     samples 1200 1180 1190                in ns; without this line: none
 *     evidence output 0 differs by 1e-3     without this line: none
 *     end
 * Printing what was parsed gives the same bytes, and the other way round. */
#ifndef TUNE_RECORD_H
#define TUNE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

struct str;

enum tune_clock { TUNE_HOST_CLOCK, TUNE_DEVICE_CLOCK, TUNE_CLOCKS };

/* Why the first candidate is the first. */
enum tune_reason {
    TUNE_MEASURED, /* it is the fastest */
    TUNE_LIMIT,    /* it is as fast as the device can be; others may not have been measured */
    TUNE_BUDGET,   /* the time was up; others may not have been measured */
    TUNE_ONLY,     /* no other one is right */
    TUNE_REASONS
};

enum tune_state {
    TUNE_UNTRIED,
    TUNE_RIGHT,
    TUNE_SLOW,    /* right, and cut off because it took so much longer than others */
    TUNE_REFUSED, /* it does not take this signature */
    TUNE_FAILED,  /* an error */
    TUNE_WRONG,   /* these four are quarantined: other results than the reference */
    TUNE_SILENT,  /* an output was not written */
    TUNE_CRASHED,
    TUNE_HUNG,
    TUNE_STATES
};

/* Whether a candidate in this state must not run again. */
static inline bool tune_state_is_quarantined(enum tune_state state)
{
    return state >= TUNE_WRONG;
}

/* Identities, of version 0, of what no program offers: a block's ops one by one; and the two forms
 * of a composite op. */
#define TUNE_PARTS      "parts"
#define TUNE_NATIVE     "native"
#define TUNE_DECOMPOSED "decomposed"

/* Texts are clean (base/text.h). */
struct tune_candidate {
    const char *identity; /* of frit_candidate */
    uint32_t version;
    uint32_t numeric_class; /* FRIT_NUMERIC_* */
    enum tune_state state;
    uint32_t n_samples;
    const uint64_t *samples; /* in ns, in their order */
    const char *evidence;    /* of what is wrong with it; NULL or "": nothing is */
};

struct tune_record {
    const void *key; /* exact bytes */
    size_t key_bytes;
    const char *what; /* for people: label of the block and sizes; NULL: "" */
    enum tune_clock clock;
    enum tune_reason reason;
    uint32_t n_splits;
    const uint64_t *splits; /* digests of keys that were separated from this one, because its first
                               candidate refused their signature */
    uint32_t n_candidates;
    const struct tune_candidate *candidates; /* in the order of preference */
};

/* Limits of a record.  Bytes of texts are without the terminating 0. */
enum {
    TUNE_KEY_BYTES = 16384,
    TUNE_TEXT_BYTES = 1023,
    TUNE_CANDIDATES = 256,
    TUNE_SPLITS = 64,
    TUNE_SAMPLES = 4096 /* of a candidate */
};

/* "device", "measured", "wrong", "reordered"; "unknown" beyond the enums. */
const char *tune_clock_name(enum tune_clock clock);
const char *tune_reason_name(enum tune_reason reason);
const char *tune_state_name(enum tune_state state);
const char *tune_class_name(uint32_t numeric_class);

/* Copies it with all that it points to.  Texts are cleaned, those for people also cut to their
 * limit.  FRIT_INVALID if it exceeds another limit or has an unknown word. */
frit_status tune_record_copy(const struct tune_record *from, struct tune_record **out,
                             frit_err *err);
void tune_record_destroy(struct tune_record *record); /* NULL does nothing */
/* FRIT_INVALID with the reason if tune_record_copy or tune_record_parse could not have made it. */
frit_status tune_record_verify(const struct tune_record *record, frit_err *err);

/* The candidate of that identity and version; NULL: there is none. */
const struct tune_candidate *tune_record_find(const struct tune_record *record, frit_str identity,
                                              uint32_t version);

/* Whether a key with that digest was separated from the record's. */
bool tune_record_is_split(const struct tune_record *record, uint64_t key);

/* Appends the text form. */
void tune_record_print(const struct tune_record *record, struct str *out);

/* Text that is being parsed. */
struct tune_text {
    const char *at; /* needs no terminating 0 */
    size_t length;  /* left */
    uint32_t line;  /* lines that were read */
};

/* Parses one record and moves behind it; any bytes may be there.  FRIT_INVALID with the number of
 * the line, what is wrong with it and what to do. */
frit_status tune_record_parse(struct tune_text *text, struct tune_record **out, frit_err *err);

#endif
