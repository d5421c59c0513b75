/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks compare digests.  Only if these differ, or a rank has failed, do they exchange texts: a
 * text of each rank is its lines, each ended by a 0, or its failure. */
#include "dist/agree.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "dist/exchange.h"
#include "run/rank.h"

enum { LINE = 512 };

/* What a rank gives first. */
enum { WORD_STATUS, WORD_DIGEST, WORD_BYTES /* of its text */, N_WORDS };

/* The texts of all ranks, in slots of the same size. */
struct texts {
    const int64_t *words; /* N_WORDS of each rank */
    char *text;
    uint64_t size; /* of a slot, a multiple of 8 */
    uint32_t n;    /* ranks */
};

static void make_text(const struct schedule *schedule, const frit_err *own, struct str *out)
{
    char line[LINE];

    if (own->status) {
        str_add(out, own->text, strlen(own->text) + 1);
        return;
    }
    for (uint32_t i = 0; i <= schedule->n_params; i++) {
        schedule_line(schedule, i, line, sizeof(line));
        str_add(out, line, strlen(line) + 1);
    }
}

/* ---- what differs ---- */

/* The line at `number` of a rank, counted from 0; NULL: it has fewer. */
static const char *line_of(const struct texts *t, uint32_t rank, uint32_t number)
{
    const char *at = t->text + rank * t->size;
    const char *end = at + t->words[rank * N_WORDS + WORD_BYTES];

    for (; number && at < end; number--)
        at += strlen(at) + 1;
    return at < end ? at : NULL;
}

/* The first rank whose line is not that of rank 0; 0: all are. */
static uint32_t differing(const struct texts *t, uint32_t number)
{
    const char *first = line_of(t, 0, number);

    for (uint32_t r = 1; r < t->n; r++) {
        const char *other = line_of(t, r, number);

        if ((first == NULL) != (other == NULL) || (first && strcmp(first, other) != 0))
            return r;
    }
    return 0;
}

static frit_status fail_count(const struct texts *t, uint32_t rank, uint32_t number, frit_err *err)
{
    const char *first = line_of(t, 0, number);

    if (first)
        return fail(err, FRIT_MISMATCH,
                    "rank %u has fewer parameters than rank 0, whose parameter %u is %s", rank,
                    number - 1, first);
    return fail(err, FRIT_MISMATCH,
                "rank %u has more parameters than rank 0: its parameter %u is %s", rank, number - 1,
                line_of(t, rank, number));
}

static frit_status explain(const struct texts *t, frit_err *err)
{
    uint32_t number = 0, rank;

    while (!(rank = differing(t, number)) && line_of(t, 0, number))
        number++;
    if (!rank)
        return fail(err, FRIT_INTERNAL, "equal parameters have different digests");
    if (!line_of(t, 0, number) || !line_of(t, rank, number))
        return fail_count(t, rank, number, err);
    if (!number)
        return fail(err, FRIT_MISMATCH, "rank %u's configuration is '%s', rank 0's is '%s'", rank,
                    line_of(t, rank, 0), line_of(t, 0, 0));
    return fail(err, FRIT_MISMATCH, "rank %u's parameter %u is %s, rank 0's is %s", rank,
                number - 1, line_of(t, rank, number), line_of(t, 0, number));
}

static frit_status judge(const struct texts *t, const frit_err *own, frit_err *err)
{
    if (own->status)
        return fail(err, own->status, "%s", own->text);
    for (uint32_t r = 0; r < t->n; r++) {
        const frit_status status = (frit_status)t->words[r * N_WORDS + WORD_STATUS];

        if (status)
            return fail(err, status, "rank %u: %s", r, t->text + r * t->size);
    }
    return explain(t, err);
}

/* ---- exchanging ---- */

static bool all_equal(const int64_t *words, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        if (words[r * N_WORDS + WORD_STATUS] ||
            words[r * N_WORDS + WORD_DIGEST] != words[WORD_DIGEST])
            return false;
    }
    return true;
}

static frit_status exchange_texts(struct frit_rank *rank, frit_device *device, const int64_t *words,
                                  const struct str *mine, const frit_err *own, frit_err *err)
{
    struct texts t = {.words = words, .n = rank->size};
    char *padded;
    frit_status st;

    for (uint32_t r = 0; r < t.n; r++) {
        const uint64_t bytes = ((uint64_t)words[r * N_WORDS + WORD_BYTES] + 7) / 8 * 8;

        t.size = bytes > t.size ? bytes : t.size;
    }
    padded = calloc(1, t.size);
    t.text = calloc(t.n, t.size);
    if (!padded || !t.text) {
        st = fail_memory(err, t.n * t.size);
    } else {
        memcpy(padded, mine->text, mine->length);
        st = exchange_words(rank, device, (const int64_t *)(void *)padded, t.size / 8,
                            (int64_t *)(void *)t.text, err);
    }
    if (!st)
        st = judge(&t, own, err);
    free(padded);
    free(t.text);
    return st;
}

frit_status agree(struct frit_rank *rank, frit_device *device, const struct schedule *schedule,
                  const frit_err *own, frit_err *err)
{
    int64_t *words = calloc(rank->size, N_WORDS * sizeof(*words));
    struct str mine = {0};
    frit_status st;

    make_text(schedule, own, &mine);
    if (!words || mine.failed) {
        st = fail_memory(err, rank->size * N_WORDS * sizeof(*words));
    } else {
        const int64_t have[N_WORDS] = {[WORD_STATUS] = own->status,
                                       [WORD_DIGEST] = (int64_t)schedule->digest,
                                       [WORD_BYTES] = (int64_t)mine.length};

        st = exchange_words(rank, device, have, N_WORDS, words, err);
        if (!st && !all_equal(words, rank->size))
            st = exchange_texts(rank, device, words, &mine, own, err);
    }
    free(words);
    str_fini(&mine);
    return st;
}
