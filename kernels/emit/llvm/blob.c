/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping code: written while it is data, then made code, never both. */
#include "emit/llvm/blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fail.h"

enum { HELD_BYTES = sizeof(struct blob_deferred) + BLOB_HELD };

static frit_status check(const struct blob *head, const unsigned char *bytes, size_t n,
                         frit_err *err)
{
    size_t table = sizeof(*head);

    if (head->magic != BLOB_MAGIC || head->n_phases > BLOB_MAX_PHASES)
        return fail(err, FRIT_INVALID, "no machine code of this version");
    table += head->n_phases * sizeof(*head->phases);
    if (table > n || head->code_at < table || head->code_at > n ||
        head->code_bytes != n - head->code_at || !head->code_bytes)
        return fail(err, FRIT_INVALID, "machine code of %zu bytes is cut or damaged", n);
    for (uint64_t i = 0; i < head->n_phases; i++) {
        struct blob_phase phase;

        memcpy(&phase, bytes + sizeof(*head) + i * sizeof(phase), sizeof(phase));
        if (phase.entry >= head->code_bytes)
            return fail(err, FRIT_INVALID, "phase %llu begins outside of its machine code",
                        (unsigned long long)i);
        if (phase.deferred != BLOB_NOWHERE &&
            (phase.scratch < HELD_BYTES || phase.deferred > phase.scratch - HELD_BYTES ||
             phase.deferred % BLOB_ALIGN))
            return fail(err, FRIT_INVALID, "phase %llu holds stores outside of its scratch",
                        (unsigned long long)i);
    }
    return FRIT_OK;
}

static frit_status map_code(struct object *object, const void *code, size_t n, frit_err *err)
{
    void *memory = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return fail_memory(err, n);
    object->code = memory;
    object->mapped = n;
    memcpy(memory, code, n);
    if (mprotect(memory, n, PROT_READ | PROT_EXEC))
        return fail(err, FRIT_UNSUPPORTED, "the system runs no code made at run time: %s",
                    strerror(errno));
    return FRIT_OK;
}

frit_status object_load(const void *bytes, size_t n, struct object **out, frit_err *err)
{
    struct object *object;
    struct blob head;
    frit_status status;

    *out = NULL;
    if (n < sizeof(head))
        return fail(err, FRIT_INVALID, "no machine code of this version");
    memcpy(&head, bytes, sizeof(head));
    TRY(check(&head, bytes, n, err));
    object = calloc(1, sizeof(*object) + head.n_phases * sizeof(*object->phases));
    if (!object)
        return fail_memory(err, sizeof(*object));
    object->n_phases = (uint32_t)head.n_phases;
    status = map_code(object, (const char *)bytes + head.code_at, head.code_bytes, err);
    if (status) {
        object_unload(object);
        return status;
    }
    for (uint32_t i = 0; i < object->n_phases; i++) {
        struct blob_phase phase;

        memcpy(&phase, (const char *)bytes + sizeof(head) + i * sizeof(phase), sizeof(phase));
        object->phases[i].run = (blob_fn)(uintptr_t)((char *)object->code + phase.entry);
        object->phases[i].scratch = phase.scratch;
        object->phases[i].deferred = phase.deferred;
    }
    *out = object;
    return FRIT_OK;
}

void object_unload(struct object *object)
{
    if (object && object->code)
        munmap(object->code, object->mapped);
    free(object);
}

static struct blob_deferred *deferred_of(const struct object_phase *phase, void *scratch)
{
    return phase->deferred != BLOB_NOWHERE ? (void *)((char *)scratch + phase->deferred) : NULL;
}

void object_begin(const struct object_phase *phase, void *scratch)
{
    struct blob_deferred *deferred = deferred_of(phase, scratch);

    if (deferred)
        deferred->bytes = 0;
}

void object_finish(const struct object_phase *phase, void *scratch)
{
    struct blob_deferred *deferred = deferred_of(phase, scratch);

    if (deferred && deferred->bytes)
        memcpy(deferred->to, deferred + 1, deferred->bytes);
}
