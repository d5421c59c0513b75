/* SPDX-License-Identifier: Apache-2.0 */
#include "job/wire.h"

#include <string.h>

#include "base/text.h"

enum { HEAD = 4 }; /* bytes of a length */

static void put(uint8_t *at, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t take(const uint8_t *at, int n)
{
    uint64_t value = 0;

    for (int i = 0; i < n; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void add(struct str *out, uint64_t value, int n)
{
    uint8_t bytes[8];

    put(bytes, value, n);
    str_add(out, (const char *)bytes, (size_t)n);
}

size_t wire_begin(struct str *out, enum wire_kind kind)
{
    const size_t begin = out->length;

    add(out, 0, HEAD);
    add(out, kind, 1);
    return begin;
}

void wire_u32(struct str *out, uint32_t value)
{
    add(out, value, 4);
}

void wire_u64(struct str *out, uint64_t value)
{
    add(out, value, 8);
}

void wire_bytes(struct str *out, const void *bytes, size_t n)
{
    add(out, n, 4);
    str_add(out, bytes, n);
}

void wire_text(struct str *out, const char *text)
{
    wire_bytes(out, text, strlen(text));
}

void wire_end(struct str *out, size_t begin)
{
    if (!out->failed)
        put((uint8_t *)out->text + begin, out->length - begin - HEAD, HEAD);
}

/* ---- reading ---- */

int64_t wire_next(const void *bytes, size_t n, uint32_t *kind, struct wire_reader *out)
{
    const uint8_t *at = bytes;
    uint64_t length;

    if (n < HEAD)
        return 0;
    length = take(at, HEAD);
    if (length < 1 || length > WIRE_MAX)
        return -1;
    if (n < HEAD + length)
        return 0;
    *kind = at[HEAD];
    *out = (struct wire_reader){.at = at + HEAD + 1, .end = at + HEAD + length};
    return (int64_t)(HEAD + length);
}

static uint64_t read_number(struct wire_reader *in, int n)
{
    uint64_t value;

    if (in->failed || in->end - in->at < n) {
        in->failed = true;
        return 0;
    }
    value = take(in->at, n);
    in->at += n;
    return value;
}

uint32_t wire_read_u32(struct wire_reader *in)
{
    return (uint32_t)read_number(in, 4);
}

uint64_t wire_read_u64(struct wire_reader *in)
{
    return read_number(in, 8);
}

frit_str wire_read_bytes(struct wire_reader *in, size_t most)
{
    const uint64_t n = read_number(in, 4);
    const char *at = (const char *)in->at;

    if (in->failed || n > most || n > (uint64_t)(in->end - in->at)) {
        in->failed = true;
        return (frit_str){"", 0};
    }
    in->at += n;
    return (frit_str){at, n};
}

void wire_read_text(struct wire_reader *in, char *out, size_t size)
{
    const frit_str text = wire_read_bytes(in, WIRE_MAX);

    text_clean(text.ptr, text.len, out, size);
}
