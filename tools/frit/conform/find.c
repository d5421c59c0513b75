/* SPDX-License-Identifier: Apache-2.0 */
/* Which device DRIVER, DEVICE or a plugin's file means.  A child looks, since plugins may crash
 * when they are opened; it answers with a line per fact. */
#include "conform/find.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/conform.h"

static bool is_file(const char *name)
{
    return strchr(name, '/') || access(name, R_OK) == 0;
}

static void log_nothing(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    (void)level;
    (void)topic;
    (void)text;
}

/* Opens a host with the settings of the run and one more, without logging: the caller reports the
 * failure.  NULL after a line with the reason. */
static frit_host *open_with(const struct conform_options *options, const frit_setting *setting,
                            FILE *out)
{
    frit_setting settings[CONFORM_SETTINGS + 1];
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = settings,
                                     .n_settings = options->n_settings + 1,
                                     .log = log_nothing};
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host = NULL;

    memcpy(settings, options->settings, options->n_settings * sizeof(settings[0]));
    settings[options->n_settings] = *setting;
    if (frit_host_open(&params, &host, &err)) {
        fprintf(out, "reason no host opens: %s\n", err.text);
        frit_host_close(host);
        return NULL;
    }
    return host;
}

/* The plugin that the file holds; false if it was not looked at. */
static bool plugin_of(frit_host *host, const char *path, frit_plugin_desc *out)
{
    *out = (frit_plugin_desc){.struct_size = sizeof(*out)};
    for (uint64_t i = 0; frit_plugin_at(host, i, out) == FRIT_OK; i++)
        if (strcmp(out->path, path) == 0)
            return true;
    return false;
}

/* The configuration section of a file must have the plugin's id, so the file is first opened under
 * another name, to read its id. */
static void find_file(const struct conform_options *options, const char *name, FILE *out)
{
    char path[PATH_MAX], section[CONFORM_NAME];
    frit_setting setting = {"plugin.conform", "library", path};
    frit_device_desc device = {.struct_size = sizeof(device)};
    frit_plugin_desc plugin;
    frit_host *host;

    if (!realpath(name, path)) {
        fprintf(out, "reason %s\n", strerror(errno));
        return;
    }
    host = open_with(options, &setting, out);
    if (!host)
        return;
    if (!plugin_of(host, path, &plugin) || !*plugin.id) {
        fprintf(out, "reason it is not a plugin: %s\n", plugin.reason_name);
        return;
    }
    snprintf(section, sizeof(section), "plugin.%s", plugin.id);
    setting.section = section;
    host = open_with(options, &setting, out);
    if (!host)
        return;
    if (!plugin_of(host, path, &plugin) || plugin.reason) {
        fprintf(out, "reason %s: %s\n", plugin.reason_name, plugin.detail);
        return;
    }
    for (uint64_t i = 0; frit_device_info_at(host, i, &device) == FRIT_OK; i++) {
        if (strcmp(device.plugin, plugin.id) != 0 || device.reason)
            continue;
        fprintf(out, "section %s\nlibrary %s\ndevice %s\n", section, path, device.name);
        return;
    }
    fprintf(out, "reason it has no usable device: %s\n", plugin.detail);
}

static void find_device(const struct conform_options *options, const char *name, FILE *out)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting only = {"frit", "device", name};
    frit_host *host = open_with(options, &only, out);
    frit_device *device;

    if (!host)
        return;
    if (frit_device_open(host, name, &device, &err))
        fprintf(out, "reason %s\n", err.text);
    else
        fprintf(out, "device %s\n", frit_device_name(device));
}

static void take_line(char *line, struct conform_found *out, char reason[CONFORM_REASON])
{
    const struct {
        const char *word;
        char *to;
        size_t capacity;
    } facts[] = {
        {"device ", out->device, sizeof(out->device)},
        {"section ", out->section, sizeof(out->section)},
        {"library ", out->library, sizeof(out->library)},
        {"reason ", reason, CONFORM_REASON},
    };

    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        size_t length = strlen(facts[i].word);

        if (strncmp(line, facts[i].word, length) == 0)
            snprintf(facts[i].to, facts[i].capacity, "%s", line + length);
    }
}

/* ---- in a child ---- */

bool conform_fork(void (*send)(void *ctx, FILE *to), void (*receive)(void *ctx, FILE *from),
                  void *ctx, int *status)
{
    int ends[2], error;
    pid_t pid;
    FILE *from;

    fflush(NULL);
    if (pipe(ends))
        return false;
    pid = fork();
    if (pid < 0) {
        error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        return false;
    }
    if (pid == 0) {
        FILE *to = fdopen(ends[1], "w");

        close(ends[0]);
        if (to) {
            send(ctx, to);
            fclose(to);
        }
        _exit(to ? 0 : 1);
    }
    close(ends[1]);
    from = fdopen(ends[0], "r");
    error = from ? 0 : errno;
    if (from) {
        receive(ctx, from);
        fclose(from);
    } else {
        close(ends[0]);
    }
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    errno = error;
    return from != NULL;
}

const char *conform_ended(int status, char reason[CONFORM_REASON])
{
    if (WIFSIGNALED(status))
        snprintf(reason, CONFORM_REASON, "it crashed: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(reason, CONFORM_REASON, "the process ended (exit code %d)", WEXITSTATUS(status));
    return reason;
}

struct finding {
    const struct conform_options *options;
    const char *name;
    struct conform_found *out;
    char *reason;
};

static void find(void *ctx, FILE *to)
{
    const struct finding *finding = ctx;

    if (is_file(finding->name))
        find_file(finding->options, finding->name, to);
    else
        find_device(finding->options, finding->name, to);
}

static void take_lines(void *ctx, FILE *from)
{
    const struct finding *finding = ctx;
    char line[PATH_MAX + CONFORM_NAME];

    while (fgets(line, sizeof(line), from))
        take_line(line, finding->out, finding->reason);
}

bool conform_find(const struct conform_options *options, const char *name,
                  struct conform_found *out, char reason[CONFORM_REASON])
{
    struct finding finding = {options, name, out, reason};
    char ended[CONFORM_REASON];
    int status = 0;

    *out = (struct conform_found){0};
    *reason = '\0';
    if (!conform_fork(find, take_lines, &finding, &status)) {
        snprintf(reason, CONFORM_REASON, "%s", strerror(errno));
        return false;
    }
    if (!*out->device && !*reason)
        snprintf(reason, CONFORM_REASON, "it was not opened: %.300s", conform_ended(status, ended));
    return *out->device != '\0';
}
