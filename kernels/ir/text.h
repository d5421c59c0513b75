/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of modules: a line per thing, blanks between words, # to the end of a line is a
 * comment.
 *
 *     kernel scale                      name
 *     wide                              only where offsets are I64
 *     spaces                            only where a launch may have several spaces
 *     params 1
 *     arg a0 f32 read                   a number each, in order; read, write, read write
 *     arg a1 f32 write
 *     phase 64                          lanes
 *     tile t0 group f32 64              of the phase: group or lane, type, elements
 *         %0 i32 = lane                 a value has the number of its place in the phase,
 *         %1 f32 = param 0
 *         %2 f32 = load a0 %0           what has none counts too
 *         %3 f32 = mul %2 %1
 *         store a1 %0 %3
 *
 * An instruction is its name, its immediate and its operands.  Immediates are arguments (a0), tiles
 * (t0), types for wrap and round (u8, bf16), or numbers; those of float constants are their bits.
 * Loops and ifs are
 *
 *         %6 i32 = for %4 to %5 step 8
 *             %7 f32 = phi 0 %3
 *             %8 f32 = add %7 %7
 *         next %8
 *         if %9
 *             ...
 *         end */
#ifndef KIR_TEXT_H
#define KIR_TEXT_H

#include <frit/status.h>

#include "base/str.h"
#include "ir/kir.h"

/* Appends the text; also of modules that break rules of verify.h, as well as it can. */
void kir_print(const struct kir_module *module, struct str *out);

/* A module that keeps the rules of verify.h; what is printed of it parses to an equal one.
 * FRIT_INVALID: the text says which line; then *out is empty. */
frit_status kir_parse(const char *text, size_t length, struct kir_module *out, frit_err *err);

#endif
