/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Compiled code by variant.  No lock is held while the driver compiles, so that prepare and
 * launches never wait for it; of two threads that compile the same the first to come back is kept.
 */
#include "kit/code.h"

#include <string.h>

#include "kit/inside.h"

struct code {
    struct code *next;
    void *made; /* the driver's */
    uint32_t n_bytes;
    uint8_t bytes[]; /* of the variant */
};

void codes_init(struct codes *codes)
{
    pthread_mutex_init(&codes->lock, NULL);
    codes->first = NULL;
}

void codes_fini(const struct kit_program *program, struct codes *codes)
{
    const struct kit_instance *instance = program->device->instance;

    for (struct code *code = codes->first, *next; code; code = next) {
        next = code->next;
        instance->driver->compiler->release(program, code->made);
        plug_free(&instance->plug, code);
    }
    pthread_mutex_destroy(&codes->lock);
}

/* Inside the lock. */
static void *find(const struct codes *codes, const frit_variant *variant)
{
    for (const struct code *code = codes->first; code; code = code->next)
        if (code->n_bytes == variant->n_bytes &&
            memcmp(code->bytes, variant->bytes, code->n_bytes) == 0)
            return code->made;
    return NULL;
}

void *codes_find(struct codes *codes, const frit_variant *variant)
{
    void *made;

    pthread_mutex_lock(&codes->lock);
    made = find(codes, variant);
    pthread_mutex_unlock(&codes->lock);
    return made;
}

/* False: another thread was first. */
static bool add(struct codes *codes, struct code *code, const frit_variant *variant)
{
    bool first;

    pthread_mutex_lock(&codes->lock);
    first = !find(codes, variant);
    if (first) {
        code->next = codes->first;
        codes->first = code;
    }
    pthread_mutex_unlock(&codes->lock);
    return first;
}

frit_status codes_compile(const struct kit_program *program, struct codes *codes,
                          const frit_variant *variant, const frit_cancel *cancel, frit_err *err)
{
    const struct kit_instance *instance = program->device->instance;
    const struct kit_compiler *compiler = instance->driver->compiler;
    struct code *code;
    frit_status status;

    if (codes_find(codes, variant))
        return FRIT_OK;
    code = plug_alloc(&instance->plug, sizeof *code + variant->n_bytes, _Alignof(struct code));
    if (!code)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for compiled code");
    *code = (struct code){.n_bytes = variant->n_bytes};
    memcpy(code->bytes, variant->bytes, variant->n_bytes);
    status = compiler->compile(program, variant, cancel, &code->made, err);
    if (!status && add(codes, code, variant))
        return FRIT_OK;
    if (!status)
        compiler->release(program, code->made);
    plug_free(&instance->plug, code);
    return status;
}

uint32_t codes_generation(const struct kit_program *program, struct codes *codes,
                          const frit_variant *variant)
{
    const struct kit_compiler *compiler = program->device->instance->driver->compiler;
    void *made = compiler->generation ? codes_find(codes, variant) : NULL;

    return made ? compiler->generation(program, made) : 0;
}
