/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a node; in a function's nodes they may be those of its call.  A wrong type is a
 * problem of the node. */
#ifndef ONNX_ATTR_H
#define ONNX_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include <onnx.pb-c.h>

struct import_node;

/* A short list of whole numbers. */
struct ints {
    uint32_t count;
    int64_t at[64];
};

bool attr_has(struct import_node *node, const char *name);
int64_t attr_int(struct import_node *node, const char *name, int64_t otherwise);
double attr_float(struct import_node *node, const char *name, double otherwise);
/* A terminated text; `otherwise` may be NULL. */
const char *attr_text(struct import_node *node, const char *name, const char *otherwise);
/* Whether the text is this word; `first` is the word of a missing attribute. */
bool attr_is(struct import_node *node, const char *name, const char *first, const char *word);
/* False: there is no such attribute, or the node failed. */
bool attr_ints(struct import_node *node, const char *name, struct ints *out);
/* A list of exactly `count` numbers from `least` to INT32_MAX; `otherwise` each where there is no
 * such attribute.  What is not so is a problem of the node. */
void attr_numbers(struct import_node *node, const char *name, uint32_t count, int64_t least,
                  int64_t otherwise, int64_t *out);
/* NULL: there is none. */
const Onnx__TensorProto *attr_tensor(struct import_node *node, const char *name);
const Onnx__GraphProto *attr_graph(struct import_node *node, const char *name);
const Onnx__AttributeProto *attr_floats(struct import_node *node, const char *name);
const Onnx__AttributeProto *attr_texts(struct import_node *node, const char *name);

#endif
