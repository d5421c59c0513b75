/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a record.  Only what the printer writes is accepted, so that both ways are
 * exact: one space between words, numbers without leading zeros, no empty lines of samples or
 * evidence. The parser reads into memory of its own and checks the whole before the record is made.
 */
#include <inttypes.h>
#include <string.h>

#include <frit/program.h>

#include "base/arena.h"
#include "base/fail.h"
#include "base/str.h"
#include "base/text.h"
#include "tune/record.h"

enum { VERSION = 1 };

/* ---- printing ---- */

static void print_key(const struct tune_record *record, struct str *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *key = record->key;

    str_add(out, "key ", 4);
    for (size_t i = 0; i < record->key_bytes; i++) {
        const char pair[] = {digits[key[i] >> 4], digits[key[i] & 15]};

        str_add(out, pair, sizeof(pair));
    }
    str_add(out, "\n", 1);
}

static void print_candidate(const struct tune_candidate *candidate, struct str *out)
{
    str_addf(out, "candidate %s %s %" PRIu32 " %s\n", tune_state_name(candidate->state),
             tune_class_name(candidate->numeric_class), candidate->version, candidate->identity);
    for (uint32_t i = 0; i < candidate->n_samples; i++)
        str_addf(out, "%s %" PRIu64, i ? "" : "samples", candidate->samples[i]);
    if (candidate->n_samples)
        str_add(out, "\n", 1);
    if (candidate->evidence && candidate->evidence[0])
        str_addf(out, "evidence %s\n", candidate->evidence);
}

void tune_record_print(const struct tune_record *record, struct str *out)
{
    str_addf(out, "decision %d\n", VERSION);
    print_key(record, out);
    str_addf(out, "what %s\nclock %s\nreason %s\n", record->what ? record->what : "",
             tune_clock_name(record->clock), tune_reason_name(record->reason));
    for (uint32_t i = 0; i < record->n_splits; i++)
        str_addf(out, "split %016" PRIx64 "\n", record->splits[i]);
    for (uint32_t i = 0; i < record->n_candidates; i++)
        print_candidate(&record->candidates[i], out);
    str_add(out, "end\n", 4);
}

/* ---- lines and words ---- */

struct record_parser {
    struct tune_text text; /* behind `line` */
    frit_str line;         /* what is left of the current line */
    struct arena arena;
    struct tune_record record;
    struct tune_candidate *candidates;
    uint64_t splits[TUNE_SPLITS];
    frit_err *err;
};

static frit_status no_memory(struct record_parser *parser)
{
    return fail_memory(parser->err, sizeof(struct tune_candidate));
}

static frit_status refuse(struct record_parser *parser, const char *expected)
{
    char found[48];

    text_clean(parser->line.ptr, parser->line.len, found, sizeof(found));
    return fail(parser->err, FRIT_INVALID,
                "line %u: expected %s, found \"%s\"; export the decisions anew",
                (unsigned)parser->text.line, expected, found);
}

/* Goes to the next line; at the end of the text the line is empty, which no line is. */
static void next_line(struct record_parser *parser)
{
    struct tune_text *text = &parser->text;
    const char *end = text->length ? memchr(text->at, '\n', text->length) : NULL;

    parser->line = (frit_str){text->at, end ? (uint64_t)(end - text->at) : 0};
    text->line++;
    if (!end)
        return;
    text->length -= (size_t)(end - text->at) + 1;
    text->at = end + 1;
}

/* Takes the word and a space from the front of the line; false: there is another word. */
static bool take_word(frit_str *line, const char *word)
{
    const size_t length = strlen(word);

    if (line->len <= length || memcmp(line->ptr, word, length) != 0 || line->ptr[length] != ' ')
        return false;
    line->ptr += length + 1;
    line->len -= length + 1;
    return true;
}

/* A line of one word and its value. */
static frit_status begin_line(struct record_parser *parser, const char *word, const char *expected)
{
    next_line(parser);
    return take_word(&parser->line, word) ? FRIT_OK : refuse(parser, expected);
}

/* Takes the digits of a number as they would be printed. */
static bool take_number(frit_str *line, uint64_t limit, uint64_t *out)
{
    uint64_t value = 0, n = 0;

    while (n < line->len && line->ptr[n] >= '0' && line->ptr[n] <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(line->ptr[n] - '0'), &value))
            return false;
        n++;
    }
    if (n == 0 || value > limit || (line->ptr[0] == '0' && n > 1))
        return false;
    line->ptr += n;
    line->len -= n;
    *out = value;
    return true;
}

static bool take_space(frit_str *line)
{
    if (!line->len || line->ptr[0] != ' ')
        return false;
    line->ptr++;
    line->len--;
    return true;
}

/* Takes the rest of the line as a text. */
static frit_status take_text(struct record_parser *parser, const char **out, const char *expected)
{
    const frit_str *line = &parser->line;

    if (line->len > TUNE_TEXT_BYTES || (line->len && memchr(line->ptr, '\0', line->len)))
        return refuse(parser, expected);
    *out = arena_text(&parser->arena, line->ptr, line->len);
    return *out ? FRIT_OK : no_memory(parser);
}

/* ---- parsing ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static frit_status parse_key(struct record_parser *parser)
{
    static const char expected[] = "\"key\" and bytes in hexadecimal";
    unsigned char *key;

    TRY(begin_line(parser, "key", expected));
    if (parser->line.len % 2 || parser->line.len / 2 > TUNE_KEY_BYTES)
        return refuse(parser, expected);
    parser->record.key_bytes = parser->line.len / 2;
    parser->record.key = key = arena_alloc(&parser->arena, parser->record.key_bytes);
    if (!key)
        return no_memory(parser);
    for (size_t i = 0; i < parser->record.key_bytes; i++) {
        const int high = digit_of(parser->line.ptr[2 * i]);
        const int low = digit_of(parser->line.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return refuse(parser, expected);
        key[i] = (unsigned char)(high << 4 | low);
    }
    return FRIT_OK;
}

static frit_status parse_what(struct record_parser *parser)
{
    static const char expected[] = "\"what\" and a label";

    TRY(begin_line(parser, "what", expected));
    return take_text(parser, &parser->record.what, expected);
}

static frit_status parse_how(struct record_parser *parser)
{
    uint32_t clock = 0, reason = 0;

    TRY(begin_line(parser, "clock", "\"clock\" and its name"));
    while (clock < TUNE_CLOCKS && !str_is(parser->line, tune_clock_name(clock)))
        clock++;
    if (clock == TUNE_CLOCKS)
        return refuse(parser, "host or device");
    TRY(begin_line(parser, "reason", "\"reason\" and a word"));
    while (reason < TUNE_REASONS && !str_is(parser->line, tune_reason_name(reason)))
        reason++;
    if (reason == TUNE_REASONS)
        return refuse(parser, "measured, roofline, budget or only");
    parser->record.clock = clock;
    parser->record.reason = reason;
    return FRIT_OK;
}

/* Behind the word "split". */
static frit_status parse_split(struct record_parser *parser)
{
    static const char expected[] = "a digest of 16 hexadecimal digits, and fewer of them";
    struct tune_record *record = &parser->record;
    uint64_t digest = 0;

    if (parser->line.len != 2 * sizeof(digest) || record->n_splits == TUNE_SPLITS)
        return refuse(parser, expected);
    for (size_t i = 0; i < parser->line.len; i++) {
        const int digit = digit_of(parser->line.ptr[i]);

        if (digit < 0)
            return refuse(parser, expected);
        digest = digest << 4 | (uint64_t)digit;
    }
    parser->splits[record->n_splits++] = digest;
    return FRIT_OK;
}

/* Behind the word "candidate". */
static frit_status parse_candidate(struct record_parser *parser, struct tune_candidate *out)
{
    uint32_t state = 0, numeric_class = 0;
    uint64_t version;

    while (state < TUNE_STATES && !take_word(&parser->line, tune_state_name(state)))
        state++;
    if (state == TUNE_STATES)
        return refuse(parser, "a state");
    while (numeric_class <= FRIT_NUMERIC_RELAXED &&
           !take_word(&parser->line, tune_class_name(numeric_class)))
        numeric_class++;
    if (numeric_class > FRIT_NUMERIC_RELAXED)
        return refuse(parser, "a numeric class");
    if (!take_number(&parser->line, UINT32_MAX, &version) || !take_space(&parser->line))
        return refuse(parser, "a version");
    out->state = state;
    out->numeric_class = numeric_class;
    out->version = (uint32_t)version;
    return take_text(parser, &out->identity, "an identity");
}

static frit_status parse_samples(struct record_parser *parser, struct tune_candidate *out)
{
    uint64_t *samples, n = 1;

    for (uint64_t i = 0; i < parser->line.len; i++)
        n += parser->line.ptr[i] == ' ';
    if (n > TUNE_SAMPLES)
        return refuse(parser, "fewer samples");
    samples = arena_array(&parser->arena, n, sizeof(*samples));
    if (!samples)
        return no_memory(parser);
    for (uint64_t i = 0; i < n; i++) {
        if ((i && !take_space(&parser->line)) ||
            !take_number(&parser->line, UINT64_MAX, &samples[i]))
            return refuse(parser, "nanoseconds");
    }
    if (parser->line.len)
        return refuse(parser, "nanoseconds");
    out->samples = samples;
    out->n_samples = (uint32_t)n;
    return FRIT_OK;
}

/* A line that belongs to the last candidate. */
static frit_status parse_detail(struct record_parser *parser)
{
    static const char expected[] = "split, candidate, samples, evidence or end";
    struct tune_candidate *last =
        parser->record.n_candidates ? &parser->candidates[parser->record.n_candidates - 1] : NULL;

    if (last && !last->n_samples && !last->evidence && take_word(&parser->line, "samples"))
        return parse_samples(parser, last);
    if (!last || last->evidence || !take_word(&parser->line, "evidence"))
        return refuse(parser, expected);
    if (!parser->line.len)
        return refuse(parser, "a text");
    return take_text(parser, &last->evidence, "a shorter text");
}

static frit_status parse_candidates(struct record_parser *parser)
{
    struct tune_record *record = &parser->record;

    parser->candidates = arena_array(&parser->arena, TUNE_CANDIDATES, sizeof(*parser->candidates));
    if (!parser->candidates)
        return no_memory(parser);
    record->candidates = parser->candidates;
    record->splits = parser->splits;
    for (next_line(parser); !str_is(parser->line, "end"); next_line(parser)) {
        if (!record->n_candidates && take_word(&parser->line, "split")) {
            TRY(parse_split(parser));
            continue;
        }
        if (!take_word(&parser->line, "candidate")) {
            TRY(parse_detail(parser));
            continue;
        }
        if (record->n_candidates == TUNE_CANDIDATES)
            return refuse(parser, "fewer candidates");
        TRY(parse_candidate(parser, &parser->candidates[record->n_candidates++]));
    }
    return FRIT_OK;
}

static frit_status parse(struct record_parser *parser)
{
    frit_status status;

    next_line(parser);
    if (!str_is(parser->line, "decision 1"))
        return refuse(parser, "\"decision 1\", as this version of Frit writes it");
    TRY(parse_key(parser));
    TRY(parse_what(parser));
    TRY(parse_how(parser));
    TRY(parse_candidates(parser));
    status = tune_record_verify(&parser->record, parser->err);
    if (status)
        fail_context(parser->err, "decision that ends in line %u", (unsigned)parser->text.line);
    return status;
}

frit_status tune_record_parse(struct tune_text *text, struct tune_record **out, frit_err *err)
{
    struct record_parser parser = {.text = *text, .err = err};
    frit_status status = parse(&parser);

    *out = NULL;
    if (!status)
        status = tune_record_copy(&parser.record, out, err);
    if (!status)
        *text = parser.text;
    arena_fini(&parser.arena);
    return status;
}
