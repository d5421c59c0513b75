/* SPDX-License-Identifier: Apache-2.0 */
/* The format is that of PKWARE's APPNOTE: each entry has a local header before its bytes, and
 * again, with its offset, a header in the directory, whose own end is at the end of the file.
 * Numbers are little endian; one that does not fit into its 16 or 32 bits is all ones there and
 * follows, with 64 bits, in an extra field or a record of its own. */
#include "file/zip.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"

enum {
    SIGN_LOCAL = 0x04034b50,
    SIGN_ENTRY = 0x02014b50,
    SIGN_END = 0x06054b50,
    SIGN_END64 = 0x06064b50,
    SIGN_LOCATOR = 0x07064b50,
    EXTRA64 = 1,
    ENTRY = 46,
    END = 22,
    END64 = 56,
    LOCATOR = 20,
    ENCRYPTED = 1,
    VERSION = 20,
    VERSION64 = 45,
    JANUARY_1980 = 33 /* the first date there is */
};

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t n = 0;

    for (int i = bytes; i-- > 0;)
        n = n << 8 | at[i];
    return n;
}

/* At most 8 bytes. */
static unsigned char *put(unsigned char *at, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (unsigned char)(n >> 8 * i);
    return at;
}

/* ---- the end of the directory ---- */

static frit_status check_directory(const struct zip_directory *out, uint64_t end, frit_err *err)
{
    if (out->bytes > end || out->offset > end - out->bytes)
        return fail(err, FRIT_INVALID, "damaged: its directory does not lie in the file");
    if (out->count > out->bytes / ENTRY)
        return fail(err, FRIT_INVALID,
                    "damaged: a directory of %" PRIu64 " bytes for %" PRIu64 " entries", out->bytes,
                    out->count);
    return FRIT_OK;
}

/* The record of 64 bits, if the locator before the end names one. */
static frit_status find64(const unsigned char *tail, size_t end, uint64_t tail_offset,
                          struct zip_directory *out, frit_err *err)
{
    const unsigned char *locator = tail + end - LOCATOR, *at;
    uint64_t offset;

    if (end < LOCATOR || number(locator, 4) != SIGN_LOCATOR)
        return FRIT_OK;
    offset = number(locator + 8, 8);
    if (offset < tail_offset || offset > tail_offset + end ||
        tail_offset + end - offset < END64 + LOCATOR ||
        number(tail + (offset - tail_offset), 4) != SIGN_END64)
        return fail(err, FRIT_INVALID, "damaged: the end of its directory is not where it says");
    at = tail + (offset - tail_offset);
    *out = (struct zip_directory){
        .count = number(at + 32, 8), .bytes = number(at + 40, 8), .offset = number(at + 48, 8)};
    return FRIT_OK;
}

frit_status zip_find(const void *tail, size_t count, uint64_t file_bytes, struct zip_directory *out,
                     frit_err *err)
{
    const unsigned char *bytes = tail;
    uint64_t tail_offset = file_bytes - count;

    *out = (struct zip_directory){0};
    for (size_t end = count; end >= END; end--) {
        const unsigned char *at = bytes + end - END;

        if (number(at, 4) != SIGN_END || number(at + 20, 2) != count - end)
            continue; /* the comment has to reach to the end of the file */
        if (number(at + 4, 2) != number(at + 6, 2))
            return fail(err, FRIT_UNSUPPORTED, "an archive in several files");
        *out = (struct zip_directory){
            .count = number(at + 10, 2), .bytes = number(at + 12, 4), .offset = number(at + 16, 4)};
        TRY(find64(bytes, end - END, tail_offset, out, err));
        return check_directory(out, tail_offset + end - END, err);
    }
    return fail(err, FRIT_INVALID, "not a zip file, or truncated: it has no directory");
}

/* ---- entries ---- */

/* Takes the numbers that did not fit from the extra field of 64 bits. */
static bool widen(const unsigned char *extra, size_t count, struct zip_entry *out)
{
    uint64_t *fields[] = {&out->bytes, &out->packed, &out->local};

    while (count >= 4) {
        uint64_t id = number(extra, 2), length = number(extra + 2, 2);
        const unsigned char *at = extra + 4;

        if (length > count - 4)
            return false;
        for (int i = 0; i < 3 && id == EXTRA64; i++) {
            if (*fields[i] != UINT32_MAX)
                continue;
            if (length < 8)
                return false;
            *fields[i] = number(at, 8);
            at += 8;
            length -= 8;
        }
        if (id == EXTRA64)
            return true;
        extra += 4 + length;
        count -= 4 + (size_t)length;
    }
    return true;
}

frit_status zip_next(const void *bytes, uint64_t count, uint64_t file_bytes, uint64_t *at,
                     struct zip_entry *out, frit_err *err)
{
    const unsigned char *head = (const unsigned char *)bytes + *at;
    uint64_t rest = count - *at, extra, length;

    if (rest < ENTRY || number(head, 4) != SIGN_ENTRY)
        return fail(err, FRIT_INVALID, "damaged: its directory ends early");
    *out = (struct zip_entry){.name = (const char *)head + ENTRY,
                              .name_length = (uint16_t)number(head + 28, 2),
                              .method = (uint16_t)number(head + 10, 2),
                              .crc = (uint32_t)number(head + 16, 4),
                              .packed = number(head + 20, 4),
                              .bytes = number(head + 24, 4),
                              .local = number(head + 42, 4)};
    extra = number(head + 30, 2);
    length = ENTRY + out->name_length + extra + number(head + 32, 2);
    if (length > rest || !widen(head + ENTRY + out->name_length, extra, out))
        return fail(err, FRIT_INVALID, "damaged: its directory ends early");
    if (number(head + 8, 2) & ENCRYPTED)
        return fail(err, FRIT_UNSUPPORTED, "an encrypted entry");
    if (out->method != ZIP_STORED && out->method != ZIP_DEFLATED)
        return fail(err, FRIT_UNSUPPORTED, "an entry compressed by method %d; Frit knows deflate",
                    out->method);
    if (out->local > file_bytes || out->packed > file_bytes - out->local ||
        (out->method == ZIP_STORED && out->bytes != out->packed))
        return fail(err, FRIT_INVALID, "damaged: an entry does not lie in the file");
    *at += length;
    return FRIT_OK;
}

frit_status zip_data(const struct zip_entry *entry, const unsigned char local[ZIP_LOCAL],
                     uint64_t file_bytes, uint64_t *out, frit_err *err)
{
    uint64_t texts = number(local + 26, 2) + number(local + 28, 2);

    if (number(local, 4) != SIGN_LOCAL || number(local + 26, 2) != entry->name_length ||
        number(local + 8, 2) != entry->method ||
        ZIP_LOCAL + texts > file_bytes - entry->local - entry->packed)
        return fail(err, FRIT_INVALID, "damaged: the entry is not where the directory says");
    *out = entry->local + ZIP_LOCAL + texts;
    return FRIT_OK;
}

/* ---- formatting ---- */

static uint64_t narrow(uint64_t n)
{
    return n < UINT32_MAX ? n : UINT32_MAX;
}

/* The extra field with the numbers that do not fit. */
static unsigned char *put_extra(unsigned char *at, const uint64_t *numbers, int count)
{
    unsigned char *start = at;
    int wide = 0;

    for (int i = 0; i < count; i++)
        wide += numbers[i] >= UINT32_MAX;
    if (!wide)
        return start;
    at = put(put(at, EXTRA64, 2), 8 * (uint64_t)wide, 2);
    for (int i = 0; i < count; i++)
        if (numbers[i] >= UINT32_MAX)
            at = put(at, numbers[i], 8);
    return at;
}

/* What both headers have in common: from the version that is needed up to the extra's length. */
static unsigned char *put_common(unsigned char *at, const struct zip_entry *entry, uint64_t extra)
{
    at = put(at, extra ? VERSION64 : VERSION, 2);
    at = put(at, 0, 2); /* flags */
    at = put(at, entry->method, 2);
    at = put(at, 0, 2); /* time */
    at = put(at, JANUARY_1980, 2);
    at = put(at, entry->crc, 4);
    at = put(at, narrow(entry->packed), 4);
    at = put(at, narrow(entry->bytes), 4);
    at = put(at, entry->name_length, 2);
    return put(at, extra, 2);
}

size_t zip_format_local(const struct zip_entry *entry, unsigned char out[ZIP_FORMAT_MAX],
                        size_t *head)
{
    const uint64_t wide[] = {entry->bytes, entry->packed};
    unsigned char *end = put_extra(out + ZIP_LOCAL, wide, 2);

    put_common(put(out, SIGN_LOCAL, 4), entry, (uint64_t)(end - out - ZIP_LOCAL));
    *head = ZIP_LOCAL;
    return (size_t)(end - out);
}

size_t zip_format_entry(const struct zip_entry *entry, unsigned char out[ZIP_FORMAT_MAX],
                        size_t *head)
{
    const uint64_t wide[] = {entry->bytes, entry->packed, entry->local};
    unsigned char *end = put_extra(out + ENTRY, wide, 3), *at;

    at = put(put(out, SIGN_ENTRY, 4), VERSION64, 2);
    at = put_common(at, entry, (uint64_t)(end - out - ENTRY));
    at = put(put(at, 0, 8), 0, 2); /* no comment, the first file, no attributes */
    put(at, narrow(entry->local), 4);
    *head = ENTRY;
    return (size_t)(end - out);
}

size_t zip_format_end(const struct zip_directory *directory, unsigned char out[2 * ZIP_FORMAT_MAX])
{
    uint64_t count = directory->count < UINT16_MAX ? directory->count : UINT16_MAX;
    unsigned char *at = out;

    if (count == UINT16_MAX || directory->bytes >= UINT32_MAX || directory->offset >= UINT32_MAX) {
        at = put(put(at, SIGN_END64, 4), END64 - 12, 8);
        at = put(put(at, VERSION64, 2), VERSION64, 2);
        at = put(at, 0, 8); /* the first file */
        at = put(put(at, directory->count, 8), directory->count, 8);
        at = put(put(at, directory->bytes, 8), directory->offset, 8);
        at = put(put(at, SIGN_LOCATOR, 4), 0, 4);
        at = put(put(at, directory->offset + directory->bytes, 8), 1, 4);
    }
    at = put(put(at, SIGN_END, 4), 0, 4);
    at = put(put(at, count, 2), count, 2);
    at = put(put(at, narrow(directory->bytes), 4), narrow(directory->offset), 4);
    at = put(at, 0, 2); /* no comment */
    return (size_t)(at - out);
}
