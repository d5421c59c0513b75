/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/bundle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "base/text.h"

#define FRONT    "frit bundle 1\n"
#define ARTEFACT "artefact "
#define END      "end of bundle\n"

void bundle_begin(const char *kind, struct str *out)
{
    str_addf(out, FRONT "%s\n", kind);
}

void bundle_add_artefact(const void *bytes, size_t n_bytes, struct str *out)
{
    str_addf(out, ARTEFACT "%zu\n", n_bytes);
    str_add(out, bytes, n_bytes);
    str_add(out, "\n", 1);
}

void bundle_end(struct str *out)
{
    str_add(out, END, strlen(END));
}

/* ---- reading ---- */

static bool skip(struct tune_text *text, const char *word)
{
    const size_t length = strlen(word);

    if (text->length < length || memcmp(text->at, word, length) != 0)
        return false;
    text->at += length;
    text->length -= length;
    return true;
}

static size_t line_length(const char *at, size_t length)
{
    const char *end = length ? memchr(at, '\n', length) : NULL;

    return end ? (size_t)(end - at) : length;
}

/* Both differ, from here on: names the first line in which they do. */
static frit_status other_kind(const struct tune_text *text, const char *kind, frit_err *err)
{
    size_t left = strlen(kind), at = 0;
    char theirs[200], ours[200];

    for (;;) {
        const size_t a = line_length(text->at + at, text->length - at);
        const size_t b = line_length(kind + at, left - at);

        if (a == b && a && at + a < left && at + a < text->length &&
            memcmp(text->at + at, kind + at, a) == 0) {
            at += a + 1;
            continue;
        }
        text_clean(text->at + at, a, theirs, sizeof(theirs));
        text_clean(kind + at, b, ours, sizeof(ours));
        return fail(err, FRIT_INCOMPATIBLE,
                    "the bundle is of another kind of device: it has \"%s\", this one has \"%s\"; "
                    "tune here instead",
                    theirs, ours);
    }
}

static frit_status damaged(const struct tune_text *text, frit_err *err)
{
    return fail(err, FRIT_INVALID,
                "the bundle is damaged, %zu bytes before its end; export it anew", text->length);
}

static frit_status read_artefact(struct tune_text *text, const struct bundle_visitor *visitor,
                                 frit_err *err)
{
    const char *digits = text->at;
    uint64_t n = 0;

    while (text->length && *text->at >= '0' && *text->at <= '9') {
        n = n < SIZE_MAX / 16 ? 10 * n + (uint64_t)(*text->at - '0') : SIZE_MAX;
        text->at++;
        text->length--;
    }
    if (text->at == digits || (*digits == '0' && text->at != digits + 1))
        return damaged(text, err);
    if (!skip(text, "\n") || text->length <= n || text->at[n] != '\n')
        return damaged(text, err);
    if (visitor)
        TRY(visitor->artefact(visitor->ctx, text->at, (size_t)n, err));
    text->at += n + 1;
    text->length -= (size_t)n + 1;
    return FRIT_OK;
}

static frit_status read_record(struct tune_text *text, const struct bundle_visitor *visitor,
                               frit_err *err)
{
    struct tune_record *record;
    frit_status status;

    TRY(tune_record_parse(text, &record, err));
    status = visitor ? visitor->record(visitor->ctx, record, err) : FRIT_OK;
    tune_record_destroy(record);
    return status;
}

static uint32_t count_lines(const char *text)
{
    uint32_t n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* With a visitor that may be NULL. */
static frit_status read_all(struct tune_text text, const char *kind,
                            const struct bundle_visitor *visitor, frit_err *err)
{
    static const char record[] = "decision ";
    struct tune_text front;

    if (!skip(&text, FRONT))
        return fail(err, FRIT_INVALID, "it is no bundle of `frit tune export`");
    front = text;
    if (!skip(&text, kind) || !skip(&text, "\n"))
        return other_kind(&front, kind, err);
    text.line = count_lines(kind) + 2;
    while (text.length >= strlen(record) && memcmp(text.at, record, strlen(record)) == 0)
        TRY(read_record(&text, visitor, err));
    while (skip(&text, ARTEFACT))
        TRY(read_artefact(&text, visitor, err));
    return skip(&text, END) && !text.length ? FRIT_OK : damaged(&text, err);
}

frit_status bundle_read(const char *bytes, size_t n_bytes, const char *kind,
                        const struct bundle_visitor *visitor, frit_err *err)
{
    const struct tune_text text = {bytes, n_bytes, 0};

    TRY(read_all(text, kind, NULL, err));
    return read_all(text, kind, visitor, err);
}
