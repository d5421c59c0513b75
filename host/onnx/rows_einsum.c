/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: operands are combined from left to right; two of them by one matmul over the letters that
 * they share, once the letters that only one of them has and nobody needs are summed. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

enum {
    MAX_LABELS = FRIT_MAX_RANK,
    MAX_JOINED = 3 * MAX_LABELS + 1, /* bytes */
    MAX_TERMS = 16
};

/* A tensor with a letter per dim; an ellipsis has '0', '1', ... from its end. */
struct labelled {
    val *x;
    char labels[MAX_LABELS + 1];
};

static bool has(const char *labels, char label)
{
    return strchr(labels, label) != NULL;
}

/* Letters of one term; `rank` dims, or as many as there are letters for the output. */
static bool read_term(const char *text, size_t length, int64_t rank, uint32_t ellipsis, char *out)
{
    uint32_t count = 0, letters = 0;

    for (size_t i = 0; i < length; i++)
        letters += text[i] != '.' && text[i] != ' ';
    if (rank >= 0) {
        if (letters > rank || (letters < rank && !memmem(text, length, "...", 3)))
            return false;
        ellipsis = (uint32_t)(rank - letters);
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ')
            continue;
        if (text[i] == '.') {
            if (length - i < 3 || strncmp(text + i, "...", 3) != 0)
                return false;
            for (uint32_t k = 0; k < ellipsis; k++) {
                if (count == MAX_LABELS)
                    return false;
                out[count++] = (char)('0' + (ellipsis - 1 - k));
            }
            i += 2;
            continue;
        }
        if (count == MAX_LABELS || !isalpha((unsigned char)text[i]))
            return false;
        out[count++] = text[i];
    }
    out[count] = '\0';
    return true;
}

/* A letter that stands twice in a term takes the diagonal. */
static void take_diagonals(struct import_node *n, struct labelled *t)
{
    for (uint32_t i = 0; t->labels[i] && !n->failed; i++) {
        char *again = strchr(t->labels + i + 1, t->labels[i]);
        uint32_t k = again ? (uint32_t)(again - t->labels) : 0;
        val *rows, *columns;
        frit_dims line = {.rank = e_rank(t->x)};

        if (!again)
            continue;
        for (uint32_t d = 0; d < line.rank; d++)
            line.dim[d] = 1;
        line.dim[i] = t->x->type.dims[i];
        rows = e_reshape(n, e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), line.dim[i]), line);
        line.dim[i] = 1;
        line.dim[k] = t->x->type.dims[k];
        columns =
            e_reshape(n, e_arange(n, FRIT_I64, e_whole(n, 0), e_whole(n, 1), line.dim[k]), line);
        t->x = e_where(n, e_bin(n, FRIT_OP_eq, rows, columns), t->x, e_whole(n, 0));
        t->x = e_reduce(n, FRIT_OP_sum, t->x, FRIT_AXES(k), false);
        memmove(again, again + 1, strlen(again));
        i--;
    }
}

/* Sums the letters that are not kept. */
static void sum_out(struct import_node *n, struct labelled *t, const char *kept)
{
    frit_axes axes = {0};
    uint32_t used = 0;

    for (uint32_t i = 0; t->labels[i]; i++) {
        if (!has(kept, t->labels[i]))
            axes.axis[axes.count++] = i;
    }
    if (axes.count)
        t->x = e_reduce(n, FRIT_OP_sum, t->x, axes, false);
    for (uint32_t i = 0; t->labels[i]; i++) {
        if (has(kept, t->labels[i]))
            t->labels[used++] = t->labels[i];
    }
    t->labels[used] = '\0';
}

/* Dims in the order of `order`; letters that it lacks get an extent of 1. */
static val *arrange(struct import_node *n, const struct labelled *t, const char *order)
{
    int64_t moves[FRIT_MAX_RANK] = {0};
    uint32_t rank = 0, count = (uint32_t)strlen(order);
    frit_dims dims = {.rank = count};
    val *x;

    for (uint32_t i = 0; i < count; i++) {
        const char *at = strchr(t->labels, order[i]);

        if (at)
            moves[rank++] = at - t->labels;
    }
    x = e_permute(n, t->x, moves);
    for (uint32_t i = 0, k = 0; i < count && x; i++)
        dims.dim[i] = has(t->labels, order[i]) ? x->type.dims[k++] : 1;
    return e_reshape(n, x, dims);
}

static int64_t extent_of(const struct labelled *t, char label)
{
    const char *at = strchr(t->labels, label);

    return at && t->x ? t->x->type.dims[at - t->labels] : 1;
}

/* The letters of `from` that are, and are not, in the others. */
static void choose(const char *from, const char *with, bool in_with, const char *kept, bool in_kept,
                   char *out)
{
    uint32_t count = 0;

    for (; *from; from++) {
        if (has(with, *from) == in_with && has(kept, *from) == in_kept)
            out[count++] = *from;
    }
    out[count] = '\0';
}

static int64_t product(const struct labelled *a, const struct labelled *b, const char *labels)
{
    int64_t total = 1;

    for (; *labels; labels++) {
        int64_t one = extent_of(a, *labels), other = b ? extent_of(b, *labels) : one;

        total *= one > other ? one : other;
    }
    return total;
}

/* Extents of 1 of shared letters broadcast. */
static void widen(struct import_node *n, struct labelled *t, const struct labelled *other)
{
    frit_dims dims = e_dims(t->x);

    for (uint32_t i = 0; t->labels[i]; i++) {
        int64_t extent = extent_of(other, t->labels[i]);

        dims.dim[i] = dims.dim[i] == 1 ? extent : dims.dim[i];
    }
    t->x = e_expand(n, t->x, dims);
}

/* The letters of three lists, one after another, in `to`, of MAX_JOINED bytes. */
static char *join(char *to, const char *a, const char *b, const char *c)
{
    snprintf(to, MAX_JOINED, "%s%s%s", a, b, c);
    return to;
}

/* a becomes the product of both, without the letters that are not kept. */
static void combine(struct import_node *n, struct labelled *a, struct labelled *b, const char *kept)
{
    char batch[MAX_LABELS + 1], summed[MAX_LABELS + 1], left[MAX_LABELS + 1], right[MAX_LABELS + 1];
    char order[MAX_JOINED] = "";
    frit_dims dims = {0};
    val *x, *y;

    take_diagonals(n, b);
    widen(n, a, b);
    widen(n, b, a);
    if (n->failed)
        return;
    choose(a->labels, b->labels, true, kept, true, batch);
    choose(a->labels, b->labels, true, kept, false, summed);
    choose(a->labels, b->labels, false, kept, true, left);
    choose(b->labels, a->labels, false, kept, true, right);
    if (strlen(batch) + strlen(left) + strlen(right) > FRIT_MAX_RANK) {
        problem_node(n, "more than %d letters at once", FRIT_MAX_RANK);
        return;
    }
    /* What neither the result nor the other operand has. */
    sum_out(n, a, join(order, batch, summed, left));
    sum_out(n, b, join(order, batch, summed, right));
    x = arrange(n, a, join(order, batch, left, summed));
    x = e_reshape(n, x,
                  FRIT_SHAPE(product(a, b, batch), product(a, NULL, left), product(a, b, summed)));
    y = arrange(n, b, join(order, batch, summed, right));
    y = e_reshape(n, y,
                  FRIT_SHAPE(product(a, b, batch), product(a, b, summed), product(b, NULL, right)));
    x = e_matmul(n, x, y);
    join(order, batch, left, right);
    for (const char *label = order; *label; label++)
        dims.dim[dims.rank++] =
            has(a->labels, *label) ? extent_of(a, *label) : extent_of(b, *label);
    a->x = e_reshape(n, x, dims);
    memcpy(a->labels, order, strlen(order) + 1);
}

/* The letters of the result where the equation has no arrow: those that stand once, sorted. */
static void implicit_output(const struct labelled *terms, uint32_t count, char *out)
{
    uint32_t used = 0;

    for (int label = '9'; label >= '0'; label--) {
        for (uint32_t i = 0; i < count; i++) {
            if (has(terms[i].labels, (char)label)) {
                out[used++] = (char)label;
                break;
            }
        }
    }
    for (int label = 'A'; label <= 'z' && used < MAX_LABELS; label++) {
        uint32_t times = 0;

        for (uint32_t i = 0; i < count; i++) {
            for (const char *at = terms[i].labels; *at; at++)
                times += *at == label;
        }
        if (times == 1)
            out[used++] = (char)label;
    }
    out[used] = '\0';
}

void onnx_row_einsum(struct import_node *n, uint32_t arg)
{
    const char *text = attr_text(n, "equation", ""), *arrow = strstr(text, "->"), *at = text;
    struct labelled *terms = import_alloc(n->import, (n->n_in + 1) * sizeof(*terms));
    char out[MAX_LABELS + 1] = "", kept[(MAX_TERMS + 1) * MAX_LABELS + 1];
    uint32_t ellipsis = 0;

    (void)arg;
    if (!terms || !e_in(n, 0) || n->n_in > MAX_TERMS) {
        problem_node(n, "no operands, or too many");
        return;
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        size_t length = strcspn(at, ",-");

        terms[i].x = e_in(n, i);
        if (!terms[i].x || !read_term(at, length, e_rank(terms[i].x), 0, terms[i].labels)) {
            problem_node(n, "equation '%.60s' does not fit operand %u", text, i);
            return;
        }
        for (const char *label = terms[i].labels; *label; label++) {
            if (*label >= '0' && *label <= '9' && (uint32_t)(*label - '0') + 1 > ellipsis)
                ellipsis = (uint32_t)(*label - '0') + 1;
        }
        at += length + (at[length] == ',');
    }
    if (!arrow)
        implicit_output(terms, n->n_in, out);
    else if (!read_term(arrow + 2, strlen(arrow + 2), -1, ellipsis, out)) {
        problem_node(n, "equation '%.60s'", text);
        return;
    }
    take_diagonals(n, &terms[0]);
    for (uint32_t i = 1; i < n->n_in && !n->failed; i++) {
        int used = snprintf(kept, sizeof(kept), "%s", out);

        for (uint32_t k = i + 1; k < n->n_in; k++)
            used += snprintf(kept + used, sizeof(kept) - (size_t)used, "%s", terms[k].labels);
        combine(n, &terms[0], &terms[i], kept);
    }
    if (n->failed)
        return;
    sum_out(n, &terms[0], out);
    e_out(n, 0, arrange(n, &terms[0], out));
}
