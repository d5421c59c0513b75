/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a model from running: one line each, all of them found before it is given up. */
#ifndef ONNX_PROBLEM_H
#define ONNX_PROBLEM_H

#include <frit/types.h>

struct import_node;
struct onnx_import;

/* A line of its own. */
void problem_add(struct onnx_import *import, const char *format, ...) FRIT_PRINTF(2, 3);
/* Of a node, with its name; only the first counts, and the node emits nothing any more. */
void problem_node(struct import_node *node, const char *format, ...) FRIT_PRINTF(2, 3);

#endif
