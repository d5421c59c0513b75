/* SPDX-License-Identifier: Apache-2.0 */
#include "jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/llvm/blob.h"
#include "ir/digest.h"

enum { SPACE_BYTES = 32 + MAKER_TEXT };

/* What is kept: a head, then the blob. */
struct head {
    char made_by[32]; /* the library's file name, for people */
};

static const char *const modes[JIT_MODES] = {"auto", "0", "1"};
static const char *const spaces[LLVM_ISAS][LLVM_LEVELS] = {
    [LLVM_BASE] = {[LLVM_QUICK] = "x86-64-v2 quick", [LLVM_GOOD] = "x86-64-v2 good"},
    [LLVM_AVX2] = {[LLVM_QUICK] = "x86-64-v3 quick", [LLVM_GOOD] = "x86-64-v3 good"},
    [LLVM_AVX512] = {[LLVM_QUICK] = "x86-64-v4 quick", [LLVM_GOOD] = "x86-64-v4 good"}};
static const enum llvm_isa isas[TILE_LEVELS] = {
    [TILE_BASE] = LLVM_BASE, [TILE_AVX2] = LLVM_AVX2, [TILE_AVX512] = LLVM_AVX512};

/* ---- options ---- */

static frit_status read_options(struct jit *jit, frit_err *err)
{
    const struct plug *plug = jit->plug;
    const frit_host_options *options = plug_table(plug->host, FRIT_STR(FRIT_HOST_OPTIONS),
                                                  FRIT_END_OF(frit_host_options, get_str));
    frit_str mode, path;
    frit_status status = options->get_str(plug->host->self, FRIT_STR("tier"), &mode, err);

    if (!status)
        status = options->get_str(plug->host->self, FRIT_STR("llvm"), &path, err);
    if (status)
        return status;
    if (path.len >= sizeof jit->path)
        return plug_fail(plug, err, FRIT_INVALID, "option.llvm is longer than %zu bytes",
                         sizeof jit->path - 1);
    memcpy(jit->path, path.ptr, path.len);
    for (uint32_t i = 0; i < JIT_MODES; i++)
        if (plug_is(mode, (frit_str){modes[i], strlen(modes[i])}))
            jit->mode = (enum jit_mode)i;
    return FRIT_OK;
}

static void refuse(struct jit *jit, frit_status status, const char *why)
{
    jit->refused = status;
    snprintf(jit->reason, sizeof jit->reason, "%.200s", why);
}

frit_status jit_init(struct jit *jit, const struct plug *plug, enum tile_level level, frit_err *err)
{
    frit_status status;

    *jit = (struct jit){.plug = plug};
    status = read_options(jit, err);
    if (status)
        return status;
    jit->keep =
        plug_table(plug->host, FRIT_STR(FRIT_HOST_CACHE), FRIT_END_OF(frit_host_cache, put));
    if (!llvm_cpu_find(&jit->cpu))
        refuse(jit, FRIT_UNSUPPORTED, "it is made for x86-64-v2 and better");
    else if (jit->cpu.isa > isas[level])
        jit->cpu.isa = isas[level];
    pthread_mutex_init(&jit->lock, NULL);
    pthread_mutex_init(&jit->opening, NULL);
    return FRIT_OK;
}

void jit_fini(struct jit *jit)
{
    llvm_close(jit->llvm);
    pthread_mutex_destroy(&jit->lock);
    pthread_mutex_destroy(&jit->opening);
}

/* ---- the library ---- */

static void say(const struct jit *jit, uint32_t level, const char *text)
{
    const struct plug *plug = jit->plug;

    if (FRIT_HAS(plug->core, frit_host_core, log) && plug->core->log)
        plug->core->log(plug->host->self, level, FRIT_STR("fusion"),
                        (frit_str){text, strlen(text)});
}

static const unsigned char maker_key[KIR_DIGEST] = "last";

static frit_str text_of(const char *text)
{
    return (frit_str){text, strlen(text)};
}

/* Inside the lock: the library is open. */
static void keep_maker(struct jit *jit)
{
    struct maker maker;

    maker_of(jit->llvm, jit->path, &maker);
    if (jit->keep && memcmp(&maker, &jit->maker, sizeof maker) != 0)
        (void)jit->keep->put(jit->plug->host->self, FRIT_STR("llvm"), maker_key, sizeof maker_key,
                             &maker, sizeof maker, NULL);
    jit->maker = maker;
}

/* Inside the lock: the library is not open. */
static void read_maker(struct jit *jit)
{
    const struct plug *plug = jit->plug;
    struct maker *kept = NULL;
    uint64_t n_bytes = 0;
    void *bytes = NULL;

    jit->has_read_maker = true;
    if (jit->keep->get(plug->host->self, FRIT_STR("llvm"), maker_key, sizeof maker_key, &bytes,
                       &n_bytes, NULL) ||
        !bytes)
        return;
    kept = bytes;
    if (n_bytes == sizeof *kept && memchr(kept->option, 0, sizeof kept->option) &&
        memchr(kept->path, 0, sizeof kept->path) && memchr(kept->text, 0, sizeof kept->text) &&
        maker_is_current(kept, jit->path))
        jit->maker = *kept;
    plug_free(plug, bytes);
}

/* The lock is free while the library is opened: launches need it to look for code. */
static void open_library(struct jit *jit)
{
    frit_err why = {.struct_size = sizeof why};
    uint64_t begun = plug_begin(jit->plug);
    struct llvm *llvm = NULL;
    frit_status status = llvm_open(jit->path[0] ? jit->path : NULL, &llvm, &why);

    pthread_mutex_lock(&jit->lock);
    jit->llvm = llvm;
    if (status)
        refuse(jit, status, why.text);
    else
        keep_maker(jit);
    pthread_mutex_unlock(&jit->lock);
    if (begun)
        plug_end(jit->plug, begun, FRIT_STR("open LLVM"));
}

frit_status jit_open(struct jit *jit, frit_err *err)
{
    frit_status status;
    bool closed;

    pthread_mutex_lock(&jit->opening);
    pthread_mutex_lock(&jit->lock);
    closed = !jit->llvm && !jit->refused;
    pthread_mutex_unlock(&jit->lock);
    if (closed)
        open_library(jit);
    pthread_mutex_lock(&jit->lock);
    status = jit->refused;
    pthread_mutex_unlock(&jit->lock);
    pthread_mutex_unlock(&jit->opening);
    return status ? plug_fail(jit->plug, err, status, "no machine code: %s", jit->reason) : FRIT_OK;
}

/* Inside the lock, once: the text is read without it. */
static void describe(struct jit *jit, bool by_option)
{
    if (by_option)
        snprintf(jit->compute, sizeof jit->compute, "interpreter, as its options say");
    else if (jit->refused)
        snprintf(jit->compute, sizeof jit->compute, "interpreter: %s", jit->reason);
    else
        snprintf(jit->compute, sizeof jit->compute, "LLVM %u", llvm_major(jit->llvm));
}

void jit_describe(struct jit *jit, frit_compute_info *out)
{
    const bool by_option = jit->mode == JIT_NEVER;

    out->is_slow = !by_option && jit_open(jit, NULL);
    pthread_mutex_lock(&jit->lock);
    if (!jit->compute[0])
        describe(jit, by_option);
    pthread_mutex_unlock(&jit->lock);
    out->text = (frit_str){jit->compute, strlen(jit->compute)};
}

/* ---- what is kept ---- */

/* False: there can be no such code. */
static bool space_of(struct jit *jit, enum llvm_level level, char space[SPACE_BYTES])
{
    bool known;

    pthread_mutex_lock(&jit->lock);
    if (!jit->llvm && !jit->has_read_maker)
        read_maker(jit);
    known = jit->maker.text[0] != '\0';
    snprintf(space, SPACE_BYTES, "%s %s", spaces[jit->cpu.isa][level], jit->maker.text);
    pthread_mutex_unlock(&jit->lock);
    return known;
}

/* NULL: not what `keep` wrote for this module. */
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

struct object *jit_find(struct jit *jit, const struct jit_job *job)
{
    const struct plug *plug = jit->plug;
    struct object *object;
    char text[160], space[SPACE_BYTES];
    uint64_t n_bytes = 0;
    void *bytes = NULL;

    if (!jit->keep || !space_of(jit, job->level, space) ||
        jit->keep->get(plug->host->self, text_of(space), job->digest, KIR_DIGEST, &bytes, &n_bytes,
                       NULL))
        return NULL;
    object = bytes ? load(job->module, bytes, n_bytes) : NULL;
    if (object) {
        plug_counter(plug, FRIT_STR("kernels from the cache"),
                     (double)(atomic_fetch_add(&jit->found, 1) + 1));
        snprintf(text, sizeof text, "%s: code of %.31s from the cache", job->module->name,
                 ((const struct head *)bytes)->made_by);
        say(jit, FRIT_LOG_DEBUG, text);
    }
    plug_free(plug, bytes);
    return object;
}

static void keep(struct jit *jit, const struct jit_job *job, const void *blob, size_t n_blob)
{
    const struct plug *plug = jit->plug;
    struct head head = {0};
    char *bytes, space[SPACE_BYTES];

    if (!jit->keep || !space_of(jit, job->level, space))
        return;
    bytes = plug_alloc(plug, sizeof head + n_blob, _Alignof(struct blob));
    if (!bytes)
        return;
    snprintf(head.made_by, sizeof head.made_by, "%s", llvm_version(jit->llvm));
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, blob, n_blob);
    (void)jit->keep->put(plug->host->self, text_of(space), job->digest, KIR_DIGEST, bytes,
                         sizeof head + n_blob, NULL);
    plug_free(plug, bytes);
}

/* ---- making ---- */

/* The first time that code is wanted and there is no library for it. */
static void warn_once(struct jit *jit)
{
    char text[sizeof jit->reason + 64];

    if (atomic_exchange(&jit->has_warned, true))
        return;
    snprintf(text, sizeof text, "kernels are interpreted, which is slow: %s", jit->reason);
    say(jit, FRIT_LOG_WARN, text);
}

/* After a failure: where LLVM itself is at an end, nothing more is tried with it. */
static void give_up(struct jit *jit)
{
    frit_err why = {.struct_size = sizeof why};

    if (!llvm_is_off(&why))
        return;
    pthread_mutex_lock(&jit->lock);
    if (!jit->refused)
        refuse(jit, FRIT_UNSUPPORTED, why.text);
    pthread_mutex_unlock(&jit->lock);
    warn_once(jit);
}

frit_status jit_compile(struct jit *jit, const struct jit_job *job, struct object **out,
                        frit_err *err)
{
    const struct plug *plug = jit->plug;
    frit_status status = jit_open(jit, err);
    frit_err why = {.struct_size = sizeof why};
    uint64_t begun;
    size_t n_blob;
    void *blob;

    *out = NULL;
    if (status) {
        warn_once(jit);
        return status;
    }
    begun = plug_begin(plug);
    status = llvm_compile(jit->llvm, job->module, &jit->cpu, job->level, &blob, &n_blob, &why);
    if (begun)
        plug_end(plug, begun, FRIT_STR("compile"));
    if (!status)
        status = object_load(blob, n_blob, out, &why);
    if (status)
        give_up(jit);
    if (status)
        status = plug_fail(plug, err, status, "%s", why.text);
    else
        keep(jit, job, blob, n_blob);
    free(blob);
    if (!status)
        plug_counter(plug, FRIT_STR("kernels compiled"),
                     (double)(atomic_fetch_add(&jit->compiled, 1) + 1));
    return status;
}
