/* SPDX-License-Identifier: Apache-2.0 */
/* `frit doctor`: explains why a device is not usable, and shows the origin of each configuration
 * value. */
#include <stdlib.h>
#include <string.h>

#include "invocation.h"
#include "json.h"
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

/* NAME alone means `why NAME`. */
static int run(const struct invocation *in)
{
    bool config = strcmp(in->args[0], "config") == 0, why = strcmp(in->args[0], "why") == 0;
    const char *name = config ? NULL : why ? in->args[1] : in->args[0];
    struct session session;
    int status;

    if (!config && (!name || !*name))
        return fail_usage(in, "NAME is missing: frit doctor NAME, with a device, driver or plugin");
    if (in->n_args > 1 && !why)
        return fail_usage(in, "unexpected argument '%s': frit doctor %s", in->args[1], in->args[0]);
    if (name && invocation_has(in, "--json"))
        return fail_usage(in, "--json is only for config");
    status = session_open(&session, in);
    if (status == CLI_FINE && name)
        status = show_why(in, session.host, name);
    else if (status == CLI_FINE && invocation_has(in, "--json"))
        print_config_json(session.host);
    else if (status == CLI_FINE)
        show_config(session.host);
    session_close(&session);
    return status;
}

const struct command doctor_command = {
    .name = "doctor",
    .summary = "show why a device is usable or not; show the configuration",
    .args = "[why] NAME | config",
    .details = "NAME       why a device, driver or plugin is usable or not; use `why NAME` if its\n"
               "           name is `config`\n"
               "config     every value of the configuration and where it came from; with --json:\n"
               "           config {section, key, value, origin}",
    .options = (const struct option[]){{"--json", NULL, "print JSON", 0, false}, {0}},
    .examples = (const char *const[]){"doctor vulkan:0", "doctor config", NULL},
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
