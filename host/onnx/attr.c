/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/attr.h"

#include <string.h>

#include "onnx/import.h"
#include "onnx/problem.h"

static const Onnx__AttributeProto *find_in(const Onnx__NodeProto *proto, const char *name)
{
    for (size_t i = 0; i < proto->n_attribute; i++) {
        if (proto->attribute[i]->name && strcmp(proto->attribute[i]->name, name) == 0)
            return proto->attribute[i];
    }
    return NULL;
}

/* Follows references to attributes of calls. */
static const Onnx__AttributeProto *find(const struct import_node *node, const char *name)
{
    const Onnx__AttributeProto *attr = find_in(node->proto, name);
    const struct import_scope *scope = node->scope;

    while (attr && attr->ref_attr_name && attr->ref_attr_name[0]) {
        while (scope && !scope->call)
            scope = scope->outer;
        if (!scope)
            return NULL;
        attr = find_in(scope->call, attr->ref_attr_name);
        scope = scope->caller;
    }
    return attr;
}

/* Old files do not say the type: then it is what the caller wants. */
static const Onnx__AttributeProto *find_of(struct import_node *node, const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    const Onnx__AttributeProto *attr = find(node, name);

    if (node->failed || !attr || !attr->has_type || attr->type == type)
        return node->failed ? NULL : attr;
    problem_node(node, "attribute %s has another type than ONNX says", name);
    return NULL;
}

bool attr_has(struct import_node *node, const char *name)
{
    return find(node, name) != NULL;
}

int64_t attr_int(struct import_node *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *attr =
        find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    return attr ? attr->i : otherwise;
}

double attr_float(struct import_node *node, const char *name, double otherwise)
{
    const Onnx__AttributeProto *attr =
        find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    return attr ? (double)attr->f : otherwise;
}

/* protobuf-c ends bytes with no 0 that can be relied on. */
const char *attr_text(struct import_node *node, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *attr =
        find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    char *text;

    if (!attr)
        return otherwise;
    text = arena_text(&node->import->arena, (const char *)attr->s.data, attr->s.len);
    if (!text)
        import_fail_memory(node->import, attr->s.len);
    return text ? text : otherwise;
}

bool attr_is(struct import_node *node, const char *name, const char *first, const char *word)
{
    return strcmp(attr_text(node, name, first), word) == 0;
}

bool attr_ints(struct import_node *node, const char *name, struct ints *out)
{
    const Onnx__AttributeProto *attr =
        find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    const size_t most = sizeof(out->at) / sizeof(out->at[0]);

    out->count = 0;
    if (!attr)
        return false;
    if (attr->n_ints > most) {
        problem_node(node, "attribute %s has %zu numbers, which is too many", name, attr->n_ints);
        return false;
    }
    out->count = (uint32_t)attr->n_ints;
    if (attr->n_ints)
        memcpy(out->at, attr->ints, attr->n_ints * sizeof(out->at[0]));
    return true;
}

const Onnx__TensorProto *attr_tensor(struct import_node *node, const char *name)
{
    const Onnx__AttributeProto *attr =
        find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);

    return attr ? attr->t : NULL;
}

void attr_numbers(struct import_node *node, const char *name, uint32_t count, int64_t least,
                  int64_t otherwise, int64_t *out)
{
    struct ints ints;
    bool there = attr_ints(node, name, &ints);

    if (there && ints.count != count)
        problem_node(node, "%s has %u numbers, %u are wanted", name, ints.count, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = there && i < ints.count ? ints.at[i] : otherwise;
        if (out[i] < least || out[i] > INT32_MAX)
            problem_node(node, "%s is %lld", name, (long long)out[i]);
    }
}

const Onnx__GraphProto *attr_graph(struct import_node *node, const char *name)
{
    const Onnx__AttributeProto *attr =
        find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);

    return attr ? attr->g : NULL;
}

const Onnx__AttributeProto *attr_floats(struct import_node *node, const char *name)
{
    return find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
}

const Onnx__AttributeProto *attr_texts(struct import_node *node, const char *name)
{
    return find_of(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
}
