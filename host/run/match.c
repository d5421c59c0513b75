/* SPDX-License-Identifier: Apache-2.0 */
#include "run/match.h"

#include "base/fail.h"
#include "base/str.h"
#include "graph/decompose/decompose.h"
#include "plan/automaton.h"
#include "plan/key.h"
#include "plan/walker.h"
#include "record/segment.h"
#include "run/explore.h"

/* The walker goes where it was after the last op of the confirmed prefix. */
static bool take_prefix(struct segment *segment, struct walker *walker)
{
    if (segment->n_matched >= segment->n_confirmed)
        return false;
    walker->node = segment->ops[segment->n_confirmed - 1]->node;
    walker->depth += segment->n_confirmed - segment->n_matched;
    segment->n_matched = segment->n_confirmed;
    return true;
}

bool match_predicted(struct segment *segment, struct walker *walker)
{
    const struct recorded_op *op;

    if (take_prefix(segment, walker))
        return true;
    op = segment->ops[segment->n_matched];
    if (!op->confirmed || op->n_confirmed_dead != op->n_dead ||
        segment->n_predicted <= segment->n_matched || segment->serial != walker->serial)
        return false;
    walker->node = op->node;
    walker->depth++;
    segment->n_matched++;
    return true;
}

bool match_needs_form(struct segment *segment)
{
    struct recorded_op *op = segment->ops[segment->n_matched];

    if (op->confirmed)
        op->n_dead = op->n_confirmed_dead;
    op->confirmed = op->search_continues = false;
    segment->on_prediction = false; /* nor are later ops, until this one is matched */
    return decompose_has(op->op, op->n_in) || decompose_has_other(op->op);
}

/* Interns the attributes of ops that are not matched yet in the new generation, too. */
static void renew_attrs(struct segment *segment, struct walker *walker)
{
    for (uint32_t r = segment->n_matched; r < segment->n_ops; r++) {
        struct recorded_op *op = segment->ops[r];

        if (op->attrs_id)
            op->attrs_id = key_attrs(walker, op->op, op->attrs);
    }
}

/* The walker stands where the next op leads: what was predicted after another node is not. */
static void take(struct segment *segment, struct walker *walker)
{
    struct recorded_op *op = segment->ops[segment->n_matched];

    if (op->node != walker->node || segment->serial != walker->serial)
        segment->n_predicted = 0;
    op->node = walker->node;
    segment->serial = walker->serial;
    segment->n_matched++;
}

void match_key(struct segment *segment, struct walker *walker, const struct segment_expansion *form)
{
    struct op_key key;

    if (segment->serial != walker->serial)
        renew_attrs(segment, walker);
    if (segment_key(segment, segment->n_matched, form, walker, &key)) {
        walker_step(walker, &key);
        take(segment, walker);
    } else {
        match_off_trie(segment, walker);
    }
}

void match_off_trie(struct segment *segment, struct walker *walker)
{
    segment_skip_key(segment, segment->n_matched);
    walker->node = NULL;
    take(segment, walker);
}

void match_expanded(struct explorer *explorer, frit_device *device, struct segment *segment,
                    struct walker *walker)
{
    struct segment_expansion form;
    struct str bytes = {0};
    frit_err err = ERR_INIT;

    if (!match_needs_form(segment))
        match_key(segment, walker, NULL);
    else if (explorer_form(explorer, device, segment, segment->n_matched, &bytes, &form, &err))
        match_off_trie(segment, walker);
    else
        match_key(segment, walker, bytes.length ? &form : NULL);
    str_fini(&bytes);
}
