/* SPDX-License-Identifier: Apache-2.0 */
/* Health: the build, places, plugin files. */
#include <frit/doctor.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "api/copy_sized.h"
#include "api/host.h"
#include "api/report.h"
#include "base/fail.h"
#include "base/process.h"
#include "base/thread.h"
#include "conf/conf.h"
#include "load/examine.h"
#include "load/inspect.h"
#include "load/load.h"
#include "load/probe.h"
#include "load/reason.h"

/* ---- the library ---- */

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

frit_status frit_build(frit_build_desc *out)
{
    static const char here; /* lies in the file that this code came from */
    Dl_info info = {0};
    frit_build_desc desc = {.version = FRIT_VERSION,
                            .path = "",
                            .compiler = COMPILER,
                            .sanitizer = inspect_sanitizer_name(FRIT_SANITIZER),
                            .abi_min = FRIT_ABI_MIN,
                            .abi_max = FRIT_ABI_MAX};

    if (!out)
        return FRIT_INVALID;
    if (dladdr(&here, &info) && info.dli_fname)
        desc.path = info.dli_fname;
    return copy_sized(out, &desc, sizeof(desc));
}

/* ---- places ---- */

static const char *origin_of(const struct conf *conf, const char *section, const char *key)
{
    frit_config_desc value;

    for (uint64_t i = 0; conf_at(conf, i, &value); i++)
        if (strcmp(value.section, section) == 0 && strcmp(value.key, key) == 0)
            return value.origin;
    return "";
}

/* A store or the folder of artefacts, at `index` of those that there are. */
static bool kept_at(const struct conf *conf, uint64_t index, frit_place_desc *out)
{
    const frit_place_desc kept[] = {{.kind = FRIT_PLACE_PLANS,
                                     .path = conf_plan_store(conf),
                                     .origin = origin_of(conf, "fusion", "store")},
                                    {.kind = FRIT_PLACE_DECISIONS,
                                     .path = conf_tune_store(conf),
                                     .origin = origin_of(conf, "tune", "store")},
                                    {.kind = FRIT_PLACE_ARTEFACTS,
                                     .path = conf_artefacts(conf),
                                     .origin = origin_of(conf, "frit", "artefacts"),
                                     .max_bytes = (uint64_t)conf_options(conf)->artefact_bytes}};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (!kept[i].path || index--)
            continue;
        *out = kept[i];
        return true;
    }
    return false;
}

static bool place_at(const frit_host *host, uint64_t index, frit_place_desc *out)
{
    const struct search_dir *dir;
    uint32_t n_files = 0, n_dirs = 0;

    while (conf_file_at(host->conf, n_files))
        n_files++;
    while (registry_dir_at(host->registry, n_dirs))
        n_dirs++;
    if (index < n_files) {
        *out = (frit_place_desc){.kind = FRIT_PLACE_CONFIG,
                                 .path = conf_file_at(host->conf, (uint32_t)index)};
        return true;
    }
    index -= n_files;
    if (index >= n_dirs)
        return kept_at(host->conf, index - n_dirs, out);
    dir = registry_dir_at(host->registry, (uint32_t)index);
    *out = (frit_place_desc){.kind = FRIT_PLACE_PLUGINS,
                             .path = dir->path,
                             .origin = dir->origin,
                             .trouble = dir->trouble};
    return true;
}

frit_status frit_place_at(frit_host *host, uint64_t index, frit_place_desc *out)
{
    frit_place_desc desc = {0};

    if (!host || !out || !host->conf || !host->registry || !place_at(host, index, &desc))
        return FRIT_INVALID;
    desc.origin = desc.origin ? desc.origin : "";
    desc.trouble = desc.trouble ? desc.trouble : "";
    return copy_sized(out, &desc, sizeof(desc));
}

const char *frit_reason_advice(uint32_t reason)
{
    return reason_advice(reason);
}

/* ---- plugin files ---- */

struct frit_plugin_file {
    struct examined examined;
    struct probe_outcome outcome; /* of the last probe: its texts are lent */
};

/* Names that a linker wrote may hold anything. */
static void clean(char *text, size_t size)
{
    char plain[ELF_PATH];

    plugin_text((frit_str){text, strlen(text)}, plain, sizeof(plain));
    memcpy(text, plain, strlen(plain) < size ? strlen(plain) + 1 : size);
}

static void clean_all(struct elf_facts *facts)
{
    for (uint32_t i = 0; i < facts->n_needed; i++)
        clean(facts->needed[i], sizeof(facts->needed[i]));
    for (uint32_t i = 0; i < facts->n_extra; i++)
        clean(facts->extra[i], sizeof(facts->extra[i]));
    clean(facts->soname, sizeof(facts->soname));
    clean(facts->runpath, sizeof(facts->runpath));
}

frit_status frit_plugin_file_read(const char *path, frit_plugin_file **out, frit_err *err)
{
    HOLD_CANCEL;
    if (!path || !out)
        return report_null(err, "plugin_file_read", path ? "`out`" : "the path");
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    examine_file(path, &(*out)->examined);
    clean_all(&(*out)->examined.facts);
    return FRIT_OK;
}

void frit_plugin_file_free(frit_plugin_file *file)
{
    free(file);
}

static uint32_t flags_of(const struct elf_facts *facts)
{
    return (facts->has_note ? FRIT_FILE_NOTE : 0u) |
           (facts->keeps_sections ? FRIT_FILE_SYMBOLS : 0u) |
           (facts->relro ? FRIT_FILE_RELRO : 0u) | (facts->bind_now ? FRIT_FILE_BIND_NOW : 0u) |
           (facts->stays ? FRIT_FILE_STAYS : 0u) |
           (facts->executable_stack ? FRIT_FILE_EXECUTABLE_STACK : 0u) |
           (facts->text_relocations ? FRIT_FILE_TEXT_RELOCATIONS : 0u) |
           (facts->writable_code ? FRIT_FILE_WRITABLE_CODE : 0u) |
           (facts->static_tls ? FRIT_FILE_STATIC_TLS : 0u) |
           (facts->has_old_rpath ? FRIT_FILE_OLD_RPATH : 0u) |
           (facts->guards_branches ? FRIT_FILE_IBT : 0u) |
           (facts->guards_returns ? FRIT_FILE_SHADOW_STACK : 0u);
}

frit_status frit_plugin_file_about(const frit_plugin_file *file, frit_plugin_file_desc *out)
{
    const struct examined *examined;
    const struct elf_facts *facts;

    if (!file || !out)
        return FRIT_INVALID;
    examined = &file->examined;
    facts = &examined->facts;
    frit_plugin_file_desc desc = {
        .path = examined->path,
        .id = facts->note.id,
        .version = facts->note.version,
        .runtimes = facts->note.runtimes,
        .isa = examined->isa,
        .sanitizer = facts->has_note ? inspect_sanitizer_name(facts->note.sanitizer) : "",
        .build_id = facts->identity.build_id,
        .soname = facts->soname,
        .runpath = facts->runpath,
        .abi_min = facts->note.abi_min,
        .abi_max = facts->note.abi_max,
        .flags = flags_of(facts),
        .n_exports = facts->n_exports,
        .bytes = facts->identity.bytes,
        .reason = examined->reason,
        .reason_name = reason_name(examined->reason),
        .detail = examined->detail};

    return copy_sized(out, &desc, sizeof(desc));
}

frit_status frit_plugin_file_needed_at(const frit_plugin_file *file, uint64_t index,
                                       frit_needed_desc *out)
{
    frit_needed_desc desc = {0};

    if (!file || !out || index >= file->examined.facts.n_needed)
        return FRIT_INVALID;
    desc.name = file->examined.facts.needed[index];
    desc.path = file->examined.found[index];
    return copy_sized(out, &desc, sizeof(desc));
}

const char *frit_plugin_file_export_at(const frit_plugin_file *file, uint64_t index)
{
    return file && index < file->examined.facts.n_extra ? file->examined.facts.extra[index] : NULL;
}

frit_status frit_plugin_file_probe(frit_plugin_file *file, const frit_host_params *params,
                                   frit_probe_desc *out, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    struct conf *conf;
    frit_status st;

    if (!file || !out)
        return report_null(err, "plugin_file_probe", file ? "`out`" : "the file");
    if (process_is_barred())
        return report_barred(err, "plugin_file_probe");
    st = conf_load(params ? params->settings : NULL, params ? params->n_settings : 0, &conf, &own);
    if (st)
        return report(err, st, &own);
    probe_file(conf, file->examined.path, &file->outcome);
    conf_destroy(conf);
    frit_probe_desc desc = {.reason = file->outcome.reason,
                            .n_devices = file->outcome.n_devices,
                            .reason_name = reason_name(file->outcome.reason),
                            .detail = file->outcome.words,
                            .changes = file->outcome.changes,
                            .seconds = file->outcome.seconds};
    return copy_sized(out, &desc, sizeof(desc))
               ? fail(err, FRIT_INVALID, "plugin_file_probe: `out` has no struct_size")
               : FRIT_OK;
}
