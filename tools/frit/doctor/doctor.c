/* SPDX-License-Identifier: Apache-2.0 */
/* `frit doctor`: its topics, of which the two small ones are here. */
#include <stdlib.h>
#include <string.h>

#include "doctor/bisect.h"
#include "doctor/health.h"
#include "doctor/plugin.h"
#include "doctor/report.h"
#include "invocation.h"
#include "json.h"
#include "program.h"
#include "session.h"
#include "term.h"

static bool config_at(frit_host *host, uint64_t index, frit_config_desc *out)
{
    *out = (frit_config_desc){.struct_size = sizeof(*out)};
    return frit_config_at(host, index, out) == FRIT_OK;
}

static void show_config(frit_host *host)
{
    char section[64] = "";
    frit_config_desc value;

    for (uint64_t i = 0; config_at(host, i, &value); i++) {
        if (strcmp(section, value.section) != 0) {
            char header[72];

            snprintf(section, sizeof(section), "%s", value.section);
            snprintf(header, sizeof(header), "[%s]", section);
            fputs(i ? "\n" : "", stdout);
            term_paint(stdout, PAINT_HEAD, 0, header);
            fputc('\n', stdout);
        }
        printf("%-16s = %-20s ", value.key, value.value);
        term_paint(stdout, PAINT_DIM, 0, value.origin);
        fputc('\n', stdout);
    }
}

static void print_config_json(frit_host *host)
{
    frit_config_desc value;
    struct json json;

    json_begin(&json, stdout);
    json_list(&json, "config");
    for (uint64_t i = 0; config_at(host, i, &value); i++) {
        json_object(&json, NULL);
        json_text(&json, "section", value.section);
        json_text(&json, "key", value.key);
        json_text(&json, "value", value.value);
        json_text(&json, "origin", value.origin);
        json_close(&json);
    }
    json_close(&json);
    json_end(&json);
}

static int show_why(const struct invocation *in, frit_host *host, const char *name)
{
    frit_err err = {.struct_size = sizeof(err)};
    char *text = NULL;
    frit_status status = frit_why(host, name, &text, &err);

    if (status)
        return fail_command(in, "%s", err.text);
    fputs(text, stdout);
    frit_free(text);
    return CLI_FINE;
}

static int why_command(const struct invocation *in)
{
    const bool named = strcmp(in->args[0], "why") == 0;
    const char *name = named ? in->args[1] : in->args[0];
    struct session session;
    int status;

    if (!name || !*name)
        return fail_usage(in, "NAME is missing: frit doctor NAME, with a device, driver or plugin");
    if (in->n_args > 1 && !named)
        return fail_usage(in, "unexpected argument '%s': frit doctor %s", in->args[1], in->args[0]);
    status = session_open(&session, in);
    if (status == CLI_FINE)
        status = show_why(in, session.host, name);
    session_close(&session);
    return status;
}

static int forgive_command(const struct invocation *in)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct session session;
    int status = session_open(&session, in);

    if (status == CLI_FINE && frit_forgive(session.host, in->args[1], &err))
        status = fail_command(in, "%s", err.text);
    if (status == CLI_FINE)
        printf("%s: forgiven; it is loaded again from now on\n", in->args[1]);
    session_close(&session);
    return status;
}

static int config_command(const struct invocation *in)
{
    struct session session;
    int status = session_open(&session, in);

    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_config_json(session.host);
    else if (status == CLI_FINE)
        show_config(session.host);
    session_close(&session);
    return status;
}

/* ---- what there is ---- */

enum { JSON = 1, DEVICE = 2, BISECT = 4, OUTPUT = 8 }; /* options that a topic takes */

static const struct topic {
    const char *name;     /* NULL: none is named */
    const char *argument; /* that must follow; NULL: none must */
    int max_args;
    unsigned options;
    int (*run)(const struct invocation *in);
} topics[] = {
    {NULL, NULL, 0, JSON, health_command},
    {"why", NULL, 2, 0, why_command},
    {"config", NULL, 1, JSON, config_command},
    {"forgive", "ID", 2, 0, forgive_command},
    {"plugin", "FILE", 2, JSON, plugin_command},
    {"bisect", "PROGRAM", 2, JSON | DEVICE | BISECT | OUTPUT, bisect_command},
    {"report", NULL, 2, DEVICE | OUTPUT, report_command},
};

/* NAME alone means `why NAME`. */
static const struct topic *topic_of(const struct invocation *in)
{
    if (in->n_args == 0)
        return &topics[0];
    for (size_t i = 1; i < sizeof(topics) / sizeof(topics[0]); i++)
        if (strcmp(topics[i].name, in->args[0]) == 0)
            return &topics[i];
    return &topics[1];
}

static int check_options(const struct invocation *in, const struct topic *topic)
{
    static const struct {
        const char *option, *topics;
        unsigned mask;
    } rows[] = {{"--json", "the page of health, config, plugin and bisect", JSON},
                {"--device", "bisect and report", DEVICE},
                {"--against", "bisect", BISECT},
                {"--in", "bisect", BISECT},
                {"--tolerance", "bisect", BISECT},
                {"--repeat", "bisect", BISECT},
                {"--timeout", "bisect", BISECT},
                {"--output", "bisect and report", OUTPUT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (invocation_has(in, rows[i].option) && !(topic->options & rows[i].mask))
            return fail_usage(in, "%s is only for %s", rows[i].option, rows[i].topics);
    return CLI_FINE;
}

static int run(const struct invocation *in)
{
    const struct topic *topic = topic_of(in);

    if (topic->argument && (in->n_args < 2 || !*in->args[1]))
        return fail_usage(in, "%s is missing: frit doctor %s %s", topic->argument, topic->name,
                          topic->argument);
    if (topic->name && in->n_args > topic->max_args)
        return fail_usage(in, "unexpected argument '%s': frit doctor %s", in->args[topic->max_args],
                          topic->name);
    return check_options(in, topic) ? CLI_MISUSED : topic->run(in);
}

const struct command doctor_command = {
    .name = "doctor",
    .summary = "find out what is wrong: the installation, a plugin, a program's results",
    .args = "[[why] NAME | config | forgive ID | plugin FILE | bisect PROGRAM | report [PROGRAM]]",
    .details =
        "Without arguments: one page of what is installed, usable and kept, of limits and of\n"
        "problems with what to do about each; exits with 1 if there are any.\n"
        "\n"
        "NAME       why a device, driver or plugin is usable or not; use `why NAME` if its name\n"
        "           is that of another topic\n"
        "config     every value of the configuration and where it came from\n"
        "forgive    load a plugin again that is not loaded since processes died in it\n"
        "plugin     what a plugin's file says of itself, exports and needs, how it is linked;\n"
        "           whether this library would load it; what happens when it is tried in a\n"
        "           process of its own; all checks of `frit conform`, and every row once, on its\n"
        "           first device.  Exits with 1 if it does not work.  The file is never loaded\n"
        "           into this process\n"
        "bisect     runs a text program, or the recording in a folder, on the device and on\n"
        "           --against; if results differ, finds the setting, the fuser or the driver that\n"
        "           is at fault, and the shortest sequence of ops that is wrong with right\n"
        "           operands.  Each trial is a process of its own, so crashes and hangs are found\n"
        "           as well.  Exits with 1 if results differ\n"
        "report     all of this as one text to attach to a report of a fault, and what\n"
        "           `frit explain` says of PROGRAM; without the names of the user and the host,\n"
        "           the home folder, and elements of tensors\n"
        "\n"
        "With --json: without a name: version, abi_min, abi_max, compiler, sanitizer, library,\n"
        "system; plugins {id, path, version, origin, devices, reason, detail, probe (trusted, "
        "now,\n"
        "earlier, no)}; devices {name, plugin, type, reason, default}; places {kind, path, "
        "origin,\n"
        "exists, files, bytes, max_bytes}; limits {name, value}; processors, usable_processors,\n"
        "memory_bytes, huge_pages; problems {text, advice}.\n"
        "config: config {section, key, value, origin}.\n"
        "plugin: file, build_id, note, id, version, abi_min, abi_max, instructions, sanitizer,\n"
        "runtimes, exports, other_exports, needed {name, path}, runpath, relro, bind_now,\n"
        "nodelete, ibt, shadow_stack, executable_stack, text_relocations, writable_code,\n"
        "static_tls, reason, detail, probe, probe_detail, devices, probe_seconds, conform,\n"
        "failures; remarks, problems {text, advice}.\n"
        "bisect: file, device, against, agrees, difference, cause (setting, fuser, fusion,\n"
        "driver), fusers, right_with, ops, ops_difference, block, block_fuser, saved, trials.",
    .options =
        (const struct option[]){
            {"--device", "D", "devices in order of preference; first usable wins", 'd', false},
            {"--against", "D", "bisect: the device that is right (reference)", 0, false},
            PROGRAM_IN_OPTION("bisect: "),
            {"--tolerance", "T", "bisect: allowed difference / largest value (by the type)", 0,
             false},
            {"--repeat", "N", "bisect: runs of a trial; 8", 0, false},
            {"--timeout", "SECONDS", "bisect: that a trial may take; 60", 0, false},
            {"--output", "FILE", "report: the file; bisect: a folder for those ops and operands",
             'o', false},
            {"--json", NULL, "print JSON", 0, false},
            {0}},
    .examples = (const char *const[]){"doctor", "doctor vulkan:0", "doctor config",
                                      "doctor plugin ./libfrit-mine.so",
                                      "doctor bisect digits.frit --device vulkan:0",
                                      "doctor report digits.frit -o report.txt", NULL},
    .max_args = 2,
    .run = run,
};
