/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/import.h"

#include <string.h>

#include "base/fail.h"
#include "onnx/problem.h"

/* ---- memory ---- */

frit_status import_fail_memory(struct onnx_import *import, size_t bytes)
{
    if (!import->status)
        import->status = fail_memory(import->err, bytes);
    return import->status;
}

void *import_alloc(struct onnx_import *import, size_t bytes)
{
    void *memory = import->status ? NULL : arena_alloc(&import->arena, bytes);

    if (!memory)
        import_fail_memory(import, bytes);
    return memory;
}

void *import_elements(struct onnx_import *import, size_t bytes)
{
    void *memory = import->status ? NULL : arena_alloc(&import->graph->arena, bytes);

    if (!memory)
        import_fail_memory(import, bytes);
    return memory;
}

/* ---- values ---- */

val *import_find(const struct import_scope *scope, const char *name)
{
    val *value = NULL;

    for (; scope && !value; scope = scope->outer)
        value = map_get(&scope->values, name, strlen(name));
    return value;
}

void import_define(struct onnx_import *import, struct import_scope *scope, const char *name,
                   val *value)
{
    size_t length = strlen(name);

    if (map_get(&scope->values, name, length))
        problem_add(import, "'%.100s' is defined twice", name);
    else if (!map_add(&scope->values, name, length, value))
        import_fail_memory(import, length);
}

val *import_constant(struct onnx_import *import, const struct op_type *type, const void *data,
                     const char *name)
{
    val *value = import_alloc(import, sizeof(*value));

    if (value)
        *value = (val){.kind = VALUE_TENSOR,
                       .type = *type,
                       .number = GRAPH_NO_VALUE,
                       .data = data,
                       .name = name};
    return value;
}
