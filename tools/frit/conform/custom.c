/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of custom ops, which plugins bring.
 *
 * A child process opens a host and lists them, since the parent opens none.  Only the slots and
 * attributes of an op are known: operands are tried in the shapes below, and a case that the op's
 * own shape rule refuses is skipped.  The expected result is that of the op's decomposition on
 * `reference`. */
#include "conform/custom.h"

#include <errno.h>
#include <frit/custom.h>
#include <stdlib.h>
#include <string.h>

#include "conform/cases.h"
#include "conform/conform.h"
#include "conform/find.h"

enum {
    WORD = 32, /* the longest word of an op, and its end */
    VALUE = 32,
    FORMS = 16,
    MANY = 3,
    TEXT = FRIT_CUSTOM_FIELDS * (WORD + VALUE + 3) /* of "WORD=VALUE, " */
};

_Static_assert((int)FRIT_CUSTOM_IN <= (int)FRIT_CUSTOM_FIELDS, "TEXT takes the operands too");

/* An op as the child sends it through the pipe. */
struct sent_op {
    char name[FRIT_CUSTOM_NAME + 1];
    uint32_t op, decomposes, n_in, n_out, n_attrs;
    struct {
        char name[WORD];
        uint32_t role, letter;
    } slot[FRIT_CUSTOM_IN + FRIT_CUSTOM_OUT];
    struct {
        char name[WORD];
        uint32_t type, place;
    } attr[FRIT_CUSTOM_FIELDS];
};

struct conform_custom {
    struct conform_custom *next;
    struct sent_op op;
    frit_op_info row;
    struct conform_form forms[FORMS + 1];
    char texts[FORMS][2][TEXT]; /* operands and attributes of the forms */
    size_t n_forms;
    struct conform_check uncovered[2]; /* in the place of cases */
};

/* The list of ops that the parent receives. */
struct listing {
    const struct conform_options *options;
    struct conform_custom *first, **last;
    int error; /* errno if the list is incomplete, else 0 */
};

/* ---- in the child ---- */

static void describe(const frit_custom_desc *desc, struct sent_op *out)
{
    frit_custom_slot_desc slot = {.struct_size = sizeof(slot)};
    frit_custom_attr_desc attr = {.struct_size = sizeof(attr)};

    *out = (struct sent_op){.op = desc->op,
                            .decomposes = desc->decomposes,
                            .n_in = desc->n_in,
                            .n_out = desc->n_out,
                            .n_attrs = desc->n_attrs};
    snprintf(out->name, sizeof(out->name), "%s", desc->name);
    for (uint64_t i = 0; frit_custom_slot_at(desc->op, i, &slot) == FRIT_OK; i++) {
        snprintf(out->slot[i].name, WORD, "%s", slot.name);
        out->slot[i].role = slot.role;
        out->slot[i].letter = slot.letter;
    }
    for (uint64_t i = 0; frit_custom_attr_at(desc->op, i, &attr) == FRIT_OK; i++) {
        snprintf(out->attr[i].name, WORD, "%s", attr.name);
        out->attr[i].type = attr.type;
        out->attr[i].place = attr.place;
    }
}

/* In the child: writes the ops.  If no host opens there are none; the cases report the reason. */
static void send_ops(void *ctx, FILE *to)
{
    const struct listing *listing = ctx;
    const struct conform_options *options = listing->options;
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = options->settings,
                                     .n_settings = options->n_settings};
    frit_custom_desc desc = {.struct_size = sizeof(desc)};
    struct sent_op op;
    frit_host *host = NULL;

    if (frit_host_open(&params, &host, NULL))
        return;
    for (uint64_t i = 0; frit_custom_at(host, i, &desc) == FRIT_OK; i++) {
        describe(&desc, &op);
        fwrite(&op, sizeof(op), 1, to);
    }
}

/* ---- forms ---- */

/* Dims of the first tensor and of the others; with `several` only for ops of more than one. */
static const struct shape {
    const char *name, *first, *others;
    uint32_t least; /* extent that indices lie below */
    bool several, quick;
} shapes[] = {
    {"odd", "7,13", "7,13", 7, false, true},
    {"rank0", "", "", 1, false, true},
    {"empty", "3,0,2", "3,0,2", 1, false, true},
    {"single", "1,1", "1,1", 1, false, false},
    {"even", "16,32", "16,32", 16, false, true},
    {"square", "13,13", "13,13", 13, false, false},
    {"line", "1031", "1031", 1031, false, true},
    {"deep", "2,1,3,2,1,2,1,2", "2,1,3,2,1,2,1,2", 1, false, false},
    {"large", "67,1029", "67,1029", 67, false, false},
    {"across", "5,1,7", "3,1", 1, true, true},
    {"vector", "7,13", "13", 7, true, true},
    {"product", "7,13", "13,5", 5, true, true},
    {"image", "2,3,8,9", "4,3,3,3", 2, true, true},
};

static void put(char text[TEXT], const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, TEXT - used, "%s%s", used ? ", " : "", more);
}

static void put_tensor(char text[TEXT], const char *dims, uint32_t letter, uint32_t least)
{
    char one[WORD + VALUE];

    if (letter == FRIT_LETTER_I)
        snprintf(one, sizeof(one), "[%s]<%u", dims, least);
    else
        snprintf(one, sizeof(one), "[%s]%s", dims, letter == FRIT_LETTER_P ? ":q8" : "");
    put(text, one);
}

static void put_operands(const struct sent_op *op, const struct shape *shape, bool bare,
                         char text[TEXT])
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        uint32_t letter = op->slot[i].letter, role = op->slot[i].role;
        uint32_t n = role == FRIT_ROLE_MANY && op->n_in == 1 ? MANY : 1;

        if (role == FRIT_ROLE_NUM)
            put(text, "%s");
        else if (role == FRIT_ROLE_OPT && bare)
            put(text, "none");
        else
            for (uint32_t k = 0; k < n; k++)
                put_tensor(text, i + k ? shape->others : shape->first, letter, shape->least);
    }
}

static void put_attrs(const struct sent_op *op, const struct shape *shape, bool bare,
                      char text[TEXT])
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        static const char *const values[] = {
            [FRIT_ATTR_INT] = "1",     [FRIT_ATTR_FLAG] = "1",   [FRIT_ATTR_DTYPE] = "%t",
            [FRIT_ATTR_AXIS] = "0",    [FRIT_ATTR_AXES] = "[0]", [FRIT_ATTR_VEC] = "[1, 1, 1]",
            [FRIT_ATTR_SLICES] = "[:]"};
        uint32_t type = op->attr[i].type;
        char one[WORD + VALUE + 1], value[VALUE];

        if (bare && op->attr[i].place == FRIT_PLACE_NAMED)
            continue;
        if (type == FRIT_ATTR_REAL)
            snprintf(value, sizeof(value), "%g", 0.5 + 0.25 * i);
        else if (type == FRIT_ATTR_DIMS)
            snprintf(value, sizeof(value), "[%s]", shape->first);
        else
            snprintf(value, sizeof(value), "%s", values[type]);
        snprintf(one, sizeof(one), "%s=%s", op->attr[i].name, value);
        put(text, one);
    }
}

static void add_form(struct conform_custom *custom, const struct shape *shape, bool bare)
{
    char(*texts)[TEXT] = custom->texts[custom->n_forms];

    put_operands(&custom->op, shape, bare, texts[0]);
    put_attrs(&custom->op, shape, bare, texts[1]);
    custom->forms[custom->n_forms++] =
        (struct conform_form){bare ? "bare" : shape->name, texts[0], texts[1], shape->quick};
}

static void add_forms(struct conform_custom *custom)
{
    const struct sent_op *op = &custom->op;
    uint32_t n_tensors = 0;
    bool may_lack = false;

    for (uint32_t i = 0; i < op->n_in; i++) {
        n_tensors += op->slot[i].role != FRIT_ROLE_NUM;
        n_tensors += op->slot[i].role == FRIT_ROLE_MANY;
        may_lack = may_lack || op->slot[i].role == FRIT_ROLE_OPT;
    }
    for (uint32_t i = 0; i < op->n_attrs; i++)
        may_lack = may_lack || op->attr[i].place == FRIT_PLACE_NAMED;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (!shapes[i].several || n_tensors > 1)
            add_form(custom, &shapes[i], false);
    if (may_lack)
        add_form(custom, &shapes[0], true);
}

/* ---- cases ---- */

/* One type says all where nothing depends on it, and packed values are made of floats. */
static bool is_typed(const struct sent_op *op)
{
    bool open = false;

    for (uint32_t i = 0; i < op->n_in; i++) {
        uint32_t letter = op->slot[i].letter;

        if (letter == FRIT_LETTER_P)
            return false;
        open = open || (op->slot[i].role != FRIT_ROLE_NUM && letter != FRIT_LETTER_BOOL &&
                        letter != FRIT_LETTER_I && letter != FRIT_LETTER_I64);
    }
    for (uint32_t i = 0; i < op->n_attrs; i++)
        open = open || op->attr[i].type == FRIT_ATTR_DTYPE;
    return open;
}

static frit_status no_parts(const struct conform_options *options, const struct lab *lab,
                            char reason[CONFORM_REASON])
{
    (void)options;
    (void)lab;
    snprintf(reason, CONFORM_REASON, "it has no decomposition to compare with");
    return FRIT_UNSUPPORTED;
}

static frit_status no_results(const struct conform_options *options, const struct lab *lab,
                              char reason[CONFORM_REASON])
{
    (void)options;
    (void)lab;
    snprintf(reason, CONFORM_REASON, "it has no results to compare");
    return FRIT_UNSUPPORTED;
}

static bool add_cases(struct conform_cases *cases, struct conform_custom *custom, bool quick)
{
    const struct sent_op *op = &custom->op;
    const struct conform_row row = {.name = op->name,
                                    .op = &custom->row,
                                    .forms = custom->forms,
                                    .kinds = "g",
                                    .types = is_typed(op) ? "" : "f32",
                                    .rule = CONFORM_PARTS,
                                    .ulp = 8};

    if (op->n_out && op->decomposes)
        return conform_cases_add(cases, &row, quick);
    custom->uncovered[0] = (struct conform_check){op->name, "values",
                                                  op->n_out ? "not covered, it has no decomposition"
                                                            : "not covered, it has no results",
                                                  op->n_out ? no_parts : no_results};
    return conform_check_add(cases, custom->uncovered);
}

/* The row, as the table has those of its own. */
static void take(struct conform_custom *custom)
{
    const struct sent_op *op = &custom->op;

    custom->row = (frit_op_info){.name = op->name, .id = op->op};
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        frit_slot_info *slot = i < op->n_in ? &custom->row.in[i] : &custom->row.out[i - op->n_in];

        *slot = (frit_slot_info){op->slot[i].name, op->slot[i].role, op->slot[i].letter};
    }
    add_forms(custom);
}

/* ---- all of them ---- */

static void receive_ops(void *ctx, FILE *from)
{
    struct listing *listing = ctx;
    struct sent_op op;

    while (fread(&op, sizeof(op), 1, from) == 1) {
        struct conform_custom *custom = calloc(1, sizeof(*custom));

        if (!custom) {
            listing->error = ENOMEM;
            return;
        }
        custom->op = op;
        take(custom);
        *listing->last = custom;
        listing->last = &custom->next;
    }
}

bool conform_customs_add(const struct conform_options *options, struct conform_cases *cases,
                         struct conform_custom **out, char reason[CONFORM_REASON])
{
    struct listing listing = {.options = options, .last = &listing.first};
    char ended[CONFORM_REASON];
    int status = 0;

    if (!conform_fork(send_ops, receive_ops, &listing, &status))
        listing.error = errno;
    *out = listing.first;
    for (struct conform_custom *custom = *out; custom && !listing.error; custom = custom->next)
        listing.error = add_cases(cases, custom, options->quick) ? 0 : ENOMEM;
    if (listing.error)
        snprintf(reason, CONFORM_REASON, "%s", strerror(listing.error));
    else if (status)
        snprintf(reason, CONFORM_REASON, "the ops of plugins cannot be listed: %.300s",
                 conform_ended(status, ended));
    return !listing.error && !status;
}

void conform_customs_free(struct conform_custom *list)
{
    while (list) {
        struct conform_custom *next = list->next;

        free(list);
        list = next;
    }
}
