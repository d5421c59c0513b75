/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases come to: a table op x element type, failures, an object, a JUnit file. */
#include "conform/report.h"

#include <inttypes.h>
#include <string.h>

#include "conform/cases.h"
#include "conform/conform.h"
#include "json.h"
#include "term.h"

/* Letters of verdicts; of several cases the highest verdict is shown. */
static const char letters[N_VERDICTS] = {
    [VERDICT_NONE] = ' ',       [VERDICT_REFUSED] = '.', [VERDICT_NATIVE] = 'n',
    [VERDICT_DECOMPOSED] = 'd', [VERDICT_HOST] = 'h',    [VERDICT_FALLBACK] = '-',
    [VERDICT_FAILED] = 'F',
};

static const char *const words[N_VERDICTS] = {
    [VERDICT_NONE] = "none",     [VERDICT_REFUSED] = "refused",
    [VERDICT_NATIVE] = "native", [VERDICT_DECOMPOSED] = "decomposed",
    [VERDICT_HOST] = "host",     [VERDICT_FALLBACK] = "fallback",
    [VERDICT_FAILED] = "failed",
};

/* A row's cells, by element type, and what they come to. */
struct line {
    const frit_op_info *op;
    enum conform_verdict cell[FRIT_DTYPE_LIMIT];
    bool runs[FRIT_DTYPE_LIMIT]; /* in some case at least; nothing is run where nothing comes out */
    enum conform_verdict all;
};

/* Takes the cases of the row that begins at *index; false at the end. */
static bool take_row(const struct conform_report *report, size_t *index, struct line *out)
{
    const struct conform_cases *cases = report->cases;

    while (*index < cases->count && cases->at[*index].check)
        ++*index;
    if (*index == cases->count)
        return false;
    *out = (struct line){.op = cases->at[*index].row.op};
    for (; *index < cases->count && cases->at[*index].row.op == out->op; ++*index) {
        enum conform_verdict verdict = report->verdicts[*index];
        enum conform_verdict *cell = &out->cell[cases->at[*index].dtype];

        *cell = verdict > *cell ? verdict : *cell;
        out->runs[cases->at[*index].dtype] |=
            conform_passes(verdict) && !strstr(cases->at[*index].form->shape, "empty");
        out->all = verdict > out->all ? verdict : out->all;
    }
    return true;
}

/* The next row of which something was run. */
static bool next_line(const struct conform_report *report, size_t *index, struct line *out)
{
    while (take_row(report, index, out))
        if (out->all)
            return true;
    return false;
}

struct totals {
    uint64_t cases[N_VERDICTS];
    uint64_t rows[N_VERDICTS];
    uint64_t n_rows;
};

/* A row counts as what the driver does for most of its element types, as failed if one failed. */
static enum conform_verdict row_verdict(const struct line *line)
{
    enum conform_verdict best = line->all == VERDICT_REFUSED ? VERDICT_REFUSED : VERDICT_NONE;

    if (line->all == VERDICT_FAILED)
        return VERDICT_FAILED;
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
        if (line->cell[dtype] > VERDICT_REFUSED &&
            (best <= VERDICT_REFUSED || line->cell[dtype] < best))
            best = line->cell[dtype];
    return best;
}

static struct totals totals_of(const struct conform_report *report)
{
    struct totals totals = {0};
    struct line line;

    for (size_t i = 0; i < report->cases->count; i++)
        totals.cases[report->verdicts[i]]++;
    for (size_t i = 0; next_line(report, &i, &line);) {
        totals.rows[row_verdict(&line)]++;
        totals.n_rows++;
    }
    return totals;
}

static uint64_t passed(const struct totals *totals)
{
    return totals->cases[VERDICT_NATIVE] + totals->cases[VERDICT_DECOMPOSED] +
           totals->cases[VERDICT_HOST];
}

static uint64_t skipped(const struct totals *totals)
{
    return totals->cases[VERDICT_FALLBACK] + totals->cases[VERDICT_REFUSED];
}

/* ---- for people ---- */

void conform_report_warn(const struct conform_report *report, FILE *out)
{
    struct line line;

    for (size_t i = 0; next_line(report, &i, &line);)
        if (line.all == VERDICT_REFUSED)
            fprintf(out,
                    "frit conform: %s takes none of the operands that were tried; nothing of it "
                    "was compared\n",
                    line.op->name);
}

static bool is_partial(const struct line *line, uint32_t dtype)
{
    return line->cell[dtype] == VERDICT_FALLBACK && line->runs[dtype];
}

static void show_table(const struct conform_report *report, FILE *out)
{
    struct line line;

    fprintf(out, "%-26s", "");
    for (uint32_t dtype = 1; dtype <= FRIT_BOOL; dtype++)
        if (frit_storage_bytes(dtype, 1))
            fprintf(out, " %-4s", frit_dtype_name(dtype));
    fputc('\n', out);
    for (size_t i = 0; next_line(report, &i, &line);) {
        fprintf(out, "%-26s", line.op->name);
        for (uint32_t dtype = 1; dtype <= FRIT_BOOL; dtype++) {
            char cell[2] = {letters[line.cell[dtype]], '\0'};

            if (is_partial(&line, dtype))
                cell[0] = '~';
            if (!frit_storage_bytes(dtype, 1))
                continue;
            fputc(' ', out);
            term_paint(out,
                       line.cell[dtype] == VERDICT_FAILED     ? PAINT_BAD
                       : line.cell[dtype] == VERDICT_FALLBACK ? PAINT_DIM
                                                              : PAINT_GOOD,
                       4, cell);
        }
        fputc('\n', out);
    }
    fputs("n native  d decomposed  h host  ~ fallback in some cases  - fallback  F failed"
          "  . refused\n",
          out);
}

/* Skipped cases by their reason, which many of them share, under the first. */
static void show_skips(const struct conform_report *report, FILE *out)
{
    const struct conform_note *notes = report->notes;
    char name[CONFORM_NAME];

    for (size_t i = 0; i < report->n_notes; i++) {
        size_t before = 0, more = 0;

        for (size_t k = 0; k < report->n_notes && notes[i].verdict != VERDICT_FAILED; k++)
            if (notes[k].verdict != VERDICT_FAILED && !strcmp(notes[k].reason, notes[i].reason))
                *(k < i ? &before : &more) += 1;
        if (!more || before)
            continue;
        conform_case_name(&report->cases->at[notes[i].index], name);
        fprintf(out, "skipped %s", name);
        if (more > 1)
            fprintf(out, " and %zu more", more - 1);
        fprintf(out, "\n    %s\n", notes[i].reason);
    }
}

static void show_notes(const struct conform_report *report, FILE *out)
{
    char name[CONFORM_NAME];

    if (report->n_notes)
        fputc('\n', out);
    show_skips(report, out);
    for (size_t i = 0; i < report->n_notes; i++) {
        if (report->notes[i].verdict != VERDICT_FAILED)
            continue;
        conform_case_name(&report->cases->at[report->notes[i].index], name);
        term_paint(out, PAINT_BAD, 0, name);
        fprintf(out, "\n    %s\n", report->notes[i].reason);
    }
}

/* ", shard 2/8", or nothing of a whole run. */
static const char *shard_text(const struct conform_report *report, char text[32])
{
    text[0] = '\0';
    if (report->shard.count > 1)
        snprintf(text, 32, ", shard %" PRIu32 "/%" PRIu32, report->shard.number,
                 report->shard.count);
    return text;
}

void conform_report_text(const struct conform_report *report, FILE *out)
{
    struct totals totals = totals_of(report);
    char time[16], shard[32];

    if (totals.n_rows)
        show_table(report, out);
    show_notes(report, out);
    fprintf(out,
            "\n%s%s: %zu cases in %s: %" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64
            " skipped; %" PRIu64 " rows: %" PRIu64 " native, %" PRIu64 " decomposed, %" PRIu64
            " host, %" PRIu64 " fallback, %" PRIu64 " failed\n",
            report->device, shard_text(report, shard), report->n_run,
            term_seconds(report->seconds, time), passed(&totals), totals.cases[VERDICT_FAILED],
            skipped(&totals), totals.n_rows, totals.rows[VERDICT_NATIVE],
            totals.rows[VERDICT_DECOMPOSED], totals.rows[VERDICT_HOST],
            totals.rows[VERDICT_FALLBACK], totals.rows[VERDICT_FAILED]);
    if (totals.rows[VERDICT_REFUSED])
        fprintf(out, "%" PRIu64 " more rows take none of the operands that were tried\n",
                totals.rows[VERDICT_REFUSED]);
    if (totals.cases[VERDICT_NONE])
        fprintf(out, "%s: %" PRIu64 " more cases were not run\n",
                report->lost ? "the device was lost" : "stopped at the first failure",
                totals.cases[VERDICT_NONE]);
}

/* ---- for machines ---- */

static void put_rows(const struct conform_report *report, struct json *json)
{
    struct line line;

    json_list(json, "table");
    for (size_t i = 0; next_line(report, &i, &line);) {
        json_object(json, NULL);
        json_text(json, "row", line.op->name);
        for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
            if (line.cell[dtype])
                json_text(json, frit_dtype_name(dtype),
                          is_partial(&line, dtype) ? "partial" : words[line.cell[dtype]]);
        json_close(json);
    }
    json_close(json);
}

static void put_notes(const struct conform_report *report, const char *list, bool failures,
                      struct json *json)
{
    char name[CONFORM_NAME];

    json_list(json, list);
    for (size_t i = 0; i < report->n_notes; i++) {
        if ((report->notes[i].verdict == VERDICT_FAILED) != failures)
            continue;
        json_object(json, NULL);
        json_text(json, "case",
                  conform_case_name(&report->cases->at[report->notes[i].index], name));
        json_text(json, "reason", report->notes[i].reason);
        json_close(json);
    }
    json_close(json);
}

void conform_report_json(const struct conform_report *report, FILE *out)
{
    struct totals totals = totals_of(report);
    struct json json;

    json_begin(&json, out);
    json_text(&json, "driver", report->device);
    json_uint(&json, "shard", report->shard.number);
    json_uint(&json, "shards", report->shard.count);
    json_uint(&json, "cases", report->cases->count);
    json_uint(&json, "passed", passed(&totals));
    json_uint(&json, "failed", totals.cases[VERDICT_FAILED]);
    json_uint(&json, "skipped", skipped(&totals));
    json_uint(&json, "not_run", totals.cases[VERDICT_NONE]);
    json_uint(&json, "rows", totals.n_rows);
    json_uint(&json, "rows_native", totals.rows[VERDICT_NATIVE]);
    json_uint(&json, "rows_decomposed", totals.rows[VERDICT_DECOMPOSED]);
    json_uint(&json, "rows_host", totals.rows[VERDICT_HOST]);
    json_uint(&json, "rows_fallback", totals.rows[VERDICT_FALLBACK]);
    json_uint(&json, "rows_refused", totals.rows[VERDICT_REFUSED]);
    json_uint(&json, "rows_failed", totals.rows[VERDICT_FAILED]);
    json_real(&json, "seconds", report->seconds);
    put_rows(report, &json);
    put_notes(report, "failures", true, &json);
    put_notes(report, "skips", false, &json);
    json_end(&json);
}

static void put_xml(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
    }
}

bool conform_report_junit(const struct conform_report *report, const char *path)
{
    struct totals totals = totals_of(report);
    FILE *out = fopen(path, "w");
    size_t note = 0;
    char name[CONFORM_NAME], shard[32];
    bool good;

    if (!out)
        return false;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"frit conform %s%s\" "
            "tests=\"%zu\" failures=\"%" PRIu64 "\" skipped=\"%" PRIu64 "\" time=\"%.3f\">\n",
            report->device, shard_text(report, shard), report->cases->count,
            totals.cases[VERDICT_FAILED], skipped(&totals) + totals.cases[VERDICT_NONE],
            report->seconds);
    for (size_t i = 0; i < report->cases->count; i++) {
        const struct conform_case *one = &report->cases->at[i];

        fprintf(out, "<testcase classname=\"%s\" name=\"%s\"", one->row.name,
                conform_case_name(one, name));
        if (note < report->n_notes && report->notes[note].index == i) {
            fputs(report->verdicts[i] == VERDICT_FAILED ? "><failure" : "><skipped", out);
            fputs(" message=\"", out);
            put_xml(out, report->notes[note++].reason);
            fputs("\"/></testcase>\n", out);
        } else {
            fputs(report->verdicts[i] ? "/>\n" : "><skipped message=\"not run\"/></testcase>\n",
                  out);
        }
    }
    fputs("</testsuite>\n", out);
    good = !ferror(out);
    return fclose(out) == 0 && good;
}
