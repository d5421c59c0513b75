/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the op table and the C functions that come of them.
 *
 * Order of parameters: rows with tensors take operands, positional attributes, further outputs;
 * rows without take the device, positional attributes, numbers. */
#include "gen.h"

#include <string.h>

const frit_op_info *gen_next(const frit_op_info *row)
{
    uint32_t cls = row ? row->cls : FRIT_CLASS_VIEW;
    uint32_t id = row ? row->id + 1 : 1;

    for (; cls <= FRIT_CLASS_GRADIENT; cls++, id = 1)
        for (; id < FRIT_OP_LIMIT; id++) {
            const frit_op_info *next = frit_op_info_at(id);
            if (next && next->cls == cls)
                return next;
        }
    return NULL;
}

const frit_op_info *gen_find(const char *name, size_t length)
{
    const frit_op_info *row = NULL;

    while ((row = gen_next(row)))
        if (strlen(row->name) == length && !memcmp(row->name, name, length))
            break;
    return row;
}

const frit_record_info *gen_record(const frit_op_info *row)
{
    return frit_record_info_at(row->record);
}

bool gen_is_tensor(uint32_t role)
{
    return role == FRIT_ROLE_IN || role == FRIT_ROLE_OPT || role == FRIT_ROLE_MANY;
}

bool gen_has_tensors(const frit_op_info *row)
{
    return gen_is_tensor(row->in[0].role);
}

bool gen_has_named(const frit_op_info *row)
{
    const frit_record_info *record = gen_record(row);

    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].place == FRIT_PLACE_NAMED)
            return true;
    return false;
}

const char *gen_class_title(uint32_t cls)
{
    static const char *const titles[] = {
        "",
        "views",
        "copies",
        "conversions",
        "from nothing, of the given dtype and dims",
        "random numbers, of the given dtype and dims",
        "elementwise",
        "reductions",
        "places of extremes",
        "scans",
        "indexing",
        "joining and filling",
        "contractions",
        "pooling",
        "resampling",
        "softmax family and normalisation",
        "sorting",
        "spectra",
        "losses",
        "quantisation",
        "several devices",
        "gradients",
    };
    return titles[cls];
}

const char *gen_letter(uint32_t letter)
{
    static const char *const letters[] = {"any", "T", "N",    "F",   "Z", "L",
                                          "R",   "I", "BOOL", "I64", "D", "P"};
    return letters[letter];
}

const char *gen_letter_text(uint32_t letter)
{
    static const char *const texts[] = {
        "any type, packed too",
        "any type",
        "integer or float",
        "float",
        "integer",
        "integer or bool",
        "integer, float or bool",
        "i32 or i64",
        "bool",
        "i64",
        "dtype",
        "packed",
    };
    return texts[letter];
}

const char *gen_field_type(uint32_t type)
{
    switch (type) {
    case FRIT_ATTR_AXES:
        return "frit_axes ";
    case FRIT_ATTR_DIMS:
        return "frit_dims ";
    case FRIT_ATTR_SLICES:
        return "frit_slices ";
    case FRIT_ATTR_REAL:
        return "double ";
    default:
        return "int64_t ";
    }
}

/* The letter of the operands that may be scalars. */
static uint32_t scalar_letter(const frit_op_info *row)
{
    uint32_t i = row->in[0].letter == FRIT_LETTER_BOOL ? 1 : 0;
    return row->in[i].letter;
}

static bool form_exists(const frit_op_info *row, enum gen_form form)
{
    if (form == GEN_PLAIN)
        return true;
    if (row->traits & FRIT_OP_SCALARS) {
        uint32_t letter = scalar_letter(row);
        bool real = letter != FRIT_LETTER_Z && letter != FRIT_LETTER_L;
        return form == GEN_REAL ? real : letter != FRIT_LETTER_F;
    }
    if (form == GEN_INTEGER)
        for (uint32_t i = 0; i < FRIT_OP_MAX_IN; i++)
            if (row->in[i].role == FRIT_ROLE_NUM && row->in[i].letter != FRIT_LETTER_F)
                return true;
    return false;
}

bool gen_is_number(const frit_op_info *row, enum gen_form form, uint32_t i)
{
    bool first = true;

    if (row->in[i].role == FRIT_ROLE_NUM)
        return true;
    if (form == GEN_PLAIN || !(row->traits & FRIT_OP_SCALARS) ||
        row->in[i].letter == FRIT_LETTER_BOOL)
        return false;
    for (uint32_t k = 0; k < i; k++)
        if (row->in[k].letter == row->in[i].letter)
            first = false;
    return !first;
}

static void push(struct gen_function *f, const char *type, const char *prefix, const char *name)
{
    struct gen_param *param = &f->params[f->n_params++];

    param->type = type;
    snprintf(param->name, sizeof(param->name), "%s%s", prefix, name);
}

static void push_attrs(struct gen_function *f)
{
    const frit_record_info *record = gen_record(f->row);

    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        if (field->place == FRIT_PLACE_POS)
            push(f, field->type == FRIT_ATTR_DTYPE ? "uint32_t " : gen_field_type(field->type), "",
                 field->name);
    }
}

static void push_operands(struct gen_function *f)
{
    for (uint32_t i = 0; f->row->in[i].name; i++) {
        const frit_slot_info *slot = &f->row->in[i];
        if (gen_is_number(f->row, f->form, i)) {
            push(f, f->form == GEN_INTEGER ? "int64_t " : "double ", "", slot->name);
        } else if (slot->role == FRIT_ROLE_MANY) {
            push(f, "frit_tensor *const *", "", slot->name);
            push(f, "uint64_t ", "n_", slot->name);
        } else {
            push(f, "frit_tensor *", "", slot->name);
        }
    }
}

bool gen_function(const frit_op_info *row, enum gen_form form, struct gen_function *out)
{
    static const char *const suffix[] = {[GEN_PLAIN] = "", [GEN_REAL] = "_f", [GEN_INTEGER] = "_i"};

    if (!form_exists(row, form))
        return false;
    *out = (struct gen_function){.row = row, .form = form};
    snprintf(out->name, sizeof(out->name), "frit_%s%s", row->name, suffix[form]);
    if (gen_has_tensors(row)) {
        push_operands(out);
        push_attrs(out);
    } else {
        push(out, "frit_device *", "", "device");
        push_attrs(out);
        push_operands(out);
    }
    for (uint32_t i = 1; i <= FRIT_OP_MAX_OUT && row->out[i].name; i++)
        push(out, "frit_tensor **", "", row->out[i].name);
    return true;
}

void gen_prototype(FILE *out, const struct gen_function *f, const char *tail)
{
    bool named = gen_has_named(f->row);
    char head[96];
    struct gen_item items[GEN_MAX_PARAMS + 1];
    uint32_t count = 0;

    snprintf(head, sizeof(head), "%s%s%s(", f->row->out[0].name ? "frit_tensor *" : "frit_status ",
             f->name, named ? "_with" : "");
    for (; count < f->n_params; count++)
        snprintf(items[count].text, sizeof(items[0].text), "%s%s", f->params[count].type,
                 f->params[count].name);
    if (named)
        snprintf(items[count++].text, sizeof(items[0].text), "const frit_%s_attrs *attrs",
                 f->row->name);
    gen_list(out, head, items, count, "\n", tail);
}
