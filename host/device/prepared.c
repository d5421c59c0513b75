/* SPDX-License-Identifier: Apache-2.0 */
#include "device/prepared.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"
#include "base/map.h"
#include "exec/job_queue.h"

enum {
    MAX_PREPARED = 256, /* remembered per program; then it begins anew */
    LOOK_EVERY = 16,    /* questions between two looks at the generation */
    LAUNCH_NS = 5000    /* of host and device together: its order of magnitude, for priorities */
};

/* What a compile compiles: equal ones run one after the other, as the later ones then find the code
 * where the driver keeps code of equal programs once. */
struct compile_key {
    const frit_program_table *table;
    uint64_t program; /* a hash of its state; else its address */
    uint32_t candidate;
    frit_variant variant;
};

/* A compile in the host's queue. */
struct compiling {
    struct job job; /* first */
    struct compiling *next;
    frit_device *device;
    struct prepared_cache *cache;
    struct prepared *prepared; /* the answer to be */
    struct compile_key what;
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
                           uint32_t candidate, const frit_variant *variant,
                           const frit_cancel *cancel, frit_err *err)
{
    const frit_program *program = cache->program;

    if (!FRIT_HAS(program->table, frit_program_table, compile) || !program->table->compile)
        return fail(err, FRIT_INTERNAL,
                    "%s: prepare wants a compile that the program does not have",
                    device->entry->name);
    atomic_fetch_add(&device->count.compiles, 1);
    return fail_from(err, program->table->compile(program->self, candidate, variant, cancel, err),
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
    if (p->variant.n_bytes > sizeof(p->variant.bytes))
        return fail(err, FRIT_INTERNAL, "%s: prepare gives a variant of %u bytes, at most %zu",
                    name, p->variant.n_bytes, sizeof(p->variant.bytes));
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
                        struct prepared *p, const frit_cancel *cancel)
{
    frit_err err = ERR_INIT;

    if (compile(device, cache, candidate, &p->variant, cancel, &err))
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

/* Inside the lock: NULL if there is none. */
static struct compiling *find_compile(const struct prepared_cache *cache,
                                      const struct prepare_query *asked)
{
    struct compiling *c = cache->compiling;

    while (c && (c->key_bytes != asked->key_bytes || memcmp(c->key, asked->key, c->key_bytes) != 0))
        c = c->next;
    return c;
}

/* What the ways round a program cost that is not compiled yet, as if all were launches. */
static uint64_t lost_ns(const struct prepare_query *asked)
{
    return (uint64_t)asked->n_ops * LAUNCH_NS;
}

/* Inside the lock, which is open while it waits.  Ends when nobody compiles it; or with the
 * compile, which did not begin and is the caller's. */
static struct compiling *await_compile(struct prepared_cache *cache,
                                       const struct prepare_query *asked)
{
    struct compiling *c;

    while ((c = find_compile(cache, asked)) && !job_queue_take(c->device->compiler, &c->job))
        pthread_cond_wait(&cache->compiled, &cache->lock);
    return c;
}

/* What is known of a query. */
struct recalled {
    struct prepared *prepared;   /* a new reference; NULL: nothing */
    bool busy;                   /* it is being compiled */
    bool look;                   /* it is time to look at the generation */
    struct compiling *waits_for; /* a compile that the caller is to do */
};

static struct recalled recall(struct prepared_cache *cache, const struct prepare_query *asked)
{
    struct recalled r = {0};
    struct compiling *c;

    pthread_mutex_lock(&cache->lock);
    r.look = ++cache->asked % LOOK_EVERY == 0;
    if (asked->wait)
        r.waits_for = await_compile(cache, asked);
    c = find_compile(cache, asked);
    r.busy = c && !asked->wait;
    if (r.busy)
        job_queue_raise(c->device->compiler, &c->job, lost_ns(asked));
    r.prepared = map_get(&cache->known, asked->key, asked->key_bytes);
    if (r.prepared)
        prepared_ref(r.prepared);
    pthread_mutex_unlock(&cache->lock);
    return r;
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
static void unlink_compile(struct compiling *c)
{
    struct compiling **at = &c->cache->compiling;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    pthread_cond_broadcast(&c->cache->compiled);
}

/* If nobody else has the program any more it goes with this. */
static void compile_destroy(struct compiling *c)
{
    struct plan_program *owner = c->cache->owner;

    prepared_unref(c->prepared);
    free(c);
    plan_program_unhold(owner);
}

static void end_compile(struct compiling *c, bool compiled)
{
    struct prepared_cache *cache = c->cache;

    if (c->job.joined)
        atomic_fetch_add(&c->device->count.compiles_joined, 1);
    pthread_mutex_lock(&cache->lock);
    unlink_compile(c);
    if (compiled && c->generation == cache->generation)
        remember(cache, c->key, c->key_bytes, c->prepared);
    pthread_mutex_unlock(&cache->lock);
    compile_destroy(c);
}

static void run_job(struct job *job)
{
    struct compiling *c = (struct compiling *)job;

    compile_now(c->device, c->cache, c->what.candidate, c->prepared, &job->cancel);
}

static void end_job(struct job *job)
{
    struct compiling *c = (struct compiling *)job;

    if (!job->begun)
        atomic_fetch_add(&c->device->count.compiles_cancelled, 1);
    end_compile(c, job->begun);
}

/* On the thread that waits for it.  Returns the answer, a new reference. */
static struct prepared *compile_here(struct compiling *c)
{
    struct prepared *p = c->prepared;

    prepared_ref(p);
    compile_now(c->device, c->cache, c->what.candidate, p, NULL);
    end_compile(c, true);
    return p;
}

static uint64_t identify(const frit_program *program)
{
    const frit_program_table *table = program->table;
    uint64_t n_bytes = 0, id = (uintptr_t)program->self;
    void *bytes;

    if (!FRIT_HAS(table, frit_program_table, to_state) || !table->to_state ||
        table->to_state(program->self, NULL, &n_bytes, NULL) || n_bytes == 0)
        return id;
    bytes = malloc(n_bytes);
    if (bytes && !table->to_state(program->self, bytes, &n_bytes, NULL))
        id = XXH3_64bits(bytes, n_bytes);
    free(bytes);
    return id;
}

/* NULL without memory. */
static struct compiling *compile_create(frit_device *device, struct prepared_cache *cache,
                                        const struct prepare_query *asked, struct prepared *p)
{
    struct compiling *c = calloc(1, sizeof(*c) + asked->key_bytes);

    if (!c)
        return NULL;
    c->device = device;
    c->cache = cache;
    c->what.table = cache->program->table;
    c->what.program = identify(cache->program);
    c->what.candidate = asked->candidate;
    c->what.variant.n_bytes = p->variant.n_bytes;
    memcpy(c->what.variant.bytes, p->variant.bytes, p->variant.n_bytes);
    c->key_bytes = asked->key_bytes;
    memcpy(c->key, asked->key, asked->key_bytes);
    c->job = (struct job){.run = run_job,
                          .end = end_job,
                          .owner = device,
                          .key = &c->what,
                          .key_bytes =
                              offsetof(struct compile_key, variant.bytes) + c->what.variant.n_bytes,
                          .class = JOB_AWAITED,
                          .priority = lost_ns(asked)};
    prepared_ref(p);
    c->prepared = p;
    if (cache->owner)
        plan_program_hold(cache->owner);
    return c;
}

/* Inside the lock: queues the compile and lists it; on failure neither. */
static frit_status queue_compile(struct compiling *c)
{
    struct prepared_cache *cache = c->cache;

    TRY(job_queue_add(c->device->compiler, &c->job, NULL, NULL));
    c->generation = cache->generation;
    c->next = cache->compiling;
    cache->compiling = c;
    return FRIT_OK;
}

/* Has it compiled; on failure nothing has begun. */
static frit_status compile_ahead(frit_device *device, struct prepared_cache *cache,
                                 const struct prepare_query *asked, struct prepared *p)
{
    struct compiling *c = compile_create(device, cache, asked, p);
    frit_status st = FRIT_OK;
    bool first;

    if (!c)
        return FRIT_NO_HOST_MEMORY;
    pthread_mutex_lock(&cache->lock);
    first = !find_compile(cache, asked) && !map_get(&cache->known, asked->key, asked->key_bytes);
    if (first)
        st = queue_compile(c);
    pthread_mutex_unlock(&cache->lock);
    if (!first || st)
        compile_destroy(c);
    return st;
}

void prepared_cache_abandon(struct prepared_cache *cache)
{
    struct compiling *taken = NULL;

    pthread_mutex_lock(&cache->lock);
    for (struct compiling **at = &cache->compiling, *c; (c = *at);) {
        if (!job_queue_cancel(c->device->compiler, &c->job)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->next = taken;
        taken = c;
    }
    pthread_mutex_unlock(&cache->lock);
    for (struct compiling *c = taken, *next; c; c = next) {
        next = c->next;
        atomic_fetch_add(&c->device->count.compiles_cancelled, 1);
        compile_destroy(c);
    }
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
    struct recalled known = recall(cache, asked);
    bool needs_compile;

    *out = known.prepared;
    if (known.waits_for) {
        *out = compile_here(known.waits_for);
    } else if (known.look && prepared_cache_outdated(cache)) {
        prepared_unref(*out);
        *out = NULL;
    }
    if (*out)
        return FRIT_OK;
    if (known.busy)
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
        compile_now(device, cache, asked->candidate, *out, NULL);
    pthread_mutex_lock(&cache->lock);
    remember(cache, asked->key, asked->key_bytes, *out);
    pthread_mutex_unlock(&cache->lock);
    return FRIT_OK;
}
