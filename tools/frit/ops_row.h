/* SPDX-License-Identifier: Apache-2.0 */
/* Prints operands, results and attributes of an op, from the table or from a plugin. */
#ifndef CLI_OPS_ROW_H
#define CLI_OPS_ROW_H

#include <frit/op_table.h>

#include "json.h"

/* Prints "y = conv x, w, [stride=]", the meaning, and a line per operand, attribute and result. */
void op_show(const frit_op_info *row, const frit_record_info *record);
/* Writes the lists `inputs`, `outputs` and `attributes`. */
void op_print(struct json *json, const frit_op_info *row, const frit_record_info *record);

#endif
