/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars as values of an element type. */
#ifndef GRAPH_SCALAR_H
#define GRAPH_SCALAR_H

#include <stdbool.h>

#include <frit/types.h>

frit_scalar scalar_f(double value);
frit_scalar scalar_i(int64_t value);
frit_scalar scalar_u(uint64_t value);

/* The value as a double, rounded where it is wider. */
double scalar_number(const frit_scalar *scalar);
/* "300", "0.5", "-inf" into `text`; returns text. */
const char *scalar_text(const frit_scalar *scalar, char *text, size_t size);

/* Rewrites a scalar into the kind of an element type: F64 for floats, U64 for unsigned, else I64.
 * NULL, or why it is not a value of the type ("is not a whole number"); then it stays as it was.
 * A finite float counts as a value if it rounds to a finite one; it is not rounded here. */
const char *scalar_fit(frit_scalar *scalar, uint32_t dtype);

/* "whole numbers from 0 to 255": the values of an element type into `text`; returns text. */
const char *scalar_range(uint32_t dtype, char *text, size_t size);

/* The element that the scalar is in memory, in the low bits; it fits (scalar_fit).  NaN has one
 * form. And back; the type is no packed one. */
uint64_t scalar_bits(const frit_scalar *scalar, uint32_t dtype);
frit_scalar scalar_of_bits(uint64_t bits, uint32_t dtype);

/* The nearest value of a float type, halves to even; beyond its range an infinity. */
double scalar_round(double value, uint32_t dtype);

#endif
