/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with one lock.  Code is in the table exactly as long as it has references, so code
 * that is found can be referenced. */
#include "fuse/codes.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "ir/digest.h"

enum { BUCKETS = 256, POLL_NS = 10 * 1000 * 1000 /* polling interval of `cancel` */ };

struct code {
    struct code *next;
    struct codes *codes;
    uint32_t refs;
    bool compiling;
    uint8_t digest[KIR_DIGEST];
    uint64_t n_insts;         /* of the module */
    struct kir_module module; /* empty once compiled */
    _Atomic(void *) compiled;
    char name[];
};

struct codes {
    const struct kernels_device *device;
    pthread_mutex_t lock;  /* guards the table, and refs and compiling of all code */
    pthread_cond_t change; /* signalled when a compilation ends */
    struct code *buckets[BUCKETS];
};

frit_status codes_create(const struct kernels_device *device, struct codes **out, frit_err *err)
{
    struct codes *codes = calloc(1, sizeof(*codes));

    *out = codes;
    if (!codes)
        return fail_memory(err, sizeof(*codes));
    codes->device = device;
    pthread_mutex_init(&codes->lock, NULL);
    pthread_cond_init(&codes->change, NULL);
    return FRIT_OK;
}

void codes_destroy(struct codes *codes)
{
    if (!codes)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++)
        assert(!codes->buckets[i]);
    pthread_cond_destroy(&codes->change);
    pthread_mutex_destroy(&codes->lock);
    free(codes);
}

/* ---- references ---- */

static struct code **bucket_of(struct codes *codes, const uint8_t *digest)
{
    return &codes->buckets[digest[0]];
}

static struct code *code_create(struct codes *codes, struct kir_module *module,
                                const uint8_t *digest)
{
    size_t length = strlen(module->name) + 1;
    struct code *code = calloc(1, sizeof(*code) + length);

    if (!code)
        return NULL;
    code->codes = codes;
    code->refs = 1;
    code->module = *module;
    *module = (struct kir_module){0};
    for (uint32_t i = 0; i < code->module.n_phases; i++)
        code->n_insts += code->module.phases[i].n;
    memcpy(code->digest, digest, KIR_DIGEST);
    memcpy(code->name, code->module.name, length);
    return code;
}

/* Returns a new reference, or NULL.  Requires the lock. */
static struct code *find(struct codes *codes, const uint8_t *digest)
{
    struct code *code = *bucket_of(codes, digest);

    while (code && memcmp(code->digest, digest, KIR_DIGEST) != 0)
        code = code->next;
    if (code)
        code->refs++;
    return code;
}

frit_status codes_take(struct codes *codes, struct kir_module *module, struct code **out,
                       frit_err *err)
{
    uint8_t digest[KIR_DIGEST];
    struct code *code;

    kir_digest(module, digest);
    pthread_mutex_lock(&codes->lock);
    code = find(codes, digest);
    if (!code) {
        code = code_create(codes, module, digest);
        if (code) {
            code->next = *bucket_of(codes, digest);
            *bucket_of(codes, digest) = code;
        }
    }
    pthread_mutex_unlock(&codes->lock);
    kir_fini(module);
    *out = code;
    return code ? FRIT_OK : fail_memory(err, sizeof(*code));
}

struct code *code_ref(struct code *code)
{
    pthread_mutex_lock(&code->codes->lock);
    code->refs++;
    pthread_mutex_unlock(&code->codes->lock);
    return code;
}

void code_unref(struct code *code)
{
    struct codes *codes = code->codes;
    struct code **at;
    void *compiled;

    pthread_mutex_lock(&codes->lock);
    if (--code->refs) {
        pthread_mutex_unlock(&codes->lock);
        return;
    }
    for (at = bucket_of(codes, code->digest); *at != code;)
        at = &(*at)->next;
    *at = code->next;
    pthread_mutex_unlock(&codes->lock);
    compiled = code_compiled(code);
    if (compiled)
        codes->device->release(codes->device->self, compiled);
    kir_fini(&code->module);
    free(code);
}

/* ---- compiling ---- */

static bool is_cancelled(const frit_cancel *cancel)
{
    return cancel && __atomic_load_n(&cancel->requested, __ATOMIC_RELAXED);
}

/* Requires the lock. */
static void wait_for_change(struct codes *codes, const frit_cancel *cancel)
{
    struct timespec until;

    if (!cancel) {
        pthread_cond_wait(&codes->change, &codes->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += POLL_NS;
    if (until.tv_nsec >= 1000 * 1000 * 1000) {
        until.tv_nsec -= 1000 * 1000 * 1000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&codes->change, &codes->lock, &until);
}

frit_status code_compile(struct code *code, const frit_cancel *cancel, frit_err *err)
{
    struct codes *codes = code->codes;
    const struct kernels_device *device = codes->device;
    void *compiled = NULL;
    frit_status st;

    pthread_mutex_lock(&codes->lock);
    while (code->compiling && !is_cancelled(cancel))
        wait_for_change(codes, cancel);
    if (code->compiling || code_compiled(code)) {
        st = code->compiling ? FRIT_CANCELLED : FRIT_OK;
        pthread_mutex_unlock(&codes->lock);
        return st ? fail(err, st, "%s: cancelled while another thread compiles it", code->name)
                  : FRIT_OK;
    }
    code->compiling = true;
    pthread_mutex_unlock(&codes->lock);

    st = device->compile(device->self, &code->module, code->digest, cancel, &compiled, err);
    assert(st || compiled);
    if (!st)
        kir_fini(&code->module);
    atomic_store_explicit(&code->compiled, st ? NULL : compiled, memory_order_release);

    pthread_mutex_lock(&codes->lock);
    code->compiling = false;
    pthread_cond_broadcast(&codes->change);
    pthread_mutex_unlock(&codes->lock);
    return st;
}

/* ---- reading ---- */

void *code_compiled(const struct code *code)
{
    return atomic_load_explicit(&code->compiled, memory_order_acquire);
}

uint32_t code_generation(const struct code *code)
{
    const struct kernels_device *device = code->codes->device;
    void *compiled = code_compiled(code);

    return compiled && device->generation ? device->generation(device->self, compiled) : 0;
}

uint64_t code_insts(const struct code *code)
{
    return code->n_insts;
}

const uint8_t *code_digest(const struct code *code)
{
    return code->digest;
}

const char *code_name(const struct code *code)
{
    return code->name;
}
