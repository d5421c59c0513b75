/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in front of the phases' text. */
#ifndef EMIT_C_HEAD_H
#define EMIT_C_HEAD_H

#include "base/str.h"

#include "ir/kir.h"

/* The C types of values. */
const char *head_type(uint32_t type);
/* The C type of an argument's elements, and what its load_ and store_ functions are called. */
const char *head_memory_type(uint32_t dtype);
const char *head_memory_name(uint32_t dtype);
/* The type in the names of an instruction's function: that of operand a. */
const char *head_type_name(uint32_t type);

/* Types, the words of the grouped form, and a function for each row that the module uses. */
void head_print(const struct kir_module *module, struct str *out);

#endif
