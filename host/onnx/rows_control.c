/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow that is decided while the model is translated: a condition is known, a loop is
 * unrolled. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

enum { MAX_ITERATIONS = 1 << 14 };

void onnx_row_if(struct import_node *n, uint32_t arg)
{
    bool truth = e_int(n, 0, 0) != 0;
    const Onnx__GraphProto *branch = attr_graph(n, truth ? "then_branch" : "else_branch");
    val *out[NODE_MAX_OUT] = {0};

    (void)arg;
    e_in(n, 0);
    if (!branch)
        problem_node(n, "a branch is missing");
    if (n->failed || !import_subgraph(n, branch, NULL, 0, out, n->n_out))
        return;
    for (uint32_t i = 0; i < n->n_out; i++)
        e_out(n, i, out[i]);
}

/* What a loop collects from each iteration. */
struct collection {
    val **parts; /* one per iteration */
    uint32_t count, capacity;
};

static bool collect(struct import_node *n, struct collection *c, val *part)
{
    val **more;

    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 16;
        more = import_alloc(n->import, c->capacity * sizeof(val *));
        if (!more)
            return false;
        if (c->count)
            memcpy(more, c->parts, c->count * sizeof(val *));
        c->parts = more;
    }
    c->parts[c->count++] = part;
    return true;
}

/* The parts along a new axis. */
static val *join(struct import_node *n, const struct collection *c, uint32_t axis)
{
    val **parts = import_alloc(n->import, (c->count + 1) * sizeof(val *));

    if (!c->count) {
        problem_node(n, "a result collected over no iterations has no dims");
        return NULL;
    }
    for (uint32_t i = 0; parts && i < c->count; i++)
        parts[i] = e_unsqueeze(n, c->parts[i], axis);
    return parts && !n->failed ? e_cat(n, axis, parts, c->count) : NULL;
}

/* Whether the condition that an iteration gives says to go on. */
static bool goes_on(struct import_node *n, const val *condition)
{
    if (condition && condition->data && condition->type.dtype == FRIT_BOOL)
        return *(const unsigned char *)condition->data != 0;
    problem_node(n,
                 "the condition to go on is computed when the loop runs; it must be known before");
    return false;
}

/* operands: count, condition, states; the body maps number, condition, states to condition, states,
 * what is collected */
void onnx_row_loop(struct import_node *n, uint32_t arg)
{
    const Onnx__GraphProto *body = attr_graph(n, "body");
    uint32_t states = n->n_in > 2 ? n->n_in - 2 : 0;
    uint32_t collected = n->n_out > states ? n->n_out - states : 0;
    int64_t most = e_int(n, 0, MAX_ITERATIONS + 1);
    bool on = e_int(n, 1, 1) != 0;
    struct collection parts[NODE_MAX_OUT] = {{0}};
    val *in[NODE_MAX_OUT + 2] = {0}, *out[NODE_MAX_OUT + 2] = {0};

    (void)arg;
    if (n->failed || !body || states + collected > NODE_MAX_OUT) {
        problem_node(n, "there is no body, or too many states");
        return;
    }
    for (uint32_t i = 0; i < states; i++)
        in[2 + i] = e_in(n, 2 + i);
    for (int64_t k = 0; on && k < most && !n->failed; k++) {
        if (k > MAX_ITERATIONS) {
            problem_node(n, "more than %d iterations", MAX_ITERATIONS);
            return;
        }
        in[0] = e_reshape(n, e_known_ints(n, FRIT_I64, &k, 1), FRIT_RANK0);
        in[1] = e_known(n, FRIT_BOOL, 1);
        if (!import_subgraph(n, body, in, 2 + states, out, 1 + states + collected))
            return;
        for (uint32_t i = 0; i < states; i++)
            in[2 + i] = out[1 + i];
        for (uint32_t i = 0; i < collected; i++) {
            if (!collect(n, &parts[i], out[1 + states + i]))
                return;
        }
        on = k + 1 < most && goes_on(n, out[0]);
    }
    for (uint32_t i = 0; i < states; i++)
        e_out(n, i, in[2 + i]);
    for (uint32_t i = 0; i < collected; i++) {
        if (e_wants(n, states + i))
            e_out(n, states + i, join(n, &parts[i], 0));
    }
}

/* ---- scan ---- */

/* Entry `index` of a list of axes or directions, 0 where there is no list. */
static int64_t entry(struct import_node *n, const char *attr, uint32_t index)
{
    struct ints list;

    return attr_ints(n, attr, &list) && index < list.count ? list.at[index] : 0;
}

/* A scan that is being translated: the body maps states and one slice of each scanned operand to
 * states and what is collected. */
struct scan {
    const Onnx__GraphProto *body;
    uint32_t states, n_in, collected;
    val *from[NODE_MAX_OUT]; /* the scanned operands, after the states' places */
    uint32_t axes[NODE_MAX_OUT];
    bool back[NODE_MAX_OUT]; /* from the axis's end to its start */
    int64_t length;
    val *in[NODE_MAX_OUT]; /* of the body: first the states */
    struct collection parts[NODE_MAX_OUT];
};

/* Reads counts; `first` is the operand from which on states and scanned ones come. */
static bool scan_read(struct import_node *n, struct scan *s, uint32_t first)
{
    const int64_t scanned = attr_int(n, "num_scan_inputs", 0);

    *s = (struct scan){.body = attr_graph(n, "body")};
    s->n_in = n->n_in > first ? n->n_in - first : 0;
    if (!s->body || scanned < 1 || scanned > s->n_in || s->n_in - (uint32_t)scanned > n->n_out ||
        s->n_in > NODE_MAX_OUT) {
        problem_node(n, "num_scan_inputs %lld of %u operands", (long long)scanned, s->n_in);
        return false;
    }
    s->states = s->n_in - (uint32_t)scanned;
    s->collected = n->n_out - s->states;
    return true;
}

static bool scan_run(struct import_node *n, struct scan *s)
{
    val *out[NODE_MAX_OUT] = {0};

    for (int64_t t = 0; t < s->length && !n->failed; t++) {
        for (uint32_t i = s->states; i < s->n_in; i++)
            s->in[i] = e_take(n, s->from[i], s->axes[i], s->back[i] ? s->length - 1 - t : t);
        if (n->failed ||
            !import_subgraph(n, s->body, s->in, s->n_in, out, s->states + s->collected))
            return false;
        memcpy(s->in, out, s->states * sizeof(val *));
        for (uint32_t i = 0; i < s->collected; i++) {
            if (!collect(n, &s->parts[i], out[s->states + i]))
                return false;
        }
    }
    return !n->failed;
}

void onnx_row_scan(struct import_node *n, uint32_t arg)
{
    struct scan s;

    (void)arg;
    if (!scan_read(n, &s, 0))
        return;
    for (uint32_t i = 0; i < s.n_in; i++) {
        s.in[i] = s.from[i] = e_in(n, i);
        if (!s.in[i] || i < s.states)
            continue;
        s.axes[i] = e_axis(n, entry(n, "scan_input_axes", i - s.states), s.in[i]->type.rank);
        s.back[i] = entry(n, "scan_input_directions", i - s.states) != 0;
        if (!n->failed && (i == s.states || s.in[i]->type.dims[s.axes[i]] < s.length))
            s.length = s.in[i]->type.dims[s.axes[i]];
    }
    if (!scan_run(n, &s))
        return;
    for (uint32_t i = 0; i < s.states; i++)
        e_out(n, i, s.in[i]);
    for (uint32_t i = 0; i < s.collected; i++) {
        uint32_t rank = s.parts[i].count ? e_rank(s.parts[i].parts[0]) + 1 : 1;
        uint32_t axis = e_axis(n, entry(n, "scan_output_axes", i), rank);
        val *y = n->failed ? NULL : join(n, &s.parts[i], axis);

        if (y && entry(n, "scan_output_directions", i))
            y = e_flip(n, y, axis);
        e_out(n, s.states + i, y);
    }
}

/* One entry of the batch, whose states and collected results are added to `results`. */
static bool scan_entry(struct import_node *n, struct scan *s, int64_t batch,
                       struct collection *results)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        s->in[i] = s->from[i] = e_take(n, e_in(n, 1 + i), 0, batch);
        s->axes[i] = 0;
        s->back[i] = i >= s->states && entry(n, "directions", i - s->states) != 0;
        if (n->failed || (i >= s->states && !s->from[i]->type.rank)) {
            problem_node(n, "a scanned operand has no dims of a batch and a sequence");
            return false;
        }
        if (i >= s->states && (i == s->states || s->from[i]->type.dims[0] < s->length))
            s->length = s->from[i]->type.dims[0];
    }
    memset(s->parts, 0, sizeof(s->parts));
    if (!scan_run(n, s))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        val *y = i < s->states ? s->in[i] : join(n, &s->parts[i - s->states], 0);

        if (n->failed || !collect(n, &results[i], y))
            return false;
    }
    return true;
}

/* Opset 8: a batch dim before all others, each of whose entries is scanned alone.  Operand 0 has
 * their lengths. */
void onnx_row_scan_batch(struct import_node *n, uint32_t arg)
{
    struct collection results[NODE_MAX_OUT] = {{0}};
    struct scan s;
    val *first;

    (void)arg;
    if (e_has(n, 0)) {
        problem_node(n, "sequences of different lengths");
        return;
    }
    if (!scan_read(n, &s, 1))
        return;
    first = e_in(n, 1);
    if (!first || !first->type.rank || first->type.dims[0] > MAX_ITERATIONS) {
        problem_node(n, "there is no batch dim, or one of more than %d entries", MAX_ITERATIONS);
        return;
    }
    for (int64_t b = 0; b < first->type.dims[0]; b++) {
        if (!scan_entry(n, &s, b, results))
            return;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        e_out(n, i, join(n, &results[i], 0));
}
