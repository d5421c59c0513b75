/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <frit/op.h>

#include "onnx/model.h"

enum { NEWEST = ONNX_NEWEST_OPSET };

#define MANY UINT32_MAX

static const struct onnx_row rows[] = {
#define ONNX_ROW(domain, name, since, until, most, function, number) \
    {domain, #name, since, until, most, onnx_row_##function, number},
#include "onnx/rows.def"
};

enum { COUNT = sizeof(rows) / sizeof(rows[0]) };

const struct onnx_row *rows_find(const char *domain, const char *name, int64_t opset,
                                 bool *name_known)
{
    *name_known = false;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (strcmp(rows[i].name, name) != 0 || strcmp(rows[i].domain, domain) != 0)
            continue;
        *name_known = true;
        if (opset >= rows[i].since && opset <= rows[i].until)
            return &rows[i];
    }
    return NULL;
}

int64_t rows_nearest(const char *domain, const char *name, int64_t opset)
{
    int64_t nearest = -1;

    for (uint32_t i = 0; i < COUNT; i++) {
        const int64_t at = opset < rows[i].since ? rows[i].since : rows[i].until;

        if (strcmp(rows[i].name, name) != 0 || strcmp(rows[i].domain, domain) != 0)
            continue;
        if (nearest < 0 || llabs(at - opset) < llabs(nearest - opset))
            nearest = at;
    }
    return nearest;
}
