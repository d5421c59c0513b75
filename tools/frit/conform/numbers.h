/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that a case gets, and whether what came out is right. */
#ifndef CONFORM_NUMBERS_H
#define CONFORM_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "conform/conform.h"

struct conform_case;
struct conform_operand;
struct conform_wanted;

/* Fills an operand; the same numbers for the same case. */
void conform_fill(const struct conform_case *one, const struct conform_operand *operand,
                  uint32_t index, bool denormals, void *data, uint64_t count);
/* `count` floats as f64. */
void conform_widen(uint32_t dtype, const void *data, uint64_t count, double *out);
/* True if `got` is right; else says what is wrong. */
bool conform_compare(const struct conform_wanted *want, const void *got,
                     char reason[CONFORM_REASON]);

#endif
