/* SPDX-License-Identifier: Apache-2.0 */
/* Looking comes before touching: the file is read, then tried in a process of its own, and only one
 * that passed is used, in processes of their own too. */
#include "doctor/plugin.h"

#include <inttypes.h>
#include <string.h>

#include <frit/doctor.h>

#include "command.h"
#include "doctor/problems.h"
#include "doctor/quick.h"
#include "invocation.h"
#include "json.h"
#include "term.h"

struct examination {
    frit_plugin_file *file;
    frit_plugin_file_desc about;
    bool probed;
    frit_probe_desc probe;
    bool conformed;
    struct quick quick;
    struct problems problems; /* that keep it from working */
    struct problems remarks;  /* that do not */
};

/* ---- examining ---- */

static void remark_symbols(struct examination *e)
{
    const frit_plugin_file_desc *about = &e->about;

    if (!(about->flags & FRIT_FILE_NOTE))
        problems_add(&e->remarks, "export the entry by FRIT_DEFINE_PLUGIN",
                     "it has no note, so that nothing is known of it before it is loaded");
    if (about->flags & FRIT_FILE_SYMBOLS && about->n_exports > 1)
        problems_add(&e->remarks, "build it with frit_plugin(), or a version script",
                     "it exports %" PRIu32 " symbols beside frit_plugin_entry_v1, which may clash "
                     "with those of others",
                     about->n_exports - 1);
}

static void remark_linking(struct examination *e)
{
    static const struct {
        uint32_t flag;
        bool wanted;
        const char *text, *advice;
    } rows[] = {
        {FRIT_FILE_RELRO, true, "tables that the loader fills stay writable", "-z relro"},
        {FRIT_FILE_BIND_NOW, true, "a missing symbol is noticed only when it is called", "-z now"},
        {FRIT_FILE_STAYS, true, "it could be unloaded under its threads", "-z nodelete"},
        {FRIT_FILE_WRITABLE_CODE, false, "a segment is both written and run", "-z separate-code"},
        {FRIT_FILE_OLD_RPATH, false, "its DT_RPATH holds for all that it loads",
         "--enable-new-dtags"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].wanted != ((e->about.flags & rows[i].flag) != 0))
            problems_add(&e->remarks, "", "%s: link it with %s", rows[i].text, rows[i].advice);
    if (*e->about.runpath == '/')
        problems_add(&e->remarks, "begin it with $ORIGIN",
                     "its search path is absolute, so it depends on the machine: %s",
                     e->about.runpath);
}

/* No runtime and no device are no faults of the file. */
static bool is_fault(uint32_t reason)
{
    return reason && reason != FRIT_REASON_NO_RUNTIME && reason != FRIT_REASON_NO_DEVICE;
}

static void note_reason(struct examination *e, const char *what, uint32_t reason, const char *name,
                        const char *detail)
{
    problems_add(is_fault(reason) ? &e->problems : &e->remarks, frit_reason_advice(reason),
                 "%s: %s%s%s", what, name, *detail ? ": " : "", detail);
}

static int probe(const struct invocation *in, struct examination *e)
{
    frit_err err = {.struct_size = sizeof(err)};

    e->probe.struct_size = sizeof(e->probe);
    if (frit_plugin_file_probe(e->file, NULL, &e->probe, &err))
        return fail_command(in, "%s", err.text);
    e->probed = true;
    if (e->probe.reason)
        note_reason(e, "probe", e->probe.reason, e->probe.reason_name, e->probe.detail);
    if (*e->probe.changes)
        problems_add(&e->problems, "its calls must leave the thread and the process as they were",
                     "it changes what is not its own: %s", e->probe.changes);
    return CLI_FINE;
}

static void conform(struct examination *e)
{
    quick_run(e->about.path, &e->quick);
    e->conformed = true;
    if (!e->quick.ran)
        problems_add(&e->problems, "", "conform did not run: %s", e->quick.summary);
    else if (!e->quick.passed)
        problems_add(&e->problems, "`frit conform FILE` runs them all",
                     "%zu cases of conform fail, first %s", e->quick.n_failed,
                     e->quick.n_failed ? e->quick.failures[0] : "");
}

static int examine(const struct invocation *in, struct examination *e)
{
    frit_err err = {.struct_size = sizeof(err)};

    e->about.struct_size = sizeof(e->about);
    if (frit_plugin_file_read(in->args[1], &e->file, &err))
        return fail_command(in, "%s", err.text);
    frit_plugin_file_about(e->file, &e->about);
    if (e->about.reason) {
        note_reason(e, "it is refused", e->about.reason, e->about.reason_name, e->about.detail);
        return CLI_FINE;
    }
    remark_symbols(e);
    remark_linking(e);
    if (probe(in, e))
        return CLI_FAILED;
    if (!e->probe.reason && e->probe.n_devices)
        conform(e);
    return CLI_FINE;
}

/* ---- text ---- */

static void head(const char *text)
{
    fputc('\n', stdout);
    term_paint(stdout, PAINT_HEAD, 0, text);
    fputc('\n', stdout);
}

static void line(const char *name, const char *value)
{
    if (*value)
        printf("  %-16s %s\n", name, value);
}

static const char *version_text(uint32_t low, uint32_t high, char text[40])
{
    snprintf(text, 40, "%" PRIu32 ".%" PRIu32 " to %" PRIu32 ".%" PRIu32, low >> 16, low & 0xffff,
             high >> 16, high & 0xffff);
    return text;
}

static void show_note(const frit_plugin_file_desc *about)
{
    frit_build_desc build = {.struct_size = sizeof(build)};
    char theirs[40], ours[40];

    frit_build(&build);
    head("Note");
    if (!(about->flags & FRIT_FILE_NOTE)) {
        puts("  there is none");
        return;
    }
    line("id", about->id);
    line("version", about->version);
    printf("  %-16s %s; this library: %s\n", "ABI",
           version_text(about->abi_min, about->abi_max, theirs),
           version_text(build.abi_min, build.abi_max, ours));
    line("instructions", *about->isa ? about->isa : "baseline");
    line("built with", about->sanitizer);
    line("opens", about->runtimes);
}

static void show_symbols(const struct examination *e)
{
    const char *name;

    head("Exported symbols");
    if (!(e->about.flags & FRIT_FILE_SYMBOLS)) {
        puts("  unknown: the file has no table of sections");
        return;
    }
    printf("  %" PRIu32 ", with frit_plugin_entry_v1\n", e->about.n_exports);
    for (uint64_t i = 0; (name = frit_plugin_file_export_at(e->file, i)); i++)
        printf("  %s\n", name);
}

static void show_libraries(const struct examination *e)
{
    frit_needed_desc needed = {.struct_size = sizeof(needed)};

    head("Needed libraries");
    for (uint64_t i = 0; frit_plugin_file_needed_at(e->file, i, &needed) == FRIT_OK; i++) {
        printf("  %-24s ", needed.name);
        if (*needed.path)
            puts(needed.path);
        else
            term_paint(stdout, PAINT_BAD, 0, "not found\n");
    }
    line(e->about.flags & FRIT_FILE_OLD_RPATH ? "RPATH" : "RUNPATH",
         *e->about.runpath ? e->about.runpath : "none");
}

/* How it was linked, as FRIT_FILE_* name it. */
static const struct {
    uint32_t flag;
    const char *name;
} traits[] = {
    {FRIT_FILE_RELRO, "relro"},
    {FRIT_FILE_BIND_NOW, "bind_now"},
    {FRIT_FILE_STAYS, "nodelete"},
    {FRIT_FILE_IBT, "ibt"},
    {FRIT_FILE_SHADOW_STACK, "shadow_stack"},
    {FRIT_FILE_EXECUTABLE_STACK, "executable_stack"},
    {FRIT_FILE_TEXT_RELOCATIONS, "text_relocations"},
    {FRIT_FILE_WRITABLE_CODE, "writable_code"},
    {FRIT_FILE_STATIC_TLS, "static_tls"},
};
enum { N_TRAITS = sizeof(traits) / sizeof(traits[0]) };

static void show_traits(const frit_plugin_file_desc *about)
{
    head("Linking");
    for (size_t i = 0; i < N_TRAITS; i++)
        printf("  %-16s %s\n", traits[i].name, about->flags & traits[i].flag ? "yes" : "no");
    line("soname", about->soname);
    line("build id", about->build_id);
}

static void show_trial(const struct examination *e)
{
    char seconds[16];

    head("Trial");
    printf("  %-16s %s%s%s\n", "accepted", e->about.reason ? e->about.reason_name : "yes",
           *e->about.detail ? ": " : "", e->about.detail);
    if (e->probed)
        printf("  %-16s %s%s%s (%" PRIu32 " devices, %s)\n", "probe",
               e->probe.reason ? e->probe.reason_name : "good", *e->probe.detail ? ": " : "",
               e->probe.detail, e->probe.n_devices, term_seconds(e->probe.seconds, seconds));
    else
        line("probe", "not run");
    line("conform", e->conformed ? e->quick.summary : "not run: there is no device to try");
    for (size_t i = 0; i < e->quick.n_failed && i < QUICK_FAILURES; i++)
        printf("  %-16s %s\n", "", e->quick.failures[i]);
}

static void show(const struct examination *e)
{
    term_paint(stdout, PAINT_HEAD, 0, e->about.path);
    fputc('\n', stdout);
    if (e->about.bytes) {
        show_note(&e->about);
        show_symbols(e);
        show_libraries(e);
        show_traits(&e->about);
    }
    show_trial(e);
    fputc('\n', stdout);
    if (e->remarks.n) {
        problems_print(&e->remarks, "remark", stdout);
        fputc('\n', stdout);
    }
    problems_print(&e->problems, "problem", stdout);
}

/* ---- JSON ---- */

static void json_version(struct json *json, const char *key, uint32_t version)
{
    char text[16];

    snprintf(text, sizeof(text), "%" PRIu32 ".%" PRIu32, version >> 16, version & 0xffff);
    json_text(json, key, text);
}

static void json_note(struct json *json, const frit_plugin_file_desc *about)
{
    json_bool(json, "note", about->flags & FRIT_FILE_NOTE);
    json_text(json, "id", about->id);
    json_text(json, "version", about->version);
    json_version(json, "abi_min", about->abi_min);
    json_version(json, "abi_max", about->abi_max);
    json_text(json, "instructions", about->isa);
    json_text(json, "sanitizer", about->sanitizer);
    json_text(json, "runtimes", about->runtimes);
}

static void json_linking(struct json *json, const struct examination *e)
{
    frit_needed_desc needed = {.struct_size = sizeof(needed)};
    const char *name;

    json_uint(json, "exports", e->about.n_exports);
    json_list(json, "other_exports");
    for (uint64_t i = 0; (name = frit_plugin_file_export_at(e->file, i)); i++)
        json_text(json, NULL, name);
    json_close(json);
    json_list(json, "needed");
    for (uint64_t i = 0; frit_plugin_file_needed_at(e->file, i, &needed) == FRIT_OK; i++) {
        json_object(json, NULL);
        json_text(json, "name", needed.name);
        json_text(json, "path", *needed.path ? needed.path : NULL);
        json_close(json);
    }
    json_close(json);
    json_text(json, "runpath", e->about.runpath);
    for (size_t i = 0; i < N_TRAITS; i++)
        json_bool(json, traits[i].name, e->about.flags & traits[i].flag);
}

static void json_trial(struct json *json, const struct examination *e)
{
    json_text(json, "reason", e->about.reason_name);
    json_text(json, "detail", e->about.detail);
    json_text(json, "probe", e->probed ? e->probe.reason_name : NULL);
    json_text(json, "probe_detail", e->probed ? e->probe.detail : NULL);
    json_uint(json, "devices", e->probe.n_devices);
    json_real(json, "probe_seconds", e->probe.seconds);
    json_text(json, "conform", e->conformed ? e->quick.summary : NULL);
    json_list(json, "failures");
    for (size_t i = 0; i < e->quick.n_failed && i < QUICK_FAILURES; i++)
        json_text(json, NULL, e->quick.failures[i]);
    json_close(json);
}

static void print_json(const struct examination *e)
{
    struct json json;

    json_begin(&json, stdout);
    json_text(&json, "file", e->about.path);
    json_text(&json, "build_id", e->about.build_id);
    json_note(&json, &e->about);
    json_linking(&json, e);
    json_trial(&json, e);
    problems_json(&e->remarks, "remarks", &json);
    problems_json(&e->problems, "problems", &json);
    json_end(&json);
}

/* ---- the command ---- */

int plugin_command(const struct invocation *in)
{
    struct examination e = {0};
    int status = examine(in, &e);

    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(&e);
    else if (status == CLI_FINE)
        show(&e);
    if (status == CLI_FINE && (e.problems.n || e.problems.no_memory))
        status = CLI_FAILED;
    problems_fini(&e.problems);
    problems_fini(&e.remarks);
    frit_plugin_file_free(e.file);
    return status;
}
