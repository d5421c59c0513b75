/* SPDX-License-Identifier: Apache-2.0 */
/* A packed key, fields with their widths in bits:
 *   word 0   op 16 | interned attributes 24 | operands 4 | requested outputs 8 | listed types 2 |
 *            last type equals the first operand's 1 | deaths 3 | 0 4 | form 2 = 1
 *   word 1   operands, 16 each: kind 2, number 14
 *   word 2   the first two listed types
 *   word 3   the third listed type and two deaths, or four deaths, 16 each
 * An interned key: word 0 has form 2 and the number of the interned bytes.  For custom ops these
 * contain name and rev instead of the op number, which differs between processes. */
#include "plan/key.h"

#include <string.h>

#include <frit/op.h>
#include <frit/op_table.h>

#include "base/str.h"
#include "graph/custom.h"
#include "graph/op.h"
#include "plan/automaton.h"
#include "plan/walker.h"

enum {
    FORM_PACKED = 1,
    FORM_INTERNED = 2,
    MAX_NUMBER = 1 << 14,
    MAX_ATTRS = 1 << 24,
    TYPE_EXTENTS = 4,
    MAX_EXTENT = 32
};

void key_type_pack(struct key_type *type)
{
    uint32_t packed = type->dtype | (type->rank + 1) << 6;

    type->packed = 0;
    if (type->rank > TYPE_EXTENTS || type->dtype >= 64)
        return;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (type->extent[d] >= MAX_EXTENT)
            return;
        packed |= type->extent[d] << (9 + 5 * d);
    }
    type->packed = packed;
}

/* Appends the KEY fields; nothing if there are none. */
static void add_attrs(uint32_t op, const void *attrs, struct str *out)
{
    const frit_op_info *row = op_row(op);
    const frit_record_info *record = op_record(row);

    for (uint32_t i = 0; i < record->n_fields && attrs; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use == FRIT_USE_KEY)
            str_add(out, (const char *)attrs + field->offset, field->size);
    }
}

uint32_t key_attrs(struct walker *walker, uint32_t op, const void *attrs)
{
    struct str bytes = {0};
    uint32_t id = 0;

    add_attrs(op, attrs, &bytes);
    if (bytes.length)
        id = walker_intern(walker, bytes.text, bytes.length);
    if (bytes.failed || (bytes.length && !id))
        id = UINT32_MAX;
    str_fini(&bytes);
    return id;
}

static void sort(uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t number = numbers[i], k = i;

        for (; k > 0 && numbers[k - 1] > number; k--)
            numbers[k] = numbers[k - 1];
        numbers[k] = number;
    }
}

/* Whether the last new value is an output of the first operand's type, which is then not listed. */
static bool last_equals_first(const struct key_parts *parts)
{
    return parts->n_types && parts->wanted && parts->first_tensor_type &&
           parts->types[parts->n_types - 1].packed == parts->first_tensor_type;
}

static bool fits(const struct key_parts *parts, uint32_t n_listed)
{
    if (parts->form || parts->op >= FRIT_OP_CUSTOM || parts->attrs_id >= MAX_ATTRS ||
        parts->n_in > 4 || parts->wanted > 0xff || n_listed > 3 ||
        parts->n_dead > (n_listed == 3 ? 2 : 4))
        return false;
    for (uint32_t i = 0; i < parts->n_in; i++) {
        if (parts->in[i].value >= MAX_NUMBER)
            return false;
    }
    for (uint32_t i = 0; i < parts->n_types; i++) {
        if (!parts->types[i].packed)
            return false;
    }
    return parts->n_dead == 0 || parts->dead[parts->n_dead - 1] < MAX_NUMBER;
}

static void pack(const struct key_parts *parts, uint32_t n_listed, struct op_key *key)
{
    const uint64_t listed = n_listed, as_first = n_listed < parts->n_types;
    uint64_t *word = key->word;
    uint32_t shift = n_listed == 3 ? 32 : 0;

    memset(key, 0, sizeof(*key));
    word[0] = parts->op | (uint64_t)parts->attrs_id << 16 | (uint64_t)parts->n_in << 40 |
              (uint64_t)parts->wanted << 44 | listed * ((uint64_t)1 << 52) | as_first << 54 |
              (uint64_t)parts->n_dead << 55 | (uint64_t)FORM_PACKED << 62;
    for (uint32_t i = 0; i < parts->n_in; i++)
        word[1] |= (uint64_t)(parts->in[i].kind | parts->in[i].value << 2) << (16 * i);
    for (uint32_t i = 0; i < n_listed; i++)
        word[2 + i / 2] |= (uint64_t)parts->types[i].packed << (32 * (i % 2));
    for (uint32_t i = 0; i < parts->n_dead; i++)
        word[3] |= (uint64_t)(parts->dead[i] + 1) << (shift + 16 * i);
}

static void add_words(struct str *out, const uint32_t *words, uint32_t count)
{
    str_add(out, (const char *)words, count * sizeof(*words));
}

static bool write_out(struct walker *walker, const struct key_parts *parts, struct op_key *key)
{
    uint32_t head[] = {parts->op,
                       parts->n_in,
                       parts->n_types,
                       parts->n_dead,
                       parts->wanted,
                       parts->attrs_id != 0,
                       parts->form ? (uint32_t)parts->form->n_bytes : 0};
    const frit_op_info *custom = custom_row(parts->op);
    struct str text = {0};
    uint32_t id;

    if (custom)
        head[0] = FRIT_OP_CUSTOM;
    add_words(&text, head, sizeof(head) / sizeof(head[0]));
    if (custom)
        str_addf(&text, "%s %u%c", custom->name, custom->rev, '\0');
    for (uint32_t i = 0; i < parts->n_in; i++)
        add_words(&text, (const uint32_t[]){parts->in[i].kind, parts->in[i].value}, 2);
    for (uint32_t i = 0; i < parts->n_types; i++) {
        add_words(&text, &parts->types[i].dtype, 1);
        add_words(&text, &parts->types[i].rank, 1);
        add_words(&text, parts->types[i].extent, parts->types[i].rank);
    }
    add_words(&text, parts->dead, parts->n_dead);
    add_attrs(parts->op, parts->attrs, &text);
    if (parts->form)
        str_add(&text, parts->form->bytes, parts->form->n_bytes);
    id = text.failed ? 0 : walker_intern(walker, text.text, text.length);
    str_fini(&text);
    memset(key, 0, sizeof(*key));
    key->word[0] = (uint64_t)FORM_INTERNED << 62 | id;
    return id != 0;
}

bool key_make(struct walker *walker, const struct key_parts *parts, struct op_key *key)
{
    uint32_t n_listed = parts->n_types - last_equals_first(parts);

    if (parts->attrs_id == UINT32_MAX)
        return false;
    sort(parts->dead, parts->n_dead);
    if (!fits(parts, n_listed))
        return write_out(walker, parts, key);
    pack(parts, n_listed, key);
    return true;
}

uint32_t key_interned(const struct op_key *key)
{
    if (key->word[0] >> 62 == FORM_INTERNED)
        return (uint32_t)key->word[0];
    return (uint32_t)(key->word[0] >> 16) & (MAX_ATTRS - 1);
}

void key_with_interned(struct op_key *key, uint32_t id)
{
    if (key->word[0] >> 62 == FORM_INTERNED)
        key->word[0] = (uint64_t)FORM_INTERNED << 62 | id;
    else
        key->word[0] = (key->word[0] & ~((uint64_t)(MAX_ATTRS - 1) << 16)) | (uint64_t)id << 16;
}
