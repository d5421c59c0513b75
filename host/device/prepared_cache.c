/* SPDX-License-Identifier: Apache-2.0 */
#include "device/prepared_cache.h"

#include "device/device.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <pthread.h>
#include <xxhash.h>

#include "base/fail.h"
#include "base/map.h"
#include "device/cache.h"
#include "exec/job_queue.h"
#include "plan/program.h"

enum {
    LAUNCH_NS = 5000, /* of host and device together: its order of magnitude */
    MAX_CANDIDATES = 1024
};

/* An answer that is known. */
struct known {
    struct cache_entry entry; /* first */
    struct prepared_cache *cache;
    struct prepared *prepared;
    uint64_t serial; /* of the program, when the answer was found to be up to date */
    size_t key_bytes;
    unsigned char key[];
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
    struct cache_entry entry; /* first */
    struct job job;
    struct prepared_cache *cache;
    struct compiling *next;    /* of those that were taken back */
    struct prepared *prepared; /* the answer to be */
    uint64_t serial;           /* of the program before that */
    struct compile_key what;
    size_t key_bytes;
    unsigned char key[];
};

struct prepared_cache {
    frit_device *device;
    struct program *program; /* not counted */
    frit_program_info info;
    struct retired_entry retired;
    pthread_mutex_t lock;        /* of the rest */
    bool abandoned;              /* no plan uses the program any more */
    pthread_cond_t compiled;     /* signalled when a compile ends */
    struct map known;            /* key -> struct known */
    struct cache_entry *dropped; /* of them */
    struct map compiling;        /* key -> struct compiling */
};

static frit_status describe(const frit_program *program, frit_program_info *info, frit_err *err)
{
    *info = (frit_program_info){.struct_size = sizeof(*info)};
    TRY(fail_from(err, program->table->describe(program->self, info, err), "describe"));
    if (info->n_candidates > MAX_CANDIDATES ||
        (info->candidates && info->n_candidates > 1 &&
         info->candidate_stride < FRIT_END_OF(frit_candidate, identity)))
        return fail(err, FRIT_INTERNAL,
                    "describe lists %u candidates of %u bytes each; %d of at least %u are possible",
                    info->n_candidates, info->candidate_stride, MAX_CANDIDATES,
                    FRIT_END_OF(frit_candidate, identity));
    return FRIT_OK;
}

frit_status prepared_cache_create(frit_device *device, struct program *program,
                                  struct prepared_cache **out, frit_err *err)
{
    struct prepared_cache *cache;
    frit_program_info info;

    *out = NULL;
    TRY(describe(&program->program, &info, err));
    cache = calloc(1, sizeof(*cache));
    if (!cache)
        return fail_memory(err, sizeof(*cache));
    cache->info = info;
    cache->device = device;
    cache->program = program;
    if (!info.n_candidates || !info.candidates)
        cache->info.n_candidates = 1;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->compiled, NULL);
    *out = cache;
    return FRIT_OK;
}

uint32_t prepared_cache_candidates(const struct prepared_cache *cache)
{
    return cache->info.n_candidates;
}

const frit_candidate *prepared_cache_candidate(const struct prepared_cache *cache, uint32_t index)
{
    static const frit_candidate only;

    if (!cache->info.candidates)
        return &only;
    return (const frit_candidate *)(const void *)((const char *)cache->info.candidates +
                                                  (size_t)index * cache->info.candidate_stride);
}

const uint64_t *prepared_cache_serial(const struct prepared_cache *cache)
{
    return cache->info.serial;
}

static uint64_t serial_of(const struct prepared_cache *cache)
{
    return cache->info.serial ? __atomic_load_n(cache->info.serial, __ATOMIC_ACQUIRE) : 0;
}

/* ---- locks ---- */

static void known_release(struct cache_entry *entry)
{
    struct known *known = (struct known *)entry;

    prepared_unref(known->prepared);
    free(known);
}

/* For changes: the device's cache, then the program's. */
static void lock(struct prepared_cache *cache)
{
    cache_lock(&cache->device->cache);
    pthread_mutex_lock(&cache->lock);
}

/* Ends what was dropped meanwhile, too. */
static void unlock(struct prepared_cache *cache)
{
    struct cache_entry *dropped = cache->dropped;

    cache->dropped = NULL;
    pthread_mutex_unlock(&cache->lock);
    cache_unlock(&cache->device->cache);
    while (dropped) {
        struct cache_entry *next = dropped->next;

        known_release(dropped);
        dropped = next;
    }
}

/* ---- known answers ---- */

static bool known_evict(struct cache_entry *entry)
{
    const struct known *known = (struct known *)entry;

    pthread_mutex_lock(&known->cache->lock);
    map_remove(&known->cache->known, known->key, known->key_bytes);
    pthread_mutex_unlock(&known->cache->lock);
    return true;
}

static const struct cache_class known_class = {known_evict, known_release};

/* Inside the locks, which end it. */
static void known_drop(void *value)
{
    struct known *known = value;
    struct prepared_cache *cache = known->cache;

    cache_remove(&cache->device->cache, &known->entry);
    known->entry.next = cache->dropped;
    cache->dropped = &known->entry;
}

/* Inside the locks. */
static void forget_all(struct prepared_cache *cache)
{
    map_fini(&cache->known, known_drop);
}

/* Inside the locks.  If this fails, the next launch calls prepare again. */
static void remember(struct prepared_cache *cache, const void *key, size_t key_bytes,
                     struct prepared *p, uint64_t serial)
{
    size_t bytes = sizeof(struct known) + key_bytes;
    struct known *known;

    if (p->passing || cache->abandoned || map_get(&cache->known, key, key_bytes))
        return;
    known = malloc(bytes);
    if (!known)
        return;
    *known =
        (struct known){.cache = cache, .prepared = p, .serial = serial, .key_bytes = key_bytes};
    memcpy(known->key, key, key_bytes);
    if (!map_add(&cache->known, key, key_bytes, known)) {
        free(known);
        return;
    }
    prepared_ref(p);
    cache_add(&cache->device->cache, &known->entry, &known_class,
              bytes + sizeof(*p) + key_bytes + sizeof(struct map_entry));
}

void prepared_cache_destroy(struct prepared_cache *cache)
{
    if (!cache)
        return;
    assert(!cache->compiling.count);
    lock(cache);
    forget_all(cache);
    unlock(cache);
    map_fini(&cache->compiling, NULL);
    pthread_cond_destroy(&cache->compiled);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static void end(struct retired_entry *entry)
{
    struct prepared_cache *cache =
        (struct prepared_cache *)(void *)((char *)entry - offsetof(struct prepared_cache, retired));
    struct program *program = cache->program;

    prepared_cache_destroy(cache);
    program_destroy(program);
}

void prepared_cache_retire(struct prepared_cache *cache)
{
    cache->retired.destroy = end;
    retired_add(cache->device, &cache->retired);
}

/* ---- compiles ---- */

static struct compiling *compiling_of(struct job *job)
{
    return (struct compiling *)(void *)((char *)job - offsetof(struct compiling, job));
}

static frit_device *device_of(const struct compiling *c)
{
    return c->cache->device;
}

/* If nobody else has the program any more it goes with this. */
static void compile_destroy(struct compiling *c)
{
    struct program *program = c->cache->program;

    prepared_unref(c->prepared);
    free(c);
    program_unhold(program);
}

static void compile_release(struct cache_entry *entry)
{
    struct compiling *c = (struct compiling *)entry;

    atomic_fetch_add(&device_of(c)->count.compiles_cancelled, 1);
    compile_destroy(c);
}

/* Inside the program's lock. */
static void unlist(struct compiling *c)
{
    map_remove(&c->cache->compiling, c->key, c->key_bytes);
    pthread_cond_broadcast(&c->cache->compiled);
}

/* What did not begin is cancelled. */
static bool compile_evict(struct cache_entry *entry)
{
    struct compiling *c = (struct compiling *)entry;
    struct prepared_cache *cache = c->cache;
    bool taken;

    pthread_mutex_lock(&cache->lock);
    taken = job_queue_take(device_of(c)->compiler, &c->job);
    if (taken)
        unlist(c);
    pthread_mutex_unlock(&cache->lock);
    return taken;
}

static const struct cache_class compile_class = {compile_evict, compile_release};

static void end_compile(struct compiling *c, bool compiled)
{
    struct prepared_cache *cache = c->cache;

    if (c->job.joined)
        atomic_fetch_add(&device_of(c)->count.compiles_joined, 1);
    lock(cache);
    unlist(c);
    cache_remove(&cache->device->cache, &c->entry);
    if (compiled)
        remember(cache, c->key, c->key_bytes, c->prepared, c->serial);
    unlock(cache);
    compile_destroy(c);
}

static void run_job(struct job *job)
{
    struct compiling *c = compiling_of(job);

    prepared_compile(c->prepared, &job->cancel);
}

static void end_job(struct job *job)
{
    struct compiling *c = compiling_of(job);

    if (!job->begun)
        atomic_fetch_add(&device_of(c)->count.compiles_cancelled, 1);
    end_compile(c, job->begun);
}

/* On the thread that waits for it.  Returns the result, a new reference. */
static struct prepared *compile_here(struct compiling *c)
{
    struct prepared *p = c->prepared;

    prepared_ref(p);
    prepared_compile(p, NULL);
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

/* The time lost by a launch without the program: its ops run one by one meanwhile. */
static uint64_t lost_ns(const struct prepare_query *query)
{
    return (uint64_t)query->n_ops * LAUNCH_NS;
}

/* What takes longest to compile begins first, or the threads would wait for it in the end; of equal
 * ones, what most is lost without. */
static uint64_t priority_of(const struct prepare_query *query, const struct prepared *p)
{
    return p->spec.compile_ns + lost_ns(query);
}

/* NULL if out of memory. */
static struct compiling *compile_create(struct prepared_cache *cache,
                                        const struct prepare_query *query, struct prepared *p,
                                        uint64_t serial)
{
    struct compiling *c = calloc(1, sizeof(*c) + query->key_bytes);

    if (!c)
        return NULL;
    c->cache = cache;
    c->serial = serial;
    c->what.table = cache->program->program.table;
    c->what.program = identify(&cache->program->program);
    c->what.candidate = query->candidate;
    c->what.variant.n_bytes = p->variant.n_bytes;
    memcpy(c->what.variant.bytes, p->variant.bytes, p->variant.n_bytes);
    c->key_bytes = query->key_bytes;
    memcpy(c->key, query->key, query->key_bytes);
    c->job = (struct job){.run = run_job,
                          .end = end_job,
                          .owner = device_of(c),
                          .key = &c->what,
                          .key_bytes =
                              offsetof(struct compile_key, variant.bytes) + c->what.variant.n_bytes,
                          .class = JOB_AWAITED,
                          .priority = priority_of(query, p)};
    prepared_ref(p);
    c->prepared = p;
    program_hold(cache->program);
    return c;
}

/* Inside the locks: lists and queues the compile; on failure neither. */
static frit_status queue_compile(struct compiling *c)
{
    struct prepared_cache *cache = c->cache;

    if (!map_add(&cache->compiling, c->key, c->key_bytes, c))
        return FRIT_NO_HOST_MEMORY;
    if (job_queue_add(device_of(c)->compiler, &c->job, NULL, NULL)) {
        map_remove(&cache->compiling, c->key, c->key_bytes);
        return FRIT_NO_HOST_MEMORY;
    }
    cache_add(&cache->device->cache, &c->entry, &compile_class,
              sizeof(*c) + sizeof(*c->prepared) + 2 * c->key_bytes + sizeof(struct map_entry));
    return FRIT_OK;
}

/* Has it compiled; on failure nothing has begun. */
static frit_status compile_ahead(struct prepared_cache *cache, const struct prepare_query *query,
                                 struct prepared *p, uint64_t serial)
{
    struct compiling *c = compile_create(cache, query, p, serial);
    frit_status st = FRIT_OK;
    bool first;

    if (!c)
        return FRIT_NO_HOST_MEMORY;
    lock(cache);
    first = !map_get(&cache->compiling, query->key, query->key_bytes) &&
            !map_get(&cache->known, query->key, query->key_bytes);
    if (first)
        st = queue_compile(c);
    unlock(cache);
    if (!first || st)
        compile_destroy(c);
    return st;
}

/* Inside the locks: the first compile that was taken back, the others after it. */
static struct compiling *cancel_compiles(struct prepared_cache *cache)
{
    struct compiling *taken = NULL;

    for (size_t i = 0; i < cache->compiling.capacity; i++) {
        struct compiling *c = cache->compiling.entries[i].value;

        if (!c || !job_queue_cancel(device_of(c)->compiler, &c->job))
            continue;
        c->next = taken;
        taken = c;
    }
    for (struct compiling *c = taken; c; c = c->next) {
        unlist(c);
        cache_remove(&cache->device->cache, &c->entry);
    }
    return taken;
}

void prepared_cache_abandon(struct prepared_cache *cache)
{
    struct compiling *taken;

    lock(cache);
    cache->abandoned = true;
    taken = cancel_compiles(cache);
    forget_all(cache);
    unlock(cache);
    for (struct compiling *c = taken, *next; c; c = next) {
        next = c->next;
        compile_release(&c->entry);
    }
}

/* ---- getting ---- */

/* What the cache has for a query. */
struct recalled {
    struct prepared *prepared;  /* a new reference; NULL: nothing */
    bool busy;                  /* it is being compiled */
    bool look;                  /* the program's serial has grown since it was up to date */
    struct compiling *compiles; /* taken from the queue; the caller compiles it */
};

/* Inside the lock, which is released while it waits.  Waits until the running compile ends and
 * returns NULL, or takes a compile that did not begin from the queue and returns it. */
static struct compiling *await_compile(struct prepared_cache *cache,
                                       const struct prepare_query *query)
{
    struct compiling *c;

    while ((c = map_get(&cache->compiling, query->key, query->key_bytes)) &&
           !job_queue_take(device_of(c)->compiler, &c->job)) {
        job_queue_hurry(device_of(c)->compiler, &c->job);
        pthread_cond_wait(&cache->compiled, &cache->lock);
    }
    return c;
}

/* One more launch runs without the program. */
static void want_compile(struct compiling *c, const struct prepare_query *query)
{
    cache_use(&c->entry);
    job_queue_raise(device_of(c)->compiler, &c->job, lost_ns(query));
}

static struct recalled recall(struct prepared_cache *cache, const struct prepare_query *query,
                              uint64_t serial)
{
    struct recalled r = {0};
    struct known *known;
    struct compiling *c;

    pthread_mutex_lock(&cache->lock);
    if (query->wait) {
        r.compiles = await_compile(cache, query);
    } else if ((c = map_get(&cache->compiling, query->key, query->key_bytes))) {
        r.busy = true;
        if (!query->peek)
            want_compile(c, query);
    }
    known = map_get(&cache->known, query->key, query->key_bytes);
    if (known) {
        cache_use(&known->entry);
        prepared_ref(known->prepared);
        r.prepared = known->prepared;
        r.look = known->serial != serial;
    }
    pthread_mutex_unlock(&cache->lock);
    return r;
}

/* Calls prepare.  `*out` has FRIT_BUSY if the result is being compiled in the background. */
static frit_status prepare_new(struct prepared_cache *cache, const struct prepare_query *query,
                               uint64_t serial, struct prepared **out, frit_err *err)
{
    bool needs_compile;

    *out = prepared_create(cache->device, cache->program, query, &needs_compile);
    if (!*out)
        return fail_memory(err, sizeof(**out));
    if (serial_of(cache) != serial) /* better code may have come meanwhile: check again */
        (*out)->generation = 0;
    if (needs_compile && !query->wait && cache->device->compiler &&
        (query->peek || !compile_ahead(cache, query, *out, serial))) {
        prepared_unref(*out);
        return prepared_busy(out, err);
    }
    if (needs_compile)
        prepared_compile(*out, NULL);
    lock(cache);
    remember(cache, query->key, query->key_bytes, *out, serial);
    unlock(cache);
    return FRIT_OK;
}

/* Whether a result of an older serial is still up to date; if not it is removed. */
static bool still_holds(struct prepared_cache *cache, const struct prepare_query *query,
                        const struct prepared *p, uint64_t serial)
{
    bool holds = !prepared_is_outdated(p);
    struct known *known;

    lock(cache);
    known = map_get(&cache->known, query->key, query->key_bytes);
    if (known && known->prepared == p && holds)
        known->serial = serial;
    else if (known && known->prepared == p)
        known_drop(map_remove(&cache->known, query->key, query->key_bytes));
    unlock(cache);
    return holds;
}

frit_status prepared_cache_get(struct prepared_cache *cache, const struct prepare_query *query,
                               struct prepared **out, frit_err *err)
{
    uint64_t serial = serial_of(cache);
    struct recalled known = recall(cache, query, serial);

    *out = known.prepared;
    if (known.compiles) {
        *out = compile_here(known.compiles);
    } else if (known.look && !still_holds(cache, query, *out, serial)) {
        prepared_unref(*out);
        *out = NULL;
    }
    if (*out)
        return FRIT_OK;
    return known.busy ? prepared_busy(out, err) : prepare_new(cache, query, serial, out, err);
}
