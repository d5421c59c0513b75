/* SPDX-License-Identifier: Apache-2.0 */
/* What launches have in common that share a decision.
 *
 * The key of a launch is the digest of its block and a bucketed signature: sizes and strides as
 * tune_anchor gives them, and which powers of two up to 16 divide them; types, alignment, classes
 * of scalars and bounds, the width of an index, and which numeric class candidates may have
 * exactly.  So a candidate that was right for one
 * signature of a bucket was tried with tails, or without, where another has them.  What it refuses
 * for one of them, its prepare refuses again.  Pure. */
#ifndef TUNE_KEY_H
#define TUNE_KEY_H

#include <frit/program.h>

#include "tune/anchor.h"

struct str;

enum { TUNE_DIGEST = 16 };

/* Appends the key; equal bytes mean equal keys. */
void tune_key(const uint8_t digest[TUNE_DIGEST], const frit_signature *sig, enum tune_level level,
              uint32_t numeric_class, struct str *out);

/* Appends the key of what is known of a program whatever the signature. */
void tune_key_program(const uint8_t digest[TUNE_DIGEST], struct str *out);

/* Appends the key of a step of the device's roofline (limit.h): what a launch of an op takes. */
void tune_key_limit(uint32_t op, uint32_t dtype, uint32_t step, struct str *out);

/* Appends the operands and outputs as people read them: "f32[64, 128] i64[64] -> f32[64]". */
void tune_key_print(const frit_signature *sig, struct str *out);

#endif
