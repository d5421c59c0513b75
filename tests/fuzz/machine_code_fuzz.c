/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as machine code from a cache: refused, or an object whose phases begin in its code.  No
 * code is run.  With a first byte of 1 the head is put right: as many phases as the next byte says,
 * then the code. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "emit/llvm/blob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20 };

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_object(const struct object *object, size_t n)
{
    const uintptr_t code = (uintptr_t)object->code;

    check(object->mapped <= n);
    for (uint32_t i = 0; i < object->n_phases; i++) {
        const struct object_phase *phase = &object->phases[i];
        const uintptr_t entry = (uintptr_t)phase->run;

        check(entry >= code && entry < code + object->mapped);
        check(phase->deferred == BLOB_NOWHERE ||
              phase->deferred + sizeof(struct blob_deferred) + BLOB_HELD <= phase->scratch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frit_err err = ERR_INIT;
    struct object *object;
    struct blob head;
    uint8_t *bytes;

    if (size < 2 || size > MAX_BYTES)
        return 0;
    bytes = malloc(size); /* of the exact size, so that a sanitizer sees its end */
    check(bytes != NULL);
    memcpy(bytes, data, size);
    if (data[0] == 1 && size > sizeof(head)) {
        head = (struct blob){.magic = BLOB_MAGIC, .n_phases = data[1]};
        head.code_at = sizeof(head) + head.n_phases * sizeof(struct blob_phase);
        head.code_bytes = size - head.code_at;
        memcpy(bytes, &head, sizeof(head));
    }
    if (object_load(bytes, size, &object, &err)) {
        check(!object && err.text[0]);
    } else {
        check_object(object, size);
        object_unload(object);
    }
    free(bytes);
    return 0;
}
