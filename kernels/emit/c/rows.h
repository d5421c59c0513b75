/* SPDX-License-Identifier: Apache-2.0 */
/* rows.def as text: the names and expressions that a text of phases is written with. */
#ifndef EMIT_C_ROWS_H
#define EMIT_C_ROWS_H

#include "base/str.h"

#include "ir/kir.h"

/* The C types of values. */
const char *rows_type(uint32_t type);
/* The C type of an argument's elements, and what follows load_ and store_, and pair_ of floats of
 * 16 bits (two as a word), in the names of its macros. */
const char *rows_memory_type(uint32_t dtype);
const char *rows_memory_name(uint32_t dtype);
/* The type in the name of an instruction's macro: that of operand a. */
const char *rows_type_name(uint32_t type);

/* A macro for each row that the module uses: its operands are expressions without side effects, of
 * the row's types. */
void rows_print(const struct kir_module *module, struct str *out);

/* The functions that expressions of rows call: complete definitions in C.  They are in an order
 * in which each calls only those before it; NULL: there are no more. */
const char *rows_function(uint32_t number);

#endif
