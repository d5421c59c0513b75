/* SPDX-License-Identifier: Apache-2.0 */
/* A result is kept by the files' identities and by what else decides how a plugin behaves: the
 * host's version, the system's, the loader's variables.  Kept are success, crashes, hangs and early
 * ends; what the host refuses for other reasons it finds again by itself. */
#include "load/probe.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "conf/conf.h"
#include "conf/env.h"
#include "load/artefact.h"
#include "load/elf.h"
#include "load/find.h"
#include "load/load.h"
#include "load/probe_command.h"
#include "load/probe_run.h"
#include "load/quarantine.h"
#include "load/trust.h"

/* A driver may start its vendor's runtime for the first time; all of them together take longer. */
enum { PROBE_SECONDS = 10, SET_SECONDS = 30 };

/* A failure may be the fault of something that was mended since. */
enum { FORGOTTEN_S = 7 * 24 * 3600 };

static double limit;

void probe_set_limit(double seconds)
{
    limit = seconds;
}

struct probe {
    const struct conf *conf;
    const char *program; /* NULL: there is none */
    uint64_t context;    /* of the keys */
    struct trust *trust;
};

/* ---- what is kept ---- */

static void digest(uint64_t *hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static void digest_text(uint64_t *hash, const char *text)
{
    digest(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* `program`: the probe, which is built with this library. */
static uint64_t context_of(const struct conf *conf, const char *program)
{
    static const char *const variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD"};
    struct utsname system = {0};
    struct stat info = {0};
    uint64_t hash = 0xcbf29ce484222325u;

    digest_text(&hash, frit_version());
    (void)uname(&system);
    digest_text(&hash, system.release);
    if (program && stat(program, &info) == 0) {
        digest(&hash, &info.st_size, sizeof(info.st_size));
        digest(&hash, &info.st_mtim, sizeof(info.st_mtim));
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        digest_text(&hash, env_get(env_of_process(), variables[i]));
    for (uint32_t i = 0; i < conf_n_plugins(conf); i++) {
        const struct conf_plugin *section = conf_plugin_at(conf, i);

        for (uint32_t k = 0; k < section->n_options; k++) {
            digest_text(&hash, section->id);
            digest_text(&hash, section->options[k].key);
            digest_text(&hash, section->options[k].value);
        }
    }
    return hash;
}

FRIT_STATIC_ASSERT(sizeof(struct elf_identity) == 32 + ELF_BUILD_ID_TEXT, "no holes");

/* The context and, since a death makes worthless what was learnt before it, the deaths; then the
 * identities of the files in their order. */
struct key {
    uint64_t context;
    struct elf_identity files[PROBE_FILES];
};

static uint32_t deaths_of(const struct probe_subject *subject)
{
    return subject->plugin->suspect ? subject->plugin->suspect->deaths : 0;
}

static struct artefact_name name_of(const struct probe *probe, const struct probe_subject *subjects,
                                    uint32_t n, struct key *key)
{
    memset(key, 0, sizeof(*key));
    key->context = probe->context;
    for (uint32_t i = 0; i < n; i++) {
        key->files[i] = *subjects[i].identity;
        key->context += (uint64_t)deaths_of(&subjects[i]) << (8 * (i % 8));
    }
    return (struct artefact_name){.space = "frit-probe",
                                  .key = key,
                                  .n_key = offsetof(struct key, files) + n * sizeof(key->files[0])};
}

/* What is kept of one probe: the plugin that failed, and why; reason 0: none did. */
struct verdict {
    int64_t time; /* since 1970 */
    uint32_t reason, file;
    char words[400];
};

static bool recall(const struct probe *probe, const struct probe_subject *subjects, uint32_t n,
                   struct verdict *out)
{
    struct key key;
    const struct artefact_name name = name_of(probe, subjects, n, &key);

    if (!artefact_get_record(conf_artefacts(probe->conf), &name, out, sizeof(*out)))
        return false;
    out->words[sizeof(out->words) - 1] = '\0';
    return out->file < n && (!out->reason || time(NULL) - out->time < FORGOTTEN_S);
}

static void keep(const struct probe *probe, const struct probe_subject *subjects, uint32_t n,
                 const struct verdict *verdict)
{
    const char *folder = conf_artefacts(probe->conf);
    struct key key;
    const struct artefact_name name = name_of(probe, subjects, n, &key);

    if (folder)
        (void)artefact_put(folder, (uint64_t)conf_options(probe->conf)->artefact_bytes, &name,
                           verdict, sizeof(*verdict), NULL);
}

/* ---- what a run means ---- */

static void end_text(const struct probe_run *run, char *text, size_t size)
{
    const struct probe_report *report = &run->report;
    const char *slot = report->done ? "exit" : report->has_place ? report->slot : "start";

    if (run->late)
        snprintf(text, size, "in %s, for %.0f s", slot, run->seconds);
    else if (report->signal)
        snprintf(text, size, "in %s: %.250s", slot, report->crash);
    else if (run->has_exit && WIFSIGNALED(run->exit))
        snprintf(text, size, "in %s: signal %d", slot, WTERMSIG(run->exit));
    else if (run->has_exit && WEXITSTATUS(run->exit) == PROBE_UNHEARD)
        snprintf(text, size, "in %s: it closed descriptors that it did not open", slot);
    else
        snprintf(text, size, "in %s, exit code %d", slot,
                 run->has_exit ? WEXITSTATUS(run->exit) : -1);
    if (run->output[0]) {
        size_t used = strlen(text);

        snprintf(text + used, size - used, "; it wrote: %s", run->output);
    }
}

static void judge(const struct probe_run *run, uint32_t n, struct verdict *out)
{
    const bool crashed = run->report.signal || (run->has_exit && WIFSIGNALED(run->exit));

    *out =
        (struct verdict){.time = time(NULL), .file = run->report.file < n ? run->report.file : 0};
    if (run->report.done && !run->late && !crashed && !(run->has_exit && run->exit))
        return;
    out->reason = run->late ? FRIT_REASON_HANGS : crashed ? FRIT_REASON_CRASHES : FRIT_REASON_EXITS;
    end_text(run, out->words, sizeof(out->words));
}

static void apply(const struct probe_subject *subjects, const struct verdict *verdict)
{
    if (verdict->reason)
        (void)plugin_refuse(subjects[verdict->file].plugin, verdict->reason, "%s", verdict->words);
}

/* ---- running ---- */

static int start(const struct probe *probe, const struct probe_subject *subjects, uint32_t n,
                 struct probe_run *run)
{
    const char *paths[PROBE_FILES];
    struct probe_command command;
    int error;

    for (uint32_t i = 0; i < n; i++)
        paths[i] = subjects[i].plugin->path;
    if (!probe_command_make(&command, probe->program, probe->conf, paths, n))
        return ENOMEM;
    error = probe_start(run, command.argv, command.environment, command.token);
    probe_command_free(&command);
    return error;
}

static const char *mode_of(const struct conf *conf, const struct probe_subject *subject)
{
    const struct conf_plugin *section =
        subject->section ? subject->section : conf_plugin_find(conf, str_of(subject->plugin->id));

    return section && section->probe ? section->probe : conf_options(conf)->search_probe;
}

static bool is_always(const char *mode)
{
    return strcmp(mode, "always") == 0;
}

static bool is_never(const char *mode)
{
    return strcmp(mode, "never") == 0;
}

/* Whether the plugin is to be probed, or what is known of it looked up. */
static bool is_subject(const struct probe *probe, const struct probe_subject *subject)
{
    const char *mode = mode_of(probe->conf, subject);

    return is_always(mode) ||
           (!is_never(mode) &&
            (deaths_of(subject) || !trust_has(probe->trust, subject->identity->build_id)));
}

/* Why a plugin could not be probed is no fault of its own. */
static void cannot_probe(const struct probe_subject *subject, const char *mode, const char *why)
{
    if (is_always(mode))
        (void)plugin_refuse(subject->plugin, FRIT_REASON_NOT_PROBED, "%s", why);
    else
        log_write(FRIT_LOG_INFO, "load", "plugin %s is not probed: %s", subject->plugin->path, why);
}

static const char no_program[] = "there is no program frit-probe beside the library";

/* Each alone, side by side. */
static void probe_each(const struct probe *probe, const struct probe_subject *subjects, uint32_t n)
{
    struct probe_run *runs = calloc(n, sizeof(*runs));
    const struct probe_subject *tried[PROBE_FILES];
    uint32_t n_tried = 0;

    if (!runs)
        return;

    for (uint32_t i = 0; i < n; i++) {
        const struct probe_subject *subject = &subjects[i];
        const char *mode = mode_of(probe->conf, subject);
        struct verdict verdict;
        int error;

        if (!is_subject(probe, subject))
            continue;
        if (!is_always(mode) && recall(probe, subject, 1, &verdict)) {
            subject->plugin->probe = PLUGIN_RECALLED;
            apply(subject, &verdict);
            continue;
        }
        error = probe->program ? start(probe, subject, 1, &runs[n_tried]) : 0;
        if (!probe->program || error)
            cannot_probe(subject, mode, error ? strerror(error) : no_program);
        else
            tried[n_tried++] = subject;
    }
    probe_wait(runs, n_tried, limit > 0 ? limit : PROBE_SECONDS);
    for (uint32_t i = 0; i < n_tried; i++) {
        struct verdict verdict;

        tried[i]->plugin->probe = PLUGIN_PROBED;
        judge(&runs[i], 1, &verdict);
        apply(tried[i], &verdict);
        keep(probe, tried[i], 1, &verdict);
        if (runs[i].report.n_changes)
            log_write(FRIT_LOG_WARN, "load", "plugin %s changes what is not its own: %s",
                      tried[i]->plugin->path, runs[i].report.changes);
    }
    free(runs);
}

/* Who is refused where a set fails in the call of one: it, or the last before it that is probed,
 * since a plugin that is vouched for works without strangers. */
static uint32_t blame(const struct probe *probe, const struct probe_subject *set, uint32_t failed,
                      uint32_t n)
{
    for (uint32_t i = failed + 1; i > 0; i--)
        if (is_subject(probe, &set[i - 1]))
            return i - 1;
    for (uint32_t i = failed + 1; i < n; i++)
        if (is_subject(probe, &set[i]))
            return i;
    return failed;
}

/* All that are left, in the order in which they will be loaded: what works alone may not beside
 * another.  One is refused where they fail, and the rest tried again. */
static void probe_together(const struct probe *probe, const struct probe_subject *subjects,
                           uint32_t n)
{
    for (;;) {
        struct probe_subject left[PROBE_FILES];
        struct probe_run run;
        struct verdict verdict;
        uint32_t n_left = 0;

        for (uint32_t i = 0; i < n; i++)
            if (!subjects[i].plugin->reason)
                left[n_left++] = subjects[i];
        if (n_left < 2 || !probe->program)
            return;
        if (!recall(probe, left, n_left, &verdict)) {
            if (start(probe, left, n_left, &run))
                return;
            probe_wait(&run, 1, limit > 0 ? limit : SET_SECONDS);
            judge(&run, n_left, &verdict);
            if (verdict.reason) {
                verdict.reason = FRIT_REASON_CLASHES;
                verdict.file = blame(probe, left, verdict.file, n_left);
            }
            keep(probe, left, n_left, &verdict);
        }
        if (!verdict.reason)
            return;
        apply(left, &verdict);
    }
}

/* Whether any is left that a probe may refuse. */
static bool any_subject(const struct probe *probe, const struct probe_subject *subjects, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!subjects[i].plugin->reason && is_subject(probe, &subjects[i]))
            return true;
    return false;
}

void probe_all(const struct conf *conf, const struct probe_subject *subjects, uint32_t n)
{
    char program[PATH_MAX];
    struct probe probe = {.conf = conf, .trust = trust_open()};

    if (n > PROBE_FILES) {
        log_write(FRIT_LOG_WARN, "load", "%u plugins: those after the first %d are not probed", n,
                  PROBE_FILES);
        n = PROBE_FILES;
    }
    for (uint32_t i = 0; i < n; i++)
        if (trust_has(probe.trust, subjects[i].identity->build_id))
            subjects[i].plugin->probe = PLUGIN_TRUSTED;
    if (any_subject(&probe, subjects, n)) {
        if (probe_program_find(program, sizeof(program)))
            probe.program = program;
        probe.context = context_of(conf, probe.program);
        probe_each(&probe, subjects, n);
        if (any_subject(&probe, subjects, n))
            probe_together(&probe, subjects, n);
    }
    trust_close(probe.trust);
}

void probe_file(const struct conf *conf, const char *path, struct probe_outcome *out)
{
    struct plugin plugin = {.path = path};
    const struct probe_subject subject = {.plugin = &plugin};
    char program[PATH_MAX];
    struct probe probe = {.conf = conf, .program = program};
    struct probe_run run;
    struct verdict verdict;
    int error = 0;

    *out = (struct probe_outcome){.reason = FRIT_REASON_NOT_PROBED};
    if (!probe_program_find(program, sizeof(program)) ||
        (error = start(&probe, &subject, 1, &run))) {
        snprintf(out->words, sizeof(out->words), "%s", error ? strerror(error) : no_program);
        return;
    }
    probe_wait(&run, 1, limit > 0 ? limit : PROBE_SECONDS);
    judge(&run, 1, &verdict);
    out->reason = verdict.reason ? verdict.reason : run.report.reason;
    out->n_devices = run.report.n_devices;
    out->seconds = run.seconds;
    snprintf(out->words, sizeof(out->words), "%s",
             verdict.reason ? verdict.words : run.report.words);
    memcpy(out->changes, run.report.changes, sizeof(out->changes));
}
