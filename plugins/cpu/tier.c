/* SPDX-License-Identifier: Apache-2.0 */
#include "tier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/llvm/blob.h"
#include "ir/digest.h"

/* What is kept: a head, then the blob. */
struct head {
    char made_by[32]; /* the library's file name, for people */
};

static const char *const modes[TIER_MODES] = {"auto", "0", "1"};
static const char *const spaces[LLVM_ISAS][LLVM_LEVELS] = {
    [LLVM_BASE] = {[LLVM_QUICK] = "x86-64-v2 quick", [LLVM_GOOD] = "x86-64-v2 good"},
    [LLVM_AVX2] = {[LLVM_QUICK] = "x86-64-v3 quick", [LLVM_GOOD] = "x86-64-v3 good"},
    [LLVM_AVX512] = {[LLVM_QUICK] = "x86-64-v4 quick", [LLVM_GOOD] = "x86-64-v4 good"}};
static const enum llvm_isa isas[TILE_LEVELS] = {
    [TILE_BASE] = LLVM_BASE, [TILE_AVX2] = LLVM_AVX2, [TILE_AVX512] = LLVM_AVX512};

/* ---- options ---- */

static frit_status read_options(struct tier *tier, frit_err *err)
{
    const struct plug *plug = tier->plug;
    const frit_host_options *options = plug_table(plug->host, FRIT_STR(FRIT_HOST_OPTIONS),
                                                  FRIT_END_OF(frit_host_options, get_str));
    frit_str mode, path;
    frit_status status = options->get_str(plug->host->self, FRIT_STR("tier"), &mode, err);

    if (!status)
        status = options->get_str(plug->host->self, FRIT_STR("llvm"), &path, err);
    if (status)
        return status;
    if (path.len >= sizeof tier->path)
        return plug_fail(plug, err, FRIT_INVALID, "option.llvm is longer than %zu bytes",
                         sizeof tier->path - 1);
    memcpy(tier->path, path.ptr, path.len);
    for (uint32_t i = 0; i < TIER_MODES; i++)
        if (plug_is(mode, (frit_str){modes[i], strlen(modes[i])}))
            tier->mode = (enum tier_mode)i;
    return FRIT_OK;
}

static void refuse(struct tier *tier, frit_status status, const char *why)
{
    tier->refused = status;
    snprintf(tier->reason, sizeof tier->reason, "%.200s", why);
}

frit_status tier_init(struct tier *tier, const struct plug *plug, enum tile_level level,
                      frit_err *err)
{
    frit_status status;

    *tier = (struct tier){.plug = plug};
    status = read_options(tier, err);
    if (status)
        return status;
    tier->keep =
        plug_table(plug->host, FRIT_STR(FRIT_HOST_CACHE), FRIT_END_OF(frit_host_cache, put));
    if (!llvm_cpu_find(&tier->cpu))
        refuse(tier, FRIT_UNSUPPORTED, "it is made for x86-64-v2 and better");
    else if (tier->cpu.isa > isas[level])
        tier->cpu.isa = isas[level];
    pthread_mutex_init(&tier->lock, NULL);
    return FRIT_OK;
}

void tier_fini(struct tier *tier)
{
    llvm_close(tier->llvm);
    pthread_mutex_destroy(&tier->lock);
}

/* ---- the library ---- */

static void say(const struct tier *tier, uint32_t level, const char *text)
{
    const struct plug *plug = tier->plug;

    if (FRIT_HAS(plug->core, frit_host_core, log) && plug->core->log)
        plug->core->log(plug->host->self, level, FRIT_STR("fusion"),
                        (frit_str){text, strlen(text)});
}

/* Inside the lock. */
static void open_library(struct tier *tier)
{
    frit_err why = {.struct_size = sizeof why};
    uint64_t begun = plug_begin(tier->plug);
    frit_status status = llvm_open(tier->path[0] ? tier->path : NULL, &tier->llvm, &why);

    if (status)
        refuse(tier, status, why.text);
    if (begun)
        plug_end(tier->plug, begun, FRIT_STR("open LLVM"));
}

frit_status tier_open(struct tier *tier, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&tier->lock);
    if (!tier->llvm && !tier->refused)
        open_library(tier);
    status = tier->refused;
    pthread_mutex_unlock(&tier->lock);
    return status ? plug_fail(tier->plug, err, status, "no machine code: %s", tier->reason)
                  : FRIT_OK;
}

/* Inside the lock, once: the text is read without it. */
static void describe(struct tier *tier, bool by_option)
{
    if (by_option)
        snprintf(tier->compute, sizeof tier->compute, "interpreter, as its options say");
    else if (tier->refused)
        snprintf(tier->compute, sizeof tier->compute, "interpreter: %s", tier->reason);
    else
        snprintf(tier->compute, sizeof tier->compute, "LLVM %u", llvm_major(tier->llvm));
}

void tier_describe(struct tier *tier, frit_compute_info *out)
{
    const bool by_option = tier->mode == TIER_0;

    out->is_slow = !by_option && tier_open(tier, NULL);
    pthread_mutex_lock(&tier->lock);
    if (!tier->compute[0])
        describe(tier, by_option);
    pthread_mutex_unlock(&tier->lock);
    out->text = (frit_str){tier->compute, strlen(tier->compute)};
}

/* ---- what is kept ---- */

static frit_str space_of(const struct tier *tier, enum llvm_level level)
{
    const char *space = spaces[tier->cpu.isa][level];

    return (frit_str){space, strlen(space)};
}

/* NULL: not what tier_keep wrote for this module. */
static struct object *load(const struct kir_module *module, const char *bytes, uint64_t n_bytes)
{
    struct object *object = NULL;

    if (n_bytes < sizeof(struct head) ||
        object_load(bytes + sizeof(struct head), n_bytes - sizeof(struct head), &object, NULL) ||
        object->n_phases == module->n_phases)
        return object;
    object_unload(object);
    return NULL;
}

struct object *tier_find(struct tier *tier, const struct tier_job *job)
{
    const struct plug *plug = tier->plug;
    struct object *object;
    char text[160];
    uint64_t n_bytes = 0;
    void *bytes = NULL;

    if (!tier->keep || tier->keep->get(plug->host->self, space_of(tier, job->level), job->digest,
                                       KIR_DIGEST, &bytes, &n_bytes, NULL))
        return NULL;
    object = bytes ? load(job->module, bytes, n_bytes) : NULL;
    if (object) {
        plug_counter(plug, FRIT_STR("kernels from the cache"),
                     (double)(atomic_fetch_add(&tier->found, 1) + 1));
        snprintf(text, sizeof text, "%s: code of %.31s from the cache", job->module->name,
                 ((const struct head *)bytes)->made_by);
        say(tier, FRIT_LOG_DEBUG, text);
    }
    plug_free(plug, bytes);
    return object;
}

static void keep(struct tier *tier, const struct tier_job *job, const void *blob, size_t n_blob)
{
    const struct plug *plug = tier->plug;
    struct head head = {0};
    char *bytes;

    if (!tier->keep)
        return;
    bytes = plug_alloc(plug, sizeof head + n_blob, _Alignof(struct blob));
    if (!bytes)
        return;
    snprintf(head.made_by, sizeof head.made_by, "%s", llvm_version(tier->llvm));
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, blob, n_blob);
    (void)tier->keep->put(plug->host->self, space_of(tier, job->level), job->digest, KIR_DIGEST,
                          bytes, sizeof head + n_blob, NULL);
    plug_free(plug, bytes);
}

/* ---- making ---- */

/* The first time that code is wanted and there is no library for it. */
static void warn_once(struct tier *tier)
{
    char text[sizeof tier->reason + 64];

    if (atomic_exchange(&tier->has_warned, true))
        return;
    snprintf(text, sizeof text, "kernels are interpreted, which is slow: %s", tier->reason);
    say(tier, FRIT_LOG_WARN, text);
}

frit_status tier_make(struct tier *tier, const struct tier_job *job, struct object **out,
                      frit_err *err)
{
    const struct plug *plug = tier->plug;
    frit_status status = tier_open(tier, err);
    frit_err why = {.struct_size = sizeof why};
    uint64_t begun;
    size_t n_blob;
    void *blob;

    *out = NULL;
    if (status) {
        warn_once(tier);
        return status;
    }
    begun = plug_begin(plug);
    status = llvm_compile(tier->llvm, job->module, &tier->cpu, job->level, &blob, &n_blob, &why);
    if (begun)
        plug_end(plug, begun, FRIT_STR("compile"));
    if (!status)
        status = object_load(blob, n_blob, out, &why);
    if (status)
        status = plug_fail(plug, err, status, "%s", why.text);
    else
        keep(tier, job, blob, n_blob);
    free(blob);
    if (!status)
        plug_counter(plug, FRIT_STR("kernels compiled"),
                     (double)(atomic_fetch_add(&tier->compiled, 1) + 1));
    return status;
}
