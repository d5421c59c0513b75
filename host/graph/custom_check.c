/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin says of an op, checked against the rules of custom.h and copied into a row and a
 * record.  Nothing of the plugin but its functions and `self` is looked at afterwards. */
#include <string.h>

#include "base/arena.h"
#include "base/fail.h"
#include "graph/custom.h"

enum { MAX_WORD = 31, MAX_MEANING = 200 };

static const uint32_t known_traits =
    FRIT_OP_COMMUTES | FRIT_OP_ASSOC | FRIT_OP_SCALARS | FRIT_OP_SEEDED | FRIT_OP_ORDERED;

/* ---- names ---- */

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Length of the word at `at`, 0 if there is none. */
static uint64_t word_length(frit_str text, uint64_t at)
{
    uint64_t end = at;

    if (at >= text.len || !is_letter(text.ptr[at]))
        return 0;
    while (end < text.len &&
           (is_letter(text.ptr[end]) || is_digit(text.ptr[end]) || text.ptr[end] == '_'))
        end++;
    return end - at;
}

bool custom_name_fits(frit_str name)
{
    uint64_t at = 0, words = 0;

    if (!name.ptr || name.len > FRIT_CUSTOM_NAME)
        return false;
    for (;; at++) {
        uint64_t length = word_length(name, at);

        at += length;
        words++;
        if (!length || at == name.len)
            return false;
        if (name.ptr[at] != '.')
            break;
    }
    if (words < 2 || name.ptr[at++] != '/' || at == name.len || name.ptr[at] == '0')
        return false;
    while (at < name.len && is_digit(name.ptr[at]))
        at++;
    return at == name.len;
}

static bool is_word(frit_str text)
{
    return text.ptr && text.len && text.len <= MAX_WORD && word_length(text, 0) == text.len;
}

/* ---- what is being built ---- */

struct making {
    struct arena *arena;
    const frit_custom_op *from;
    struct custom_op *out;
    bool has_dtype; /* an attribute of type DTYPE */
    frit_err *err;
};

static const char *copy_text(const struct making *m, frit_str text)
{
    uint64_t length = !text.ptr ? 0 : text.len < MAX_MEANING ? text.len : MAX_MEANING;

    return arena_text(m->arena, length ? text.ptr : "", (size_t)length);
}

/* ---- operands and results ---- */

static const frit_custom_slot *slot_at(const struct making *m, const frit_custom_slot *list,
                                       uint32_t index)
{
    return (const frit_custom_slot *)(const void *)((const char *)list +
                                                    (size_t)m->from->slot_stride * index);
}

static const char *slot_trouble(const struct making *m, const frit_custom_slot *slot, uint32_t low,
                                uint32_t high, uint32_t index)
{
    if (!is_word(slot->name))
        return "has a name that is not a word";
    if (slot->role < low || slot->role > high)
        return "has a role that it cannot have";
    if (slot->role == FRIT_ROLE_MANY && index > 0)
        return "is MANY and not the first";
    if (slot->letter > FRIT_LETTER_P)
        return "has an unknown type letter";
    if (slot->letter == FRIT_LETTER_D && !m->has_dtype)
        return "is of type D without an attribute of type DTYPE";
    if (slot->letter == FRIT_LETTER_NONE && slot->role == FRIT_ROLE_NUM)
        return "is a number without a type letter";
    return NULL;
}

static frit_status take_slots(const struct making *m, const char *what, uint32_t count,
                              const frit_custom_slot *list, uint32_t low, uint32_t high,
                              frit_slot_info *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const frit_custom_slot *slot = slot_at(m, list, i);
        const char *why = slot_trouble(m, slot, low, high, i);

        if (why)
            return fail(m->err, FRIT_INVALID, "%s %u %s", what, i, why);
        out[i] = (frit_slot_info){copy_text(m, slot->name), slot->role, slot->letter};
        if (!out[i].name)
            return fail_memory(m->err, (size_t)slot->name.len);
    }
    return FRIT_OK;
}

/* Results of a letter that no operand binds have no type. */
static frit_status check_bound(const struct making *m)
{
    const frit_op_info *row = &m->out->row;

    for (uint32_t k = 0; k < m->from->n_out; k++) {
        uint32_t letter = row->out[k].letter;
        bool bound = letter == FRIT_LETTER_NONE || letter == FRIT_LETTER_D ||
                     letter == FRIT_LETTER_I64 || letter == FRIT_LETTER_BOOL;

        for (uint32_t i = 0; i < m->from->n_in; i++)
            bound = bound || row->in[i].letter == letter;
        if (!bound)
            return fail(m->err, FRIT_INVALID, "result %u has the type of no operand", k);
    }
    return FRIT_OK;
}

/* ---- attributes ---- */

static uint32_t field_bytes(uint32_t type)
{
    switch (type) {
    case FRIT_ATTR_AXES:
        return sizeof(frit_axes);
    case FRIT_ATTR_DIMS:
        return sizeof(frit_dims);
    case FRIT_ATTR_VEC:
        return 3 * sizeof(int64_t);
    case FRIT_ATTR_SLICES:
        return sizeof(frit_slices);
    default:
        return sizeof(int64_t);
    }
}

static const char *field_trouble(const struct making *m, const frit_custom_field *field)
{
    const frit_record_info *record = &m->out->record;

    if (!is_word(field->name))
        return "has a name that is not a word";
    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (strlen(record->field[i].name) == field->name.len &&
            memcmp(record->field[i].name, field->name.ptr, (size_t)field->name.len) == 0)
            return "has the name of an earlier one";
    }
    if (field->type < FRIT_ATTR_INT || field->type > FRIT_ATTR_REAL ||
        field->type == FRIT_ATTR_CHOICE)
        return "has a type that it cannot have";
    if (field->use < FRIT_USE_KEY || field->use > FRIT_USE_SHAPE)
        return "has an unknown use";
    if (field->use == FRIT_USE_LAUNCH && field->type != FRIT_ATTR_REAL &&
        field->type != FRIT_ATTR_DIMS && field->type != FRIT_ATTR_SLICES)
        return "is LAUNCH, but no REAL, DIMS or SLICES";
    if (field->place != FRIT_PLACE_POS && field->place != FRIT_PLACE_NAMED)
        return "has an unknown place";
    if (field->type == FRIT_ATTR_DTYPE && field->place != FRIT_PLACE_POS)
        return "is a DTYPE, which has no default, but not POS";
    return NULL;
}

static frit_status take_fields(struct making *m)
{
    frit_record_info *record = &m->out->record;

    record->size = sizeof(uint64_t);
    for (uint32_t i = 0; i < m->from->n_fields; i++) {
        const frit_custom_field *field =
            (const frit_custom_field *)(const void *)((const char *)m->from->fields +
                                                      (size_t)m->from->field_stride * i);
        const char *why = field_trouble(m, field);
        frit_field_info *info = &record->field[i];

        if (why)
            return fail(m->err, FRIT_INVALID, "attribute %u %s", i, why);
        *info = (frit_field_info){.name = copy_text(m, field->name),
                                  .choices = "none",
                                  .meaning = copy_text(m, field->meaning),
                                  .type = field->type,
                                  .use = field->use,
                                  .place = field->place,
                                  .offset = record->size,
                                  .size = field_bytes(field->type)};
        if (!info->name || !info->meaning)
            return fail_memory(m->err, MAX_MEANING);
        record->size += info->size;
        record->n_fields++;
        m->has_dtype = m->has_dtype || field->type == FRIT_ATTR_DTYPE;
    }
    if (record->size > FRIT_CUSTOM_RECORD)
        return fail(m->err, FRIT_INVALID, "the attributes' record has %u bytes, %d are allowed",
                    record->size, FRIT_CUSTOM_RECORD);
    return FRIT_OK;
}

/* ---- the op ---- */

static bool bad_stride(uint32_t stride, size_t item)
{
    return stride < item || stride % sizeof(void *);
}

static const char *head_trouble(const frit_custom_op *from)
{
    if (!from->rev)
        return "rev is 0, revisions count from 1";
    if (!from->infer)
        return "slot 'infer' is NULL";
    if (from->traits & ~known_traits)
        return "a trait is not known here";
    if (from->n_in > FRIT_CUSTOM_IN)
        return "more than 6 operands";
    if (from->n_out > FRIT_CUSTOM_OUT)
        return "more than 5 results";
    if (from->n_fields > FRIT_CUSTOM_FIELDS)
        return "more than 7 attributes";
    if ((from->n_in && !from->in) || (from->n_out && !from->out) ||
        (from->n_fields && !from->fields))
        return "a list is NULL";
    if (((from->n_in || from->n_out) && bad_stride(from->slot_stride, sizeof(frit_custom_slot))) ||
        (from->n_fields && bad_stride(from->field_stride, sizeof(frit_custom_field))))
        return "a stride is too small or odd";
    if (!from->n_out && !(from->traits & FRIT_OP_ORDERED))
        return "no results and not ORDERED: it would never run";
    return NULL;
}

frit_status custom_build(struct arena *arena, const frit_custom_op *from, struct custom_op *out,
                         frit_err *err)
{
    struct making m = {.arena = arena, .from = from, .out = out, .err = err};
    const char *why = head_trouble(from);
    frit_op_info *row = &out->row;

    if (why)
        return fail(err, FRIT_INVALID, "%s", why);
    out->self = from->self;
    out->infer = from->infer;
    out->decompose = from->decompose;
    row->name = arena_text(arena, from->name.ptr, (size_t)from->name.len);
    row->meaning = copy_text(&m, from->meaning);
    if (!row->name || !row->meaning)
        return fail_memory(err, MAX_MEANING);
    out->record.name = row->name;
    row->cls = FRIT_CLASS_NONE;
    row->level = from->decompose ? FRIT_LEVEL_COMPOSITE : FRIT_LEVEL_CORE;
    row->traits = from->traits;
    row->rev = from->rev;
    TRY(take_fields(&m));
    TRY(take_slots(&m, "operand", from->n_in, from->in, FRIT_ROLE_IN, FRIT_ROLE_MANY, row->in));
    TRY(take_slots(&m, "result", from->n_out, from->out, FRIT_ROLE_OUT, FRIT_ROLE_XOUT, row->out));
    return check_bound(&m);
}
