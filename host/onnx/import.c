/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/import.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/fold.h"
#include "onnx/model.h"
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

/* Many of them outlive the graph, because tensors may use them in place (api/graph_constants.c). */
void *import_elements(struct onnx_import *import, size_t bytes)
{
    struct arena *arena = bytes > FOLD_MAX_BYTES ? &import->model->arena : &import->graph->arena;
    void *memory = import->status ? NULL : arena_alloc(arena, bytes);

    if (!memory)
        import_fail_memory(import, bytes);
    return memory;
}

bool import_step(struct onnx_import *import)
{
    enum { MAX_STEPS = 1 << 20 };

    if (import->n_steps++ >= MAX_STEPS && !import->status)
        import->status =
            fail(import->err, FRIT_UNSUPPORTED, "%s: unrolled, the model has more than %d nodes",
                 import->model->path, MAX_STEPS);
    return !import->status;
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

/* ---- constants of the graph ---- */

/* The file that has a constant's elements in the text form: its number and its name. */
static const char *file_of(struct onnx_import *import, uint32_t number, const char *name)
{
    char file[96];
    int used = snprintf(file, sizeof(file), "c%u", number);

    if (name && name[0] && used < (int)sizeof(file) - 8) {
        file[used++] = '-';
        for (; *name && used < (int)sizeof(file) - 8; name++)
            file[used++] = (char)(isalnum((unsigned char)*name) || *name == '.' ? *name : '_');
    }
    snprintf(file + used, sizeof(file) - (size_t)used, ".npy");
    return arena_text(&import->graph->arena, file, strlen(file));
}

frit_status import_place(struct onnx_import *import, val *value)
{
    enum { INLINE = 16 };
    struct graph_value *placed;

    if (value->kind != VALUE_TENSOR || value->number != GRAPH_NO_VALUE)
        return FRIT_OK;
    TRY(graph_input(import->graph, GRAPH_CONST, value->name, &value->type, &value->number,
                    import->err));
    placed = &import->graph->values[value->number];
    placed->data = value->data;
    if (op_elements(&value->type) <= INLINE && fold_reads(value->type.dtype))
        return FRIT_OK;
    placed->file = file_of(import, value->number, value->name);
    return placed->file ? FRIT_OK : fail_memory(import->err, 0);
}
