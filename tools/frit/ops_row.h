/* SPDX-License-Identifier: Apache-2.0 */
/* How `frit ops` shows what an op takes and gives, of the table or of a plugin. */
#ifndef CLI_OPS_ROW_H
#define CLI_OPS_ROW_H

#include <frit/op_table.h>

#include "json.h"

/* "y = conv x, w, [stride=]", what it means, and a line for each of them. */
void op_show(const frit_op_info *row, const frit_record_info *record);
/* The lists `inputs`, `outputs` and `attributes`. */
void op_print(struct json *json, const frit_op_info *row, const frit_record_info *record);

#endif
