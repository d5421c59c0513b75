/* SPDX-License-Identifier: Apache-2.0 */
/* `frit ops`: the op table for people, with how a device runs each row. */
#include <frit/op_table.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "json.h"
#include "session.h"
#include "term.h"

static const char *const class_names[] = {
    [FRIT_CLASS_VIEW] = "views",
    [FRIT_CLASS_COPY] = "copy",
    [FRIT_CLASS_CAST] = "cast",
    [FRIT_CLASS_INIT] = "init",
    [FRIT_CLASS_RANDOM] = "random",
    [FRIT_CLASS_MAP] = "elementwise",
    [FRIT_CLASS_REDUCE] = "reductions",
    [FRIT_CLASS_ARG_REDUCE] = "index reductions",
    [FRIT_CLASS_SCAN] = "scans",
    [FRIT_CLASS_INDEX] = "indexing",
    [FRIT_CLASS_JOIN] = "joining",
    [FRIT_CLASS_CONTRACT] = "contractions",
    [FRIT_CLASS_POOL] = "pooling",
    [FRIT_CLASS_RESAMPLE] = "resampling",
    [FRIT_CLASS_NORM] = "softmax and normalisation",
    [FRIT_CLASS_SORT] = "sorting",
    [FRIT_CLASS_FFT] = "spectra",
    [FRIT_CLASS_LOSS] = "losses",
    [FRIT_CLASS_QUANT] = "quantisation",
    [FRIT_CLASS_COLLECTIVE] = "collectives",
    [FRIT_CLASS_GRADIENT] = "gradients",
};
enum { N_CLASSES = sizeof(class_names) / sizeof(class_names[0]) };

static const char *const letter_names[] = {
    [FRIT_LETTER_T] = "any type",      [FRIT_LETTER_N] = "number",
    [FRIT_LETTER_F] = "float",         [FRIT_LETTER_Z] = "integer",
    [FRIT_LETTER_L] = "integer, bool", [FRIT_LETTER_R] = "number, bool",
    [FRIT_LETTER_I] = "i32, i64",      [FRIT_LETTER_BOOL] = "bool",
    [FRIT_LETTER_I64] = "i64",         [FRIT_LETTER_D] = "as dtype says",
    [FRIT_LETTER_P] = "packed",
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

static const char *const support_names[] = {
    [FRIT_SUPPORT_NONE] = "-",
    [FRIT_SUPPORT_NATIVE] = "native",
    [FRIT_SUPPORT_DECOMPOSED] = "decomposed",
    [FRIT_SUPPORT_HOST] = "host",
};

static const char *level_name(const frit_op_info *row)
{
    return row->level == FRIT_LEVEL_CORE ? "core" : "composite";
}

static const char *support_of(frit_device *device, const frit_op_info *row)
{
    uint32_t support = frit_op_support(device, row->id);

    return support < sizeof(support_names) / sizeof(support_names[0]) ? support_names[support]
                                                                      : "?";
}

static const frit_op_info *row_find(const char *name)
{
    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static int unknown_row(const struct invocation *in, const char *name)
{
    const char *names[FRIT_OP_LIMIT];
    const char *nearest;
    size_t n = 0;

    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++)
        if (frit_op_info_at(id))
            names[n++] = frit_op_info_at(id)->name;
    nearest = str_nearest(name, names, n);
    if (nearest)
        return misused(in, "there is no op '%s'; did you mean '%s'?", name, nearest);
    return misused(in, "there is no op '%s'", name);
}

/* ---- for people ---- */

/* As much of a meaning as stands on the rest of a line. */
static void show_short(const char *meaning)
{
    enum { ROOM = 72 };
    size_t length = strlen(meaning);

    if (length <= ROOM) {
        printf(" %s\n", meaning);
        return;
    }
    length = ROOM - 3;
    while (length && meaning[length] != ' ')
        length--;
    printf(" %.*s...\n", (int)length, meaning);
}

static void show_list(frit_device *device)
{
    for (uint32_t cls = 1; cls < N_CLASSES; cls++) {
        bool headed = false;

        for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
            const frit_op_info *row = frit_op_info_at(id);

            if (!row || row->cls != cls)
                continue;
            if (!headed) {
                term_paint(stdout, PAINT_HEAD, 0, class_names[cls]);
                fputc('\n', stdout);
                headed = true;
            }
            printf("  %-26s %-10s", row->name, level_name(row));
            if (device)
                printf(" %-11s", support_of(device, row));
            show_short(row->meaning);
        }
    }
}

/* "y, index = max_pool x, kernel=, stride=" as in text programs */
static void show_signature(const frit_op_info *row)
{
    const frit_record_info *record = frit_record_info_at(row->record);
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

static void show_attributes(const frit_op_info *row)
{
    const frit_record_info *record = frit_record_info_at(row->record);

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

/* How each usable device runs the row; devices that do not open are left out, `frit devices` has
 * them. */
static void show_support(frit_host *host, const frit_op_info *row)
{
    frit_device_desc desc = {.struct_size = sizeof(desc)};

    for (uint64_t i = 0; frit_device_at(host, i, &desc) == FRIT_OK; i++) {
        frit_device *device;

        if (desc.reason || frit_device_open(host, desc.name, &device))
            continue;
        printf("  %-14s %s\n", desc.name, support_of(device, row));
        frit_device_close(device);
    }
}

static void show_row(const frit_op_info *row, const struct session *session)
{
    show_signature(row);
    printf("\n%s\n\n", row->meaning);
    show_slots(row->in);
    show_attributes(row);
    show_slots(row->out);
    printf("\n%s, revision %" PRIu32 ", class %s\n", level_name(row), row->rev,
           class_names[row->cls]);
    if (session->device)
        printf("  %-14s %s\n", frit_device_name(session->device), support_of(session->device, row));
    else
        show_support(session->host, row);
}

/* ---- for machines ---- */

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

static void print_row(struct json *json, const frit_op_info *row, frit_device *device)
{
    const frit_record_info *record = frit_record_info_at(row->record);

    json_object(json, NULL);
    json_text(json, "name", row->name);
    json_uint(json, "id", row->id);
    json_uint(json, "rev", row->rev);
    json_text(json, "class", class_names[row->cls]);
    json_text(json, "level", level_name(row));
    json_text(json, "meaning", row->meaning);
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
    if (device)
        json_text(json, "support", support_of(device, row));
    json_close(json);
}

static void print_json(const frit_op_info *only, frit_device *device)
{
    struct json json;

    json_begin(&json, stdout);
    json_text(&json, "device", device ? frit_device_name(device) : NULL);
    json_list(&json, "ops");
    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && (!only || row == only))
            print_row(&json, row, device);
    }
    json_close(&json);
    json_end(&json);
}

/* ---- the command ---- */

static int run(const struct invocation *in)
{
    const frit_op_info *row = in->n_args ? row_find(in->args[0]) : NULL;
    bool wants_device = invocation_has(in, "--device");
    struct session session = {0};
    int status = CLI_FINE;

    if (in->n_args && !row)
        return unknown_row(in, in->args[0]);
    if (wants_device || row)
        status = session_open(&session, in);
    if (status == CLI_FINE && wants_device)
        status = session_device(&session, in);
    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(row, session.device);
    else if (status == CLI_FINE && row)
        show_row(row, &session);
    else if (status == CLI_FINE)
        show_list(session.device);
    session_close(&session);
    return status;
}

const struct command ops_command = {
    .name = "ops",
    .summary = "which ops there are, what they mean, how a device runs them",
    .args = "[NAME]",
    .details = "native       the driver runs it\n"
               "decomposed   it runs as several native ops\n"
               "host         a view: only the layout changes\n"
               "-            not on this device\n"
               "\n"
               "With --json: device; ops {name, id, rev, class, level, meaning, inputs, outputs,\n"
               "attributes, support}; support only with --device.",
    .options = (const struct option[]){{"--device", "D", "how this device runs them", 'd', false},
                                       {"--json", NULL, "for machines", 0, false},
                                       {0}},
    .examples = (const char *const[]){"ops", "ops conv", "ops --device cpu:0", NULL},
    .max_args = 1,
    .run = run,
};
