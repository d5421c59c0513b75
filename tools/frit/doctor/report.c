/* SPDX-License-Identifier: Apache-2.0 */
/* One text that people can read before they send it.  It is made whole, masked, then written. */
#include "doctor/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <frit/doctor.h>

#include "base/str.h"
#include "command.h"
#include "doctor/health.h"
#include "doctor/mask.h"
#include "doctor/self.h"
#include "invocation.h"

static void head(FILE *out, const char *text)
{
    fprintf(out, "\n== %s ==\n", text);
}

/* Options and variables of such names may hold what is nobody's business. */
static bool is_secret(const char *name)
{
    static const char *const words[] = {"key", "token", "secret", "password", "credential"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void print_config(frit_host *host, FILE *out)
{
    frit_config_desc value = {.struct_size = sizeof(value)};

    head(out, "Configuration");
    for (uint64_t i = 0; frit_config_at(host, i, &value) == FRIT_OK; i++)
        fprintf(out, "[%s] %s = %s    (%s)\n", value.section, value.key,
                is_secret(value.key) ? "(left out)" : value.value, value.origin);
}

static void print_environment(FILE *out)
{
    static const char *const wanted[] = {"FRIT_", "LD_LIBRARY_PATH=", "LD_PRELOAD=", "LD_AUDIT="};

    head(out, "Environment");
    for (char **at = environ; *at; at++) {
        const int length = (int)strcspn(*at, "=");
        char name[128];

        snprintf(name, sizeof(name), "%.*s", length, *at);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
            if (strncmp(*at, wanted[i], strlen(wanted[i])) == 0)
                fprintf(out, "%s=%s\n", name, is_secret(name) ? "(left out)" : *at + length + 1);
    }
}

static void print_file(const char *path, FILE *out)
{
    frit_plugin_file_desc about = {.struct_size = sizeof(about)};
    frit_needed_desc needed = {.struct_size = sizeof(needed)};
    frit_plugin_file *file;

    if (!*path || frit_plugin_file_read(path, &file, NULL))
        return;
    frit_plugin_file_about(file, &about);
    fprintf(out,
            "  note %s %s, ABI %" PRIu32 ".%" PRIu32 " to %" PRIu32 ".%" PRIu32
            ", instructions %s, runtimes %s\n",
            about.id, about.version, about.abi_min >> 16, about.abi_min & 0xffff,
            about.abi_max >> 16, about.abi_max & 0xffff, *about.isa ? about.isa : "baseline",
            *about.runtimes ? about.runtimes : "none");
    fprintf(out, "  build id %s, %" PRIu64 " bytes, flags 0x%" PRIx32 ", %" PRIu32 " exports\n",
            about.build_id, about.bytes, about.flags, about.n_exports);
    for (uint64_t i = 0; frit_plugin_file_needed_at(file, i, &needed) == FRIT_OK; i++)
        fprintf(out, "  needs %s: %s\n", needed.name, *needed.path ? needed.path : "not found");
    frit_plugin_file_free(file);
}

static void print_plugins(frit_host *host, FILE *out)
{
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};

    head(out, "Plugin files");
    for (uint64_t i = 0; frit_plugin_at(host, i, &plugin) == FRIT_OK; i++) {
        fprintf(out, "%s: %s (%s)\n", *plugin.path ? plugin.path : plugin.id,
                plugin.reason ? plugin.reason_name : "usable", plugin.origin);
        if (*plugin.detail)
            fprintf(out, "  %s\n", plugin.detail);
        print_file(plugin.path, out);
    }
}

static void put_line(void *ctx, const char *line)
{
    fprintf(ctx, "%s\n", line);
}

/* In a process of its own: it may be what the report is about. */
static void print_program(const struct invocation *in, FILE *out)
{
    const char *device = invocation_value(in, "--device");
    const char *words[] = {"frit", "explain", in->args[1], device ? "--device" : NULL,
                           device, NULL};
    int status = 0, error;

    head(out, "Program");
    error = self_run(words, put_line, out, &status);
    if (error || status)
        fprintf(out, "frit explain: %s (status 0x%x)\n", error ? strerror(error) : "failed",
                (unsigned)status);
}

static void print_all(const struct invocation *in, FILE *out)
{
    struct health health;

    fputs("A report of `frit doctor report`.  The home folder is ~, the user <user>, the host "
          "<host>.\nIt holds names of files and options, no elements of tensors.  Read it before "
          "you send it.\n",
          out);
    health_gather(&health);
    head(out, "Health");
    health_print(&health, out);
    if (health.host) {
        print_config(health.host, out);
        print_plugins(health.host, out);
    }
    health_fini(&health);
    print_environment(out);
    if (in->n_args > 1)
        print_program(in, out);
}

static int write_text(const struct invocation *in, const struct str *text)
{
    const char *path = invocation_value(in, "--output");
    FILE *file = path ? fopen(path, "w") : stdout;
    bool good = file && fwrite(text->text, 1, text->length, file) == text->length;

    if (path && file)
        good = fclose(file) == 0 && good;
    if (!good)
        return fail_command(in, "%s: %s", path ? path : "standard output", strerror(errno));
    if (path)
        printf("%s: written; read it before you send it\n", path);
    return CLI_FINE;
}

int report_command(const struct invocation *in)
{
    struct str masked = {0};
    struct mask mask;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int status = CLI_FINE;

    if (out) {
        print_all(in, out);
        if (fclose(out))
            size = 0;
    }
    mask_of_process(&mask);
    if (size)
        mask_apply(&mask, text, &masked);
    if (!size || masked.failed)
        status = fail_command(in, "no memory");
    else
        status = write_text(in, &masked);
    str_fini(&masked);
    free(text);
    return status;
}
