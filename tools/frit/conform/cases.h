/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows, and the cases that follow from it. */
#ifndef CONFORM_CASES_H
#define CONFORM_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conform/conform.h"

struct conform_case;
struct conform_cases;
struct conform_check;
struct conform_row;

/* The rows in the order of rows.def, then those that it leaves out; false beyond the last. */
bool conform_row_at(size_t index, struct conform_row *out);
/* Adds all checks; false if out of memory. */
bool conform_checks_add(struct conform_cases *cases);
bool conform_check_add(struct conform_cases *cases, const struct conform_check *check);
/* Adds the row's cases; false if out of memory. */
bool conform_cases_add(struct conform_cases *cases, const struct conform_row *row, bool quick);
/* "add/f32/odd/permuted", "fuser/clone" */
const char *conform_case_name(const struct conform_case *one, char text[CONFORM_NAME]);
/* Whether a type letter of a row takes an element type. */
bool conform_letter_takes(uint32_t letter, uint32_t dtype);

#endif
