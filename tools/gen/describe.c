/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and attributes in sentences, for the header, the manual page and Python. */
#include "gen.h"

#include <string.h>

void gen_operand_types(const frit_op_info *row, const char *absent, char *text, size_t size)
{
    for (uint32_t i = 0; row->in[i].name; i++) {
        uint32_t letter = row->in[i].letter, count = 0;
        bool seen = row->in[i].role == FRIT_ROLE_NUM;
        for (uint32_t k = 0; k < i; k++)
            seen |= row->in[k].letter == letter && row->in[k].role != FRIT_ROLE_NUM;
        if (seen)
            continue;
        gen_add(text, size, "  ");
        for (uint32_t k = i; row->in[k].name; k++) {
            if (row->in[k].letter != letter || row->in[k].role == FRIT_ROLE_NUM)
                continue;
            gen_add(text, size, count++ ? ", " : "");
            gen_add(text, size, row->in[k].name);
            if (row->in[k].role == FRIT_ROLE_OPT) {
                gen_add(text, size, " (or ");
                gen_add(text, size, absent);
                gen_add(text, size, ")");
            }
        }
        gen_add(text, size, ": ");
        gen_add(text, size, gen_letter_text(letter));
        gen_add(text, size,
                count > 1 || row->in[i].role == FRIT_ROLE_MANY ? ", of one type." : ".");
    }
}

/* The type of the result where no operand determines it, and further outputs. */
static void result_types(const frit_op_info *row, char *text, size_t size)
{
    bool known = false;

    for (uint32_t k = 0; row->out[0].name && row->in[k].name; k++)
        known |= row->in[k].letter == row->out[0].letter && row->in[k].role != FRIT_ROLE_NUM;
    if (row->out[0].name && !known && row->out[0].letter != FRIT_LETTER_D) {
        gen_add(text, size, "  Gives ");
        gen_add(text, size, gen_letter_text(row->out[0].letter));
        gen_add(text, size, ".");
    }
    for (uint32_t i = 1; row->out[0].name && i <= FRIT_OP_MAX_OUT && row->out[i].name; i++) {
        gen_add(text, size, "  *");
        gen_add(text, size, row->out[i].name);
        if (row->out[i].letter != row->out[0].letter) {
            gen_add(text, size, " is ");
            gen_add(text, size, gen_letter_text(row->out[i].letter));
            gen_add(text, size, ";");
        }
        gen_add(text, size, " NULL: not wanted.");
    }
}

static void positional(const frit_op_info *row, char *text, size_t size)
{
    const frit_record_info *record = gen_record(row);

    for (uint32_t i = 0; i < record->n_fields; i++) {
        if (record->field[i].place != FRIT_PLACE_POS || record->field[i].type == FRIT_ATTR_DTYPE)
            continue;
        gen_add(text, size, "  ");
        gen_add(text, size, record->field[i].name);
        gen_add(text, size, ": ");
        gen_add(text, size, record->field[i].meaning);
        gen_add(text, size, ".");
    }
}

void gen_describe(const frit_op_info *row, char *text, size_t size)
{
    text[0] = 0;
    gen_add(text, size, row->meaning);
    gen_operand_types(row, "NULL", text, size);
    result_types(row, text, size);
    if (gen_has_tensors(row)) /* the others all have the result's dtype and dims */
        positional(row, text, size);
}

void gen_choices(const char *list, char *text, size_t size)
{
    const frit_choice_info *choice;

    text[0] = 0;
    for (uint32_t i = 0; (choice = frit_choice_info_at(i)); i++) {
        if (strcmp(choice->list, list))
            continue;
        gen_add(text, size, *text ? ", " : "");
        gen_add(text, size, choice->name);
    }
}

void gen_field_meaning(const frit_field_info *field, char *text, size_t size)
{
    char words[128];

    snprintf(text, size, "%s", field->meaning);
    if (field->type == FRIT_ATTR_CHOICE) {
        gen_choices(field->choices, words, sizeof(words));
        snprintf(text, size, "FRIT_CHOICE_%s_...: %s; %s", field->choices, words, field->meaning);
    }
}
