/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the tags of a message by its descriptor.  The unpacker of protobuf-c nests without a limit
 * and says of what it refuses nothing; after this check neither matters. */
#include "onnx/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"

enum {
    MAX_DEPTH = 100,
    MAX_MESSAGES = 1 << 22,
    /* Of tags. */
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5
};

/* A message that is being walked, and the field of it that is. */
struct level {
    const struct level *outer;
    const ProtobufCMessageDescriptor *type;
    const char *field;
    uint64_t index; /* of the field among those of its name */
    uint32_t depth;
};

struct wire {
    const uint8_t *start;
    uint32_t n_messages;
    frit_err *err;
};

/* "graph.node[3].attribute[0]" without the innermost level's type. */
static void describe(const struct level *level, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    if (level->outer) {
        describe(level->outer, text, size);
        while (text[used])
            used++;
    }
    if (level->field)
        snprintf(text + used, size - used, "%s%s[%llu]", used ? "." : "", level->field,
                 (unsigned long long)level->index);
}

static frit_status broken(const struct wire *wire, const struct level *level, const uint8_t *at,
                          const char *what)
{
    char where[256];

    describe(level, where, sizeof(where));
    return fail(wire->err, FRIT_INVALID, "no ONNX model, or a damaged one: %s at byte %llu%s%s",
                what, (unsigned long long)(at - wire->start), where[0] ? ", in " : "", where);
}

/* NULL: no number of at most 64 bits ends before `end`. */
static const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (uint32_t shift = 0; at < end && shift < 64; shift += 7, at++) {
        *out |= (uint64_t)(*at & 0x7f) << shift;
        if (!(*at & 0x80))
            return at + 1;
    }
    return NULL;
}

static frit_status check_message(struct wire *wire, const struct level *outer,
                                 const ProtobufCMessageDescriptor *type, const uint8_t *at,
                                 const uint8_t *end);

/* What a tag is followed by; `at` moves behind it. */
static frit_status check_value(struct wire *wire, const struct level *level,
                               const ProtobufCFieldDescriptor *field, uint32_t kind,
                               const uint8_t **at, const uint8_t *end)
{
    const uint8_t *begin = *at;
    uint64_t length = kind == FIXED64 ? 8 : 4;

    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE && kind != BYTES)
        return broken(wire, level, begin, "a number in the place of a message");
    if (kind == VARINT) {
        *at = read_varint(begin, end, &length);
        return *at ? FRIT_OK : broken(wire, level, begin, "a number without an end");
    }
    if (kind == BYTES) {
        *at = read_varint(begin, end, &length);
        if (!*at)
            return broken(wire, level, begin, "a length without an end");
    } else if (kind != FIXED64 && kind != FIXED32) {
        return broken(wire, level, begin, "an unknown kind of field");
    }
    if (length > (uint64_t)(end - *at))
        return broken(wire, level, begin, "a field that is longer than what is left");
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
        TRY(check_message(wire, level, field->descriptor, *at, *at + length));
    *at += length;
    return FRIT_OK;
}

static frit_status check_message(struct wire *wire, const struct level *outer,
                                 const ProtobufCMessageDescriptor *type, const uint8_t *at,
                                 const uint8_t *end)
{
    struct level level = {.outer = outer, .type = type, .depth = outer ? outer->depth + 1 : 0};

    if (level.depth == MAX_DEPTH)
        return broken(wire, &level, at, "messages nested too deep");
    if (wire->n_messages++ == MAX_MESSAGES)
        return broken(wire, &level, at, "more than four million messages");
    while (at < end) {
        const uint8_t *begin = at;
        const ProtobufCFieldDescriptor *field;
        uint64_t tag;

        at = read_varint(at, end, &tag);
        if (!at || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
            return broken(wire, &level, begin, "no tag of a field");
        field = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        if (!field || field->name != level.field)
            level.index = 0;
        else
            level.index++;
        level.field = field ? field->name : NULL;
        TRY(check_value(wire, &level, field, (uint32_t)(tag & 7), &at, end));
    }
    return FRIT_OK;
}

frit_status wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n_bytes,
                       frit_err *err)
{
    struct wire wire = {.start = bytes, .err = err};

    return check_message(&wire, NULL, type, bytes, (const uint8_t *)bytes + n_bytes);
}
