/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by hand: where it lies, what of it a transfer touches, and what happens where there is
 * none. */
#include <inttypes.h>
#include <string.h>

#include "conform/bare.h"
#include "conform/launch.h"

/* ---- allocations ---- */

static const uint64_t sizes[] = {1, 3, 64, 65, 4097, 1 << 20}, aligns[] = {1, 256, 4096};
enum {
    N_SIZES = sizeof(sizes) / sizeof(sizes[0]),
    N_ALIGNS = sizeof(aligns) / sizeof(aligns[0]),
    N_PIECES = N_SIZES * N_ALIGNS
};

static frit_status check_place(struct bare *bare, const frit_allocation *got, uint64_t bytes,
                               uint64_t align)
{
    uint64_t least = bare->info.align_bytes ? bare->info.align_bytes : 64;
    uint64_t host = (uint64_t)(uintptr_t)got->host_pointer;

    align = align > least ? align : least;
    if (bare->info.caps & FRIT_CAP_HOST_VISIBLE && !got->host_pointer)
        return bare_fail_text(bare, "memory of a device that is HOST_VISIBLE has no host pointer");
    if (got->address % align || host % align)
        return bare_fail_text(bare, "%" PRIu64 " bytes aligned to %" PRIu64 " lie at %#" PRIx64,
                              bytes, align, got->address % align ? got->address : host);
    return FRIT_OK;
}

static frit_status stamp(struct bare *bare, void *memory, uint64_t bytes, uint32_t number)
{
    const unsigned char mark = (unsigned char)(number + 1);
    frit_status status = bare_write(bare, memory, 0, &mark, 1);

    return status ? status : bare_write(bare, memory, bytes - 1, &mark, 1);
}

static frit_status check_stamp(struct bare *bare, void *memory, uint64_t bytes, uint32_t number)
{
    static unsigned char marks[2]; /* a read may come when this is over */
    frit_status status;

    marks[0] = marks[1] = 0;
    status = bare_read(bare, memory, 0, &marks[0], 1);
    if (!status)
        status = bare_read(bare, memory, bytes - 1, &marks[1], 1);
    if (!status && (marks[0] != number + 1 || marks[1] != number + 1))
        return bare_fail_text(bare, "buffer %u of %" PRIu64 " bytes holds what another was given",
                              number, bytes);
    return status;
}

/* Several at once, none in another's place. */
static frit_status places(struct bare *bare)
{
    frit_allocation at[N_PIECES] = {{0}};
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < N_PIECES && !status; i++) {
        status = bare_alloc(bare, sizes[i % N_SIZES], aligns[i / N_SIZES], &at[i]);
        if (!status)
            status = check_place(bare, &at[i], sizes[i % N_SIZES], aligns[i / N_SIZES]);
        if (!status)
            status = stamp(bare, at[i].memory, sizes[i % N_SIZES], i);
    }
    for (uint32_t i = 0; i < N_PIECES && !status; i++)
        status = check_stamp(bare, at[i].memory, sizes[i % N_SIZES], i);
    for (uint32_t i = 0; i < N_PIECES; i++)
        bare_free(bare, at[i].memory); /* NULL does nothing */
    return status;
}

/* ---- what is not there ---- */

/* A request that must fail, with and without an error slot. */
static frit_status refused(struct bare *bare, uint64_t bytes)
{
    const frit_alloc_desc desc = {.struct_size = sizeof(desc),
                                  .bytes = bytes,
                                  .align = bare->info.align_bytes ? bare->info.align_bytes : 64};

    for (int slot = 0; slot < 2; slot++) {
        frit_allocation out = {.struct_size = sizeof(out)};
        frit_status status;

        bare->err = (frit_err){.struct_size = sizeof(bare->err)};
        status = bare->backend->alloc(bare->device, &desc, &out, slot ? &bare->err : NULL);
        if (status >= 0)
            bare_free(bare, out.memory);
        if (status != FRIT_NO_DEVICE_MEMORY)
            return bare_fail_text(bare, "alloc of %" PRIu64 " bytes: %s, not no-device-memory",
                                  bytes, status ? frit_status_name(status) : "it succeeds");
        if (slot && !bare->err.text[0])
            return bare_fail_text(bare, "alloc of %" PRIu64 " bytes fails without a word", bytes);
    }
    return FRIT_OK;
}

static frit_status huge(struct bare *bare)
{
    static const uint64_t requests[] = {(uint64_t)1 << 60, UINT64_MAX - 4096, UINT64_MAX - 8,
                                        UINT64_MAX};
    frit_allocation before, after = {0};
    frit_status status = FRIT_OK;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]) && !status; i++)
        status = refused(bare, requests[i]);
    if (!status)
        status = bare_alloc(bare, 4096, 0, &before);
    if (status)
        return status;
    status = stamp(bare, before.memory, 4096, 7);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]) && !status; i++)
        status = refused(bare, requests[i]);
    if (!status)
        status = bare_alloc(bare, 4096, 0, &after);
    if (!status)
        status = stamp(bare, after.memory, 4096, 8);
    if (!status)
        status = check_stamp(bare, before.memory, 4096, 7);
    bare_free(bare, after.memory);
    bare_free(bare, before.memory);
    return status;
}

enum { CAP = 1 << 20 };

/* Memory of the application takes nothing of a heap, and gives nothing back. */
static frit_status import_and_free(struct bare *bare)
{
    static _Alignas(4096) unsigned char lent[CAP];
    const frit_import_desc desc = {.struct_size = sizeof(desc), .data = lent, .bytes = CAP};
    frit_allocation out = {.struct_size = sizeof(out)};
    frit_status status;

    if (!FRIT_HAS(bare->backend, frit_backend, import_host) || !bare->backend->import_host)
        return FRIT_OK;
    status = bare->backend->import_host(bare->device, &desc, &out, &bare->err);
    if (status)
        return status == FRIT_UNSUPPORTED ? FRIT_OK : bare_fail(bare, "import_host", status);
    bare_free(bare, out.memory);
    return FRIT_OK;
}

/* With a cap of a MiB: what was freed counts for nothing, and so does what was refused. */
static frit_status capped(struct bare *bare)
{
    frit_status status = FRIT_OK;

    for (int round = 0; round < 3 && !status; round++) {
        frit_allocation most, rest = {0};

        status = bare_alloc(bare, CAP / 4 * 3, 0, &most);
        if (status)
            return status;
        status = refused(bare, CAP / 2);
        if (!status)
            status = import_and_free(bare);
        if (!status)
            status = refused(bare, CAP / 2);
        if (!status)
            status = bare_alloc(bare, CAP / 8, 0, &rest);
        bare_free(bare, rest.memory);
        bare_free(bare, most.memory);
    }
    return status;
}

/* ---- transfers ---- */

/* Pieces at odd places of one buffer, beside a picture of it in host memory. */
static frit_status offsets(struct bare *bare)
{
    enum { BYTES = 8192 };
    static const uint64_t pieces[][2] = {{0, 1},    {1, 1},       {3, 2},    {7, 5},
                                         {63, 3},   {65, 127},    {255, 2},  {1023, 33},
                                         {4095, 2}, {4097, 4094}, {8190, 2}, {2048, 64}};
    static unsigned char picture[BYTES], piece[BYTES], got[BYTES];
    frit_allocation at;
    frit_status status = bare_alloc(bare, BYTES, 0, &at);

    if (status)
        return status;
    memset(picture, 0, sizeof(picture));
    status = bare_write(bare, at.memory, 0, picture, BYTES);
    for (uint32_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && !status; i++) {
        uint64_t offset = pieces[i][0], bytes = pieces[i][1];

        for (uint64_t k = 0; k < bytes; k++)
            piece[k] = picture[offset + k] = (unsigned char)(17 * i + k + 1);
        status = bare_write(bare, at.memory, offset, piece, bytes);
        memset(piece, 0, sizeof(piece)); /* may be used again */
        if (!status)
            status = bare_read(bare, at.memory, 0, got, BYTES);
        if (!status && memcmp(got, picture, BYTES) != 0)
            status = bare_fail_text(
                bare, "a write of %" PRIu64 " bytes at %" PRIu64 " arrives wrongly", bytes, offset);
        memset(got, 0, sizeof(got));
        if (!status)
            status = bare_read(bare, at.memory, offset, got + 1, bytes);
        if (!status && (memcmp(got + 1, picture + offset, bytes) != 0 || got[0] || got[bytes + 1]))
            status = bare_fail_text(
                bare, "a read of %" PRIu64 " bytes at %" PRIu64 " arrives wrongly", bytes, offset);
    }
    bare_free(bare, at.memory);
    return status;
}

/* ---- the checks ---- */

BARE_CHECK(places, NULL)
BARE_CHECK(huge, NULL)
BARE_CHECK(capped, (&(frit_setting){NULL, "memory_bytes", "1048576"}))
BARE_CHECK(offsets, NULL)

const struct conform_check memory_checks[] = {
    {"memory", "places", "allocations are aligned as requested, large enough, and apart",
     check_places},
    {"memory", "huge", "an allocation that cannot be is refused", check_huge},
    {"memory", "capped", "with a cap of memory what is freed, or was refused, counts for nothing",
     check_capped},
    {"memory", "offsets", "writes and reads at odd places touch their bytes and no others",
     check_offsets},
    {0},
};
