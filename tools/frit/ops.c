/* SPDX-License-Identifier: Apache-2.0 */
/* `frit ops`: prints the op table, and how devices run each op. */
#include <frit/op_table.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "invocation.h"
#include "json.h"
#include "ops_custom.h"
#include "ops_row.h"
#include "ops_types.h"
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

static const char *level_name(const frit_op_info *row)
{
    return row->level == FRIT_LEVEL_CORE ? "core" : "composite";
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

/* In the words of the parser of text programs, which knows the names that ops have elsewhere. */
static int unknown_row(const struct invocation *in, const char *name)
{
    static const char before[] = ":1:5: ";
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph = NULL;
    struct str text = {0};
    const char *said;

    str_addf(&text, "y = %s", name);
    if (!text.failed && !frit_graph_parse("", text.text, text.length, &graph, &err))
        frit_graph_free(graph);
    str_fini(&text);
    said = strstr(err.text, before);
    if (said && strstr(said, "unknown op") && !strpbrk(name, " \t"))
        return fail_usage(in, "%s", said + strlen(before));
    return fail_usage(in, "there is no op '%s'", name);
}

/* ---- text ---- */

/* Prints as much of a meaning as fits on the line. */
static void show_short(const char *meaning)
{
    enum { WIDTH = 72 };
    size_t length = strlen(meaning);

    if (length <= WIDTH) {
        printf(" %s\n", meaning);
        return;
    }
    length = WIDTH - 3;
    while (length && meaning[length] != ' ')
        length--;
    printf(" %.*s...\n", (int)length, meaning);
}

static bool show_types(frit_device *device, const frit_op_info *row)
{
    struct ops_types types;

    if (!ops_types_of(device, row, &types))
        return false;
    fputc(' ', stdout);
    ops_types_show(&types);
    return true;
}

/* Lists the ops with their meanings, or with how a device runs them; false if out of memory. */
static bool show_list(frit_device *device)
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
            if (!device)
                show_short(row->meaning);
            else if (!show_types(device, row))
                return false;
        }
    }
    return true;
}

/* Shows how each device that can be opened runs the op. */
static bool show_support(frit_host *host, const frit_op_info *row)
{
    frit_device_desc desc = {.struct_size = sizeof(desc)};
    bool good = true;

    for (uint64_t i = 0; good && frit_device_info_at(host, i, &desc) == FRIT_OK; i++) {
        frit_device *device;

        if (desc.reason || frit_device_open(host, desc.name, &device, NULL))
            continue;
        printf("  %-14s", desc.name);
        good = show_types(device, row);
        frit_device_close(device);
    }
    return good;
}

static bool show_row(const frit_op_info *row, const struct session *session)
{
    op_show(row, frit_record_info_at(row->record));
    printf("\n%s, revision %" PRIu32 ", class %s\n", level_name(row), row->rev,
           class_names[row->cls]);
    if (!session->device)
        return show_support(session->host, row);
    printf("  %-14s", frit_device_name(session->device));
    return show_types(session->device, row);
}

/* ---- JSON ---- */

static bool print_support(struct json *json, const frit_op_info *row, frit_device *device)
{
    struct ops_types types;

    if (!ops_types_of(device, row, &types))
        return false;
    json_text(json, "support", ops_support_name(types.usual));
    json_object(json, "types");
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
        if (types.takes[dtype])
            json_text(json, frit_dtype_name(dtype), ops_support_name(types.how[dtype]));
    json_close(json);
    return true;
}

static bool print_row(struct json *json, const frit_op_info *row, frit_device *device)
{
    bool good = true;

    json_object(json, NULL);
    json_text(json, "name", row->name);
    json_uint(json, "id", row->id);
    json_uint(json, "rev", row->rev);
    json_text(json, "class", class_names[row->cls]);
    json_text(json, "level", level_name(row));
    json_text(json, "meaning", row->meaning);
    op_print(json, row, frit_record_info_at(row->record));
    if (device)
        good = print_support(json, row, device);
    json_close(json);
    return good;
}

/* `only`: an op of the table; `custom`: a plugin's op; both NULL: all ops. */
static bool print_json(const struct session *session, const frit_op_info *only, const char *custom)
{
    frit_device *device = session->device;
    struct json json;
    bool good = true;

    json_begin(&json, stdout);
    json_text(&json, "device", device ? frit_device_name(device) : NULL);
    json_list(&json, "ops");
    for (uint32_t id = 0; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && !custom && (!only || row == only))
            good &= print_row(&json, row, device);
    }
    json_close(&json);
    if (!only)
        custom_print(&json, session, custom);
    json_end(&json);
    return good;
}

/* ---- the command ---- */

static bool show_all(const struct session *session)
{
    bool good = show_list(session->device);

    custom_show_list(session);
    return good;
}

static int run_on(const struct invocation *in, const struct session *session)
{
    const char *name = in->n_args ? in->args[0] : NULL;
    const frit_op_info *row = name ? row_find(name) : NULL;
    frit_custom_desc custom;
    bool good = true;

    if (name && !row && !custom_find(session, name, &custom))
        return unknown_row(in, name);
    if (invocation_has(in, "--json"))
        good = print_json(session, row, row ? NULL : name);
    else if (row)
        good = show_row(row, session);
    else if (name)
        custom_show(&custom, session);
    else
        good = show_all(session);
    return good ? CLI_FINE : fail_command(in, "no memory");
}

static int run(const struct invocation *in)
{
    struct session session;
    int status = session_open(&session, in);

    if (status == CLI_FINE && invocation_has(in, "--device"))
        status = session_device(&session, in);
    if (status == CLI_FINE)
        status = run_on(in, &session);
    session_close(&session);
    return status;
}

const struct command ops_command = {
    .name = "ops",
    .summary = "list the ops, their meaning, and how a device runs them",
    .args = "[NAME]",
    .details =
        "With --device, shows per dtype how it runs an op of a typical shape:\n"
        "native       the driver runs it\n"
        "decomposed   it runs as several native ops\n"
        "fallback     on another device, in whole or in part: [frit] fallback\n"
        "host         a view: only the layout changes\n"
        "-            it does not run\n"
        "\n"
        "Ops of plugins are at the end.\n"
        "\n"
        "With --json: device; ops {name, id, rev, class, level, meaning, inputs, outputs,\n"
        "attributes, support, types {dtype: one of these words}}; support, which is\n"
        "that of f32 or the first dtype, and types only with --device; custom {name, plugin,\n"
        "rev, meaning, inputs, outputs, attributes, support}.",
    .options =
        (const struct option[]){{"--device", "D", "show how this device runs them", 'd', false},
                                {"--json", NULL, "print JSON", 0, false},
                                {0}},
    .examples = (const char *const[]){"ops", "ops conv", "ops --device cpu:0",
                                      "ops matmul --device vulkan", NULL},
    .max_args = 1,
    .run = run,
};
