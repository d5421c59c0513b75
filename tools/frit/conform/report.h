/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases come to. */
#ifndef CONFORM_REPORT_H
#define CONFORM_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct conform_report;

/* A line for each op of a plugin that took none of the operands: nothing of it was compared. */
void conform_report_warn(const struct conform_report *report, FILE *out);
void conform_report_text(const struct conform_report *report, FILE *out);
void conform_report_json(const struct conform_report *report, FILE *out);
/* False if the file cannot be written. */
bool conform_report_junit(const struct conform_report *report, const char *path);

#endif
