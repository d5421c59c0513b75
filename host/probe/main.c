/* SPDX-License-Identifier: Apache-2.0 */
/* frit-probe: started by libfrit, which reads its report; see load/probe_command.h. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/log.h"
#include "conf/conf.h"
#include "load/breadcrumb.h"
#include "load/device.h"
#include "load/probe_report.h"
#include "load/reason.h"
#include "load/registry.h"
#include "probe/crash.h"
#include "probe/report.h"
#include "probe/state.h"

enum { EXIT_MISUSED = 2, SETTINGS = 512, OURS = 3, FIRST_FILE = 3 };

struct command {
    const char *token;
    const char *const *files;
    uint32_t n_files;
    frit_setting settings[SETTINGS];
    size_t n_settings;
};

static struct command command;

/* ---- the command line ---- */

static bool take_version(const char *text)
{
    char version[16];

    snprintf(version, sizeof(version), "%d", PROBE_VERSION);
    return text && strcmp(text, version) == 0;
}

/* Ours come first: the program's options follow. */
static bool parse(int n, char **words)
{
    static const frit_setting ours[OURS] = {
        {"search", "probe", "never"}, {"frit", "artefacts", "none"}, {"frit", "log", "off"}};
    int at = FIRST_FILE;

    if (n <= FIRST_FILE || !take_version(words[1]))
        return false;
    memcpy(command.settings, ours, sizeof(ours));
    command.n_settings = OURS;
    command.files = (const char *const *)words + at;
    while (at < n && strcmp(words[at], "--set") != 0)
        at++;
    command.n_files = (uint32_t)(at - FIRST_FILE);
    command.token = words[2];
    for (; at + 3 < n && command.n_settings < SETTINGS; at += 4) {
        if (strcmp(words[at], "--set") != 0)
            return false;
        command.settings[command.n_settings++] =
            (frit_setting){words[at + 1], words[at + 2], words[at + 3]};
    }
    return at == n && command.n_files > 0 && command.n_files <= PROBE_FILES;
}

/* ---- the stages ---- */

static size_t number_of(const char *path)
{
    for (uint32_t i = 0; i < command.n_files; i++)
        if (strcmp(command.files[i], path) == 0)
            return i;
    return 0;
}

static void on_breadcrumb(void *ctx, const char *path, const char *slot, bool entered)
{
    const size_t file = number_of(path);

    (void)ctx;
    if (entered) {
        report_line("at %zu %s", file, slot);
        state_note();
    } else {
        state_compare(file, slot);
    }
}

static void report_plugin(struct registry *registry, uint32_t index)
{
    const struct plugin *plugin = registry_plugin_at(registry, index);
    const size_t file = number_of(plugin->path);

    if (!plugin->path[0]) /* a section of the configuration without a file */
        return;
    if (!plugin->reason && registry_enumerate(registry, index))
        report_line("refused %zu no-memory", file);
    else if (plugin->reason)
        report_line("refused %zu %s %s", file, reason_name(plugin->reason), plugin->detail);
    else
        report_line("devices %zu %u %s %s", file, plugin->n_devices,
                    reason_name(plugin->driver_reason), plugin->driver_detail);
}

static int try_all(void)
{
    struct registry *registry = NULL;
    struct conf *conf = NULL;
    frit_err err = ERR_INIT;

    if (conf_load(command.settings, command.n_settings, &conf, &err) ||
        registry_open_files(conf, command.files, command.n_files, &registry, &err)) {
        fprintf(stderr, "%s\n", err.text);
        conf_destroy(conf);
        return EXIT_MISUSED;
    }
    for (uint32_t i = 0; i < registry_n_plugins(registry); i++)
        report_plugin(registry, i);
    registry_close(registry);
    conf_destroy(conf);
    if (command.n_files == 1) /* of several nobody knows whose they are */
        state_compare_threads(0);
    report_line("done %s", command.token);
    return 0;
}

int main(int argc, char **argv)
{
    const struct rlimit no_core = {0, 0};

    if (!parse(argc, argv) || fcntl(PROBE_FD, F_GETFD) < 0) {
        fprintf(stderr,
                "frit-probe is started by libfrit to try a plugin.\n"
                "Usage: frit-probe 1 TOKEN FILE... [--set SECTION KEY VALUE]..., with a report "
                "written to descriptor 3\n");
        return EXIT_MISUSED;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGPIPE, SIG_IGN);
    log_configure("off", NULL);
    report_open();
    report_line("frit-probe %d", PROBE_VERSION);
    crash_install();
    breadcrumb_set_sink(on_breadcrumb, NULL);
    return try_all();
}
