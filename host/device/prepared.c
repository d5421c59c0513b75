/* SPDX-License-Identifier: Apache-2.0 */
#include "device/prepared.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "exec/worker.h"

enum {
    MAX_PREPARED = 256, /* remembered per program; then it begins anew */
    LOOK_EVERY = 16     /* questions between two looks at the generation */
};

/* A compile that was handed to the device's thread. */
struct compiling {
    struct compiling *next;
    frit_device *device;
    struct prepared_cache *cache;
    struct prepared *prepared; /* the answer to be */
    uint32_t candidate;
    uint32_t generation; /* when it was asked */
    size_t key_bytes;
    unsigned char key[];
};

struct prepared_cache {
    const frit_program *program;
    struct plan_program *owner; /* not counted; NULL: the device */
    uint32_t n_candidates;
    pthread_mutex_t lock;    /* of the rest */
    pthread_cond_t compiled; /* something is */
    struct compiling *compiling;
    struct map known; /* key -> struct prepared */
    uint32_t generation;
    uint32_t asked;
};

void prepared_ref(struct prepared *prepared)
{
    atomic_fetch_add_explicit(&prepared->refs, 1, memory_order_relaxed);
}

void prepared_unref(struct prepared *prepared)
{
    if (prepared && atomic_fetch_sub_explicit(&prepared->refs, 1, memory_order_acq_rel) == 1)
        free(prepared);
}

static void drop_prepared(void *value)
{
    prepared_unref(value);
}

static frit_status describe(const frit_program *program, frit_program_info *info, frit_err *err)
{
    *info = (frit_program_info){.struct_size = sizeof(*info)};
    return fail_from(err, program->table->describe(program->self, info, err), "describe");
}

frit_status prepared_cache_create(const frit_program *program, struct plan_program *owner,
                                  struct prepared_cache **out, frit_err *err)
{
    struct prepared_cache *cache;
    frit_program_info info;

    *out = NULL;
    TRY(describe(program, &info, err));
    cache = calloc(1, sizeof(*cache));
    if (!cache)
        return fail_memory(err, sizeof(*cache));
    cache->program = program;
    cache->owner = owner;
    cache->n_candidates = info.n_candidates ? info.n_candidates : 1;
    cache->generation = info.generation;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->compiled, NULL);
    *out = cache;
    return FRIT_OK;
}

void prepared_cache_destroy(struct prepared_cache *cache)
{
    if (!cache)
        return;
    assert(!cache->compiling);
    map_fini(&cache->known, drop_prepared);
    pthread_cond_destroy(&cache->compiled);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

uint32_t prepared_cache_candidates(const struct prepared_cache *cache)
{
    return cache->n_candidates;
}

/* ---- asking ---- */

static frit_status compile(frit_device *device, const struct prepared_cache *cache,
                           uint32_t candidate, const frit_variant *variant, frit_err *err)
{
    const frit_program *program = cache->program;

    if (!FRIT_HAS(program->table, frit_program_table, compile) || !program->table->compile)
        return fail(err, FRIT_INTERNAL,
                    "%s: prepare wants a compile that the program does not have",
                    device->entry->name);
    atomic_fetch_add(&device->count.compiles, 1);
    return fail_from(err, program->table->compile(program->self, candidate, variant, NULL, err),
                     "compile");
}

/* Strides that the host can give a tensor of these dims: not negative, and the elements within what
 * can be addressed. */
static frit_status check_strides(const frit_device *device, const frit_arg_sig *arg,
                                 const int64_t *strides, const char *what, frit_err *err)
{
    int64_t high = 0, reach;

    for (uint32_t d = 0; d < arg->rank; d++) {
        if (strides[d] < 0)
            return fail(err, FRIT_INTERNAL, "%s: prepare gives %s a negative stride",
                        device->entry->name, what);
        if (arg->dims[d] < 2)
            continue;
        if (__builtin_mul_overflow(strides[d], arg->dims[d] - 1, &reach) ||
            __builtin_add_overflow(high, reach, &high) || high > INT64_MAX / 64)
            return fail(err, FRIT_INTERNAL, "%s: prepare gives %s strides beyond any memory",
                        device->entry->name, what);
    }
    return FRIT_OK;
}

static frit_status check_output(const frit_device *device, const frit_arg_sig *arg, uint32_t index,
                                const frit_output_spec *out, frit_err *err)
{
    uint64_t have = device->info->align_bytes ? device->info->align_bytes : 64;
    char what[32];

    if (out->align > have)
        return fail(err, FRIT_INTERNAL,
                    "%s: output %u asks for alignment %llu, the device declared "
                    "%llu",
                    device->entry->name, index, (unsigned long long)out->align,
                    (unsigned long long)have);
    if (!(out->flags & 1))
        return FRIT_OK;
    snprintf(what, sizeof(what), "output %u", index);
    return check_strides(device, arg, out->strides, what, err);
}

/* A program is not trusted: what it asks for must be something the host can give. */
static frit_status check(const frit_device *device, const frit_signature *sig,
                         const struct prepared *p, frit_err *err)
{
    const char *name = device->entry->name;
    const frit_launch_spec *spec = &p->spec;
    uint64_t have = device->info->align_bytes ? device->info->align_bytes : 64;

    if (p->status == FRIT_PREPARE_RELAYOUT) {
        if (spec->wanted_arg >= sig->n_in || sig->args[spec->wanted_arg].dtype == FRIT_NO_DTYPE)
            return fail(err, FRIT_INTERNAL, "%s: prepare wants a relayout of no operand", name);
        return check_strides(device, &sig->args[spec->wanted_arg], spec->wanted_strides,
                             "an operand", err);
    }
    if (p->status > 0)
        return fail(err, FRIT_INTERNAL, "%s: prepare answered %d, which means nothing", name,
                    p->status);
    if (spec->n_derived > FRIT_MAX_DERIVED)
        return fail(err, FRIT_INTERNAL, "%s: prepare asks for %u derived memories, at most %d",
                    name, spec->n_derived, FRIT_MAX_DERIVED);
    if (spec->workspace_align > have)
        return fail(err, FRIT_INTERNAL,
                    "%s: a workspace asks for alignment %llu, the device declared %llu", name,
                    (unsigned long long)spec->workspace_align, (unsigned long long)have);
    for (uint32_t i = 0; i < sig->n_out && i < FRIT_MAX_OUTPUTS; i++) {
        if (sig->args[sig->n_in + i].dtype != FRIT_NO_DTYPE)
            TRY(check_output(device, &sig->args[sig->n_in + i], i, &spec->outputs[i], err));
    }
    return FRIT_OK;
}

static bool may_pass(frit_status status)
{
    return status == FRIT_NO_HOST_MEMORY || status == FRIT_NO_DEVICE_MEMORY ||
           status == FRIT_BUSY || status == FRIT_TIMEOUT || status == FRIT_CANCELLED;
}

/* Keeps why not. */
static void refuse(struct prepared *p, const frit_err *err)
{
    p->status = err->status;
    snprintf(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, err->text);
}

/* Asks; *compile: the answer holds once it is compiled. */
static struct prepared *prepared_create(frit_device *device, const struct prepared_cache *cache,
                                        const struct prepare_query *asked, bool *compile)
{
    const frit_program *program = cache->program;
    struct prepared *p = calloc(1, sizeof(*p));
    frit_err err = ERR_INIT;

    *compile = false;
    if (!p)
        return NULL;
    atomic_init(&p->refs, 1);
    p->spec.struct_size = sizeof(p->spec);
    p->variant.struct_size = sizeof(p->variant);
    p->status = program->table->prepare(program->self, asked->candidate, asked->signature, &p->spec,
                                        &p->variant, &err);
    p->passing = may_pass(p->status) || p->status == FRIT_INTERNAL;
    fail_from(&err, p->status, "prepare");
    if (p->status == FRIT_PREPARE_NEEDS_COMPILE) {
        *compile = true;
        p->status = FRIT_OK;
    }
    if (p->status < 0 || check(device, asked->signature, p, &err)) {
        refuse(p, &err);
        *compile = false;
    }
    return p;
}

static void compile_now(frit_device *device, const struct prepared_cache *cache, uint32_t candidate,
                        struct prepared *p)
{
    frit_err err = ERR_INIT;

    if (compile(device, cache, candidate, &p->variant, &err))
        refuse(p, &err);
    p->passing = may_pass(p->status);
}

/* ---- remembering ---- */

/* Inside the lock. */
static void remember(struct prepared_cache *cache, const void *key, size_t key_bytes,
                     struct prepared *p)
{
    if (p->passing)
        return;
    if (cache->known.count >= MAX_PREPARED)
        map_fini(&cache->known, drop_prepared);
    if (map_get(&cache->known, key, key_bytes))
        return;
    prepared_ref(p);
    if (!map_add(&cache->known, key, key_bytes, p))
        prepared_unref(p);
}

/* Inside the lock. */
static bool is_compiling(const struct prepared_cache *cache, const struct prepare_query *asked)
{
    for (const struct compiling *c = cache->compiling; c; c = c->next) {
        if (c->key_bytes == asked->key_bytes && memcmp(c->key, asked->key, c->key_bytes) == 0)
            return true;
    }
    return false;
}

/* A new reference to what is known; *busy: it is being compiled; *look: it is time to look at the
 * generation. */
static struct prepared *recall(struct prepared_cache *cache, const struct prepare_query *asked,
                               bool *busy, bool *look)
{
    struct prepared *p;

    pthread_mutex_lock(&cache->lock);
    *look = ++cache->asked % LOOK_EVERY == 0;
    while ((*busy = is_compiling(cache, asked)) && asked->wait)
        pthread_cond_wait(&cache->compiled, &cache->lock);
    p = map_get(&cache->known, asked->key, asked->key_bytes);
    if (p)
        prepared_ref(p);
    pthread_mutex_unlock(&cache->lock);
    return p;
}

bool prepared_cache_outdated(struct prepared_cache *cache)
{
    frit_program_info info;
    bool grown;

    if (describe(cache->program, &info, NULL))
        return false;
    pthread_mutex_lock(&cache->lock);
    grown = info.generation > cache->generation;
    if (grown) {
        cache->generation = info.generation;
        map_fini(&cache->known, drop_prepared);
    }
    pthread_mutex_unlock(&cache->lock);
    return grown;
}

/* ---- compiling ahead ---- */

/* Inside the lock. */
static void unlink_job(struct compiling *job)
{
    struct compiling **at = &job->cache->compiling;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    pthread_cond_broadcast(&job->cache->compiled);
}

/* If nobody else has the program any more it goes with this. */
static void end_job(struct compiling *job)
{
    struct plan_program *owner = job->cache->owner;

    prepared_unref(job->prepared);
    free(job);
    plan_program_unref(owner);
}

static void run_job(void *ctx)
{
    struct compiling *job = ctx;
    struct prepared_cache *cache = job->cache;

    compile_now(job->device, cache, job->candidate, job->prepared);
    pthread_mutex_lock(&cache->lock);
    unlink_job(job);
    if (job->generation == cache->generation)
        remember(cache, job->key, job->key_bytes, job->prepared);
    pthread_mutex_unlock(&cache->lock);
    end_job(job);
}

/* Lists the job; false: another thread has begun the same. */
static bool link_job(struct compiling *job, const struct prepare_query *asked)
{
    struct prepared_cache *cache = job->cache;
    bool first;

    pthread_mutex_lock(&cache->lock);
    first = !is_compiling(cache, asked) && !map_get(&cache->known, asked->key, asked->key_bytes);
    if (first) {
        job->generation = cache->generation;
        job->next = cache->compiling;
        cache->compiling = job;
    }
    pthread_mutex_unlock(&cache->lock);
    return first;
}

/* Has it compiled; on failure nothing has begun. */
static frit_status compile_ahead(frit_device *device, struct prepared_cache *cache,
                                 const struct prepare_query *asked, struct prepared *p)
{
    struct compiling *job = malloc(sizeof(*job) + asked->key_bytes);

    if (!job)
        return FRIT_NO_HOST_MEMORY;
    *job = (struct compiling){.device = device,
                              .cache = cache,
                              .prepared = p,
                              .candidate = asked->candidate,
                              .key_bytes = asked->key_bytes};
    memcpy(job->key, asked->key, asked->key_bytes);
    if (!link_job(job, asked)) {
        free(job);
        return FRIT_OK;
    }
    if (cache->owner)
        plan_program_ref(cache->owner);
    prepared_ref(p);
    if (!worker_spawn(device->compiler, run_job, job, NULL))
        return FRIT_OK;
    pthread_mutex_lock(&cache->lock);
    unlink_job(job);
    pthread_mutex_unlock(&cache->lock);
    end_job(job);
    return FRIT_NO_HOST_MEMORY;
}

static frit_status not_yet(struct prepared **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    **out = (struct prepared){
        .refs = 1, .status = FRIT_BUSY, .passing = true, .text = "it is being compiled"};
    return FRIT_OK;
}

frit_status prepared_cache_get(frit_device *device, struct prepared_cache *cache,
                               const struct prepare_query *asked, struct prepared **out,
                               frit_err *err)
{
    bool busy, look, needs_compile;

    *out = recall(cache, asked, &busy, &look);
    if (look && prepared_cache_outdated(cache)) {
        prepared_unref(*out);
        *out = NULL;
    }
    if (*out)
        return FRIT_OK;
    if (busy)
        return not_yet(out, err);
    *out = prepared_create(device, cache, asked, &needs_compile);
    if (!*out)
        return fail_memory(err, sizeof(**out));
    if (needs_compile && !asked->wait && device->compiler &&
        !compile_ahead(device, cache, asked, *out)) {
        prepared_unref(*out);
        return not_yet(out, err);
    }
    if (needs_compile)
        compile_now(device, cache, asked->candidate, *out);
    pthread_mutex_lock(&cache->lock);
    remember(cache, asked->key, asked->key_bytes, *out);
    pthread_mutex_unlock(&cache->lock);
    return FRIT_OK;
}
