/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "onnx/import.h"
#include "onnx/model.h"

enum { MAX_PROBLEMS = 1000, LINE = 700 };

/* Names come from the file: what is no plain text is replaced. */
static void add_line(struct onnx_import *import, const char *line)
{
    char clean[LINE];

    if (import->status || import->n_problems++ >= MAX_PROBLEMS)
        return; /* what ended the import says enough */
    text_clean(line, strlen(line), clean, sizeof(clean));
    str_addf(import->problems, "%s: %s\n", import->model->path, clean);
}

void problem_add(struct onnx_import *import, const char *format, ...)
{
    char line[LINE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    add_line(import, line);
}

/* "node 'a' (If): " for each graph around it, then for the node itself; returns the length. */
static int node_text(const struct import_node *node, char *line, int size)
{
    const Onnx__NodeProto *proto = node->proto;
    int used = node->scope->node ? node_text(node->scope->node, line, size) : 0;

    if (used > size - LINE / 2) /* what is deeper is not named */
        return used;
    if (proto->name && proto->name[0])
        return used + snprintf(line + used, (size_t)(size - used),
                               "node '%.100s' (%.60s): ", proto->name, proto->op_type);
    return used + snprintf(line + used, (size_t)(size - used),
                           "node %zu (%.60s%s%.100s): ", node->index, proto->op_type,
                           proto->n_output ? ", which gives " : "",
                           proto->n_output ? proto->output[0] : "");
}

void problem_node(struct import_node *node, const char *format, ...)
{
    char line[LINE];
    int used;
    va_list args;

    if (node->failed)
        return;
    node->failed = true;
    used = node_text(node, line, sizeof(line));
    va_start(args, format);
    vsnprintf(line + used, sizeof(line) - (size_t)used, format, args);
    va_end(args);
    add_line(node->import, line);
}
