/* SPDX-License-Identifier: Apache-2.0 */
#include "ops_row.h"

#include <stdio.h>
#include <string.h>

static const char *const letter_names[] = {
    [FRIT_LETTER_T] = "any type",      [FRIT_LETTER_N] = "number",
    [FRIT_LETTER_F] = "float",         [FRIT_LETTER_Z] = "integer",
    [FRIT_LETTER_L] = "integer, bool", [FRIT_LETTER_R] = "number, bool",
    [FRIT_LETTER_I] = "i32, i64",      [FRIT_LETTER_BOOL] = "bool",
    [FRIT_LETTER_I64] = "i64",         [FRIT_LETTER_D] = "as dtype says",
    [FRIT_LETTER_P] = "packed",        [FRIT_LETTER_NONE] = "any, by itself",
};

static const char *const role_names[] = {
    [FRIT_ROLE_IN] = "tensor",  [FRIT_ROLE_OPT] = "tensor or none",
    [FRIT_ROLE_NUM] = "scalar", [FRIT_ROLE_MANY] = "one or more tensors",
    [FRIT_ROLE_OUT] = "output", [FRIT_ROLE_XOUT] = "output on request",
};

static const char *const attr_names[] = {
    [FRIT_ATTR_INT] = "integer",   [FRIT_ATTR_FLAG] = "0 or 1",
    [FRIT_ATTR_CHOICE] = "word",   [FRIT_ATTR_DTYPE] = "type",
    [FRIT_ATTR_AXIS] = "axis",     [FRIT_ATTR_AXES] = "axes",
    [FRIT_ATTR_DIMS] = "per dim",  [FRIT_ATTR_VEC] = "per spatial dim",
    [FRIT_ATTR_SLICES] = "slices", [FRIT_ATTR_REAL] = "number",
};

/* ---- text ---- */

static void show_signature(const frit_op_info *row, const frit_record_info *record)
{
    const char *separator = " ";

    for (const frit_slot_info *out = row->out; out->name; out++)
        printf("%s%s", out == row->out ? "" : ", ", out->name);
    printf("%s%s", row->out[0].name ? " = " : "", row->name);
    for (const frit_slot_info *in = row->in; in->name; in++) {
        printf("%s%s%s", separator, in->name, in->role == FRIT_ROLE_MANY ? "..." : "");
        separator = ", ";
    }
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];

        printf(field->place == FRIT_PLACE_POS ? "%s%s=" : "%s[%s=]", separator, field->name);
        separator = ", ";
    }
    fputc('\n', stdout);
}

static void show_slots(const frit_slot_info *slot)
{
    for (; slot->name; slot++)
        printf("  %-14s %-20s %s\n", slot->name, role_names[slot->role],
               letter_names[slot->letter]);
}

static void show_attributes(const frit_record_info *record)
{
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        const frit_choice_info *choice;

        printf("  %-14s %-20s %s", field->name, attr_names[field->type], field->meaning);
        for (uint32_t k = 0, n = 0; (choice = frit_choice_info_at(k)); k++)
            if (strcmp(choice->list, field->choices) == 0)
                printf("%s%s", n++ ? ", " : ": ", choice->name);
        fputc('\n', stdout);
    }
}

void op_show(const frit_op_info *row, const frit_record_info *record)
{
    show_signature(row, record);
    printf("\n%s\n\n", row->meaning);
    show_slots(row->in);
    show_attributes(record);
    show_slots(row->out);
}

/* ---- JSON ---- */

static void print_slots(struct json *json, const char *key, const frit_slot_info *slot)
{
    json_list(json, key);
    for (; slot->name; slot++) {
        json_object(json, NULL);
        json_text(json, "name", slot->name);
        json_text(json, "role", role_names[slot->role]);
        json_text(json, "type", letter_names[slot->letter]);
        json_close(json);
    }
    json_close(json);
}

void op_print(struct json *json, const frit_op_info *row, const frit_record_info *record)
{
    print_slots(json, "inputs", row->in);
    print_slots(json, "outputs", row->out);
    json_list(json, "attributes");
    for (uint32_t i = 0; i < record->n_fields; i++) {
        json_object(json, NULL);
        json_text(json, "name", record->field[i].name);
        json_text(json, "type", attr_names[record->field[i].type]);
        json_text(json, "meaning", record->field[i].meaning);
        json_close(json);
    }
    json_close(json);
}
