/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of every heap of the list, and memory of the application. */
#include <inttypes.h>
#include <string.h>

#include "conform/bare.h"
#include "conform/launch.h"

enum { BYTES = 1 << 16 };

/* A COPY of the first bytes, then a read of them into `got`. */
static frit_status copy_out(struct bare *bare, frit_memory *dst, frit_memory *src, uint64_t bytes)
{
    const frit_cmd copy = {
        .struct_size = sizeof(copy), .kind = FRIT_CMD_COPY, .dst = dst, .src = src, .bytes = bytes};
    uint64_t value = 0;
    frit_status status = bare->backend->submit(bare->device, NULL, &copy, 1, sizeof(copy), NULL, 0,
                                               &value, &bare->err);

    if (status)
        return bare_fail(bare, "submit", status);
    bare_set_last(bare, value);
    return bare_wait(bare, value);
}

/* ---- heaps ---- */

static const frit_heap *heap_at(const struct bare *bare, uint32_t index)
{
    return (const frit_heap *)(const void *)((const char *)bare->info.heaps +
                                             (size_t)index * bare->info.heap_stride);
}

static frit_status alloc_on(struct bare *bare, uint32_t heap, frit_allocation *out)
{
    const frit_alloc_desc desc = {.struct_size = sizeof(desc),
                                  .heap = heap,
                                  .bytes = BYTES,
                                  .align = bare->info.align_bytes ? bare->info.align_bytes : 64};
    frit_status status;

    *out = (frit_allocation){.struct_size = sizeof(*out)};
    status = bare->backend->alloc(bare->device, &desc, out, &bare->err);
    if (status)
        return bare_fail(bare, "alloc", status);
    if (!out->memory)
        return bare_fail_text(bare, "alloc gives no memory of heap %u, and no failure", heap);
    if (heap_at(bare, heap)->kind == FRIT_HEAP_PINNED && !out->host_pointer)
        return bare_fail_text(bare, "memory of heap %u, which is pinned, has no host pointer",
                              heap);
    return FRIT_OK;
}

static void fill(unsigned char *bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(seed + i * 7 + i / 251);
}

/* What is in the memory, by its host pointer where the heap is pinned. */
static frit_status expect(struct bare *bare, uint32_t heap, const frit_allocation *memory,
                          const unsigned char *want, const char *what)
{
    static unsigned char got[BYTES]; /* a read may come when this is over */
    frit_status status = bare_read(bare, memory->memory, 0, got, BYTES);

    if (status)
        return status;
    if (memcmp(got, want, BYTES) != 0)
        return bare_fail_text(bare, "heap %u: a read of %s gives other bytes", heap, what);
    if (heap_at(bare, heap)->kind == FRIT_HEAP_PINNED &&
        memcmp(memory->host_pointer, want, BYTES) != 0)
        return bare_fail_text(bare, "heap %u: %s is not seen through the host pointer", heap, what);
    return FRIT_OK;
}

/* From one heap to another: what was written there by the program, or by `write`. */
static frit_status copy_between(struct bare *bare, uint32_t from, const frit_allocation *a,
                                uint32_t to, const frit_allocation *b)
{
    static unsigned char bytes[BYTES];
    char what[64];
    frit_status status = FRIT_OK;

    fill(bytes, 16 * from + to + 1);
    snprintf(what, sizeof(what), "a copy from heap %u", from);
    if (heap_at(bare, from)->kind == FRIT_HEAP_PINNED)
        memcpy(a->host_pointer, bytes, BYTES);
    else
        status = bare_write(bare, a->memory, 0, bytes, BYTES);
    if (!status)
        status = copy_out(bare, b->memory, a->memory, BYTES);
    return status ? status : expect(bare, to, b, bytes, what);
}

static frit_status heaps(struct bare *bare)
{
    frit_status status = FRIT_OK;

    if (bare->info.n_heaps < 1 || heap_at(bare, 0)->kind != FRIT_HEAP_DEVICE)
        return bare_fail_text(bare, "the first heap is not of kind DEVICE");
    for (uint32_t from = 0; from < bare->info.n_heaps && !status; from++) {
        for (uint32_t to = 0; to < bare->info.n_heaps && !status; to++) {
            frit_allocation a, b = {0};

            status = alloc_on(bare, from, &a);
            if (!status)
                status = alloc_on(bare, to, &b);
            if (!status)
                status = copy_between(bare, from, &a, to, &b);
            bare_free(bare, a.memory);
            bare_free(bare, b.memory);
        }
    }
    return status;
}

/* ---- memory of the application ---- */

enum { PAGE = 4096, LENT = BYTES };

/* Imported, read and copied; `lent` has `bytes` of `want`. */
static frit_status use_lent(struct bare *bare, const unsigned char *lent, uint64_t bytes,
                            frit_memory *copy)
{
    static unsigned char got[LENT]; /* a read may come when this is over */
    const frit_import_desc desc = {.struct_size = sizeof(desc), .data = lent, .bytes = bytes};
    frit_allocation out = {.struct_size = sizeof(out)};
    frit_status status = bare->backend->import_host(bare->device, &desc, &out, &bare->err);

    if (status == FRIT_UNSUPPORTED)
        return FRIT_OK;
    if (status)
        return bare_fail(bare, "import_host", status);
    if (!out.memory)
        return bare_fail_text(bare, "import_host gives no memory, and no failure");
    status = bare_read(bare, out.memory, 0, got, bytes);
    if (!status && memcmp(got, lent, bytes) != 0)
        status = bare_fail_text(bare, "a read of %" PRIu64 " imported bytes gives others", bytes);
    memset(got, 0, sizeof(got));
    if (!status)
        status = copy_out(bare, copy, out.memory, bytes);
    if (!status)
        status = bare_read(bare, copy, 0, got, bytes);
    if (!status && memcmp(got, lent, bytes) != 0)
        status = bare_fail_text(bare, "a copy of %" PRIu64 " imported bytes gives others", bytes);
    bare_free(bare, out.memory);
    return status;
}

static frit_status imported(struct bare *bare)
{
    static const uint64_t sizes[] = {1, 64, 4097, LENT};
    static _Alignas(PAGE) unsigned char lent[LENT];
    static unsigned char want[LENT];
    frit_allocation copy;
    frit_status status;

    if (!FRIT_HAS(bare->backend, frit_backend, import_host) || !bare->backend->import_host) {
        bare_fail_text(bare, "the device adopts no memory");
        return FRIT_UNSUPPORTED;
    }
    status = bare_alloc(bare, LENT, 0, &copy);
    fill(want, 5);
    memcpy(lent, want, LENT);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !status; i++) {
        status = use_lent(bare, lent, sizes[i], copy.memory);
        if (!status && memcmp(lent, want, LENT) != 0)
            status = bare_fail_text(bare, "the application's memory is written");
    }
    bare_free(bare, copy.memory);
    return status;
}

/* ---- the checks ---- */

BARE_CHECK(heaps, NULL)
BARE_CHECK(imported, NULL)

const struct conform_check heap_checks[] = {
    {"memory", "heaps", "each heap of the list has memory, and copies between them are right",
     check_heaps},
    {"memory", "imported", "memory of the application is read in place, and left as it is",
     check_imported},
    {0},
};
