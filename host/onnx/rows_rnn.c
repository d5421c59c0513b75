/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers, step by step.  The products with the inputs are one matmul for all steps. */
#include <math.h>
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

enum { MAX_STEPS = 1 << 14, MAX_GATES = 4 };

/* A layer; operands that do not depend on the direction. */
struct layer {
    uint32_t gates; /* rows of weights, in hidden sizes */
    uint32_t kind;  /* RNN_* */
    int64_t steps, batch, hidden;
    val *x;       /* [steps, batch, in] */
    val *lengths; /* [batch, 1]; NULL: all have all steps */
    double clip;  /* 0: none */
    uint32_t n_activations;
    val *hidden_start, *cell_start; /* [dirs, batch, hidden], NULL: zeros */
};

/* One direction of it. */
struct direction {
    uint32_t index;
    bool back;
    val *inputs;          /* [steps, batch, gates * hidden], with both biases where they just add */
    val *recurrent;       /* [hidden, gates * hidden] */
    val *recurrent_bias;  /* [gates * hidden] */
    val *peepholes;       /* [3 * hidden] or NULL */
    const char *names[3]; /* of the activations */
    double alpha[3], beta[3];
    val *h, *c;
};

/* ---- activations ---- */

static const struct activation {
    const char *name;
    double alpha, beta; /* where the node has none */
    uint32_t op;        /* of the table, FRIT_OP_unary; 0: see apply */
} activations[] = {
    {"Relu", 0, 0, FRIT_OP_relu},
    {"Tanh", 0, 0, FRIT_OP_tanh},
    {"Sigmoid", 0, 0, FRIT_OP_sigmoid},
    {"Softplus", 0, 0, FRIT_OP_softplus},
    {"Affine", 1, 0, 0},
    {"LeakyRelu", 0.01, 0, 0},
    {"ThresholdedRelu", 1, 0, 0},
    {"ScaledTanh", 1, 1, 0},
    {"HardSigmoid", 0.2, 0.5, 0},
    {"Elu", 1, 0, 0},
    {"Softsign", 0, 0, 0},
};

static const struct activation *find_activation(struct import_node *n, const char *name)
{
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        if (strcasecmp(activations[i].name, name) == 0)
            return &activations[i];
    }
    problem_node(n, "activation %.40s", name);
    return &activations[0];
}

static val *activate(struct import_node *n, const struct direction *d, uint32_t which, val *x)
{
    const struct activation *f = find_activation(n, d->names[which]);
    val *a = e_num(n, d->alpha[which]), *b = e_num(n, d->beta[which]), *zero = e_num(n, 0);

    if (f->op)
        return e_un(n, f->op, x);
    if (strcmp(f->name, "Affine") == 0)
        return e_add(n, e_mul(n, x, a), b);
    if (strcmp(f->name, "LeakyRelu") == 0)
        return e_bin(n, FRIT_OP_leaky_relu, x, a);
    if (strcmp(f->name, "ThresholdedRelu") == 0)
        return e_where(n, e_bin(n, FRIT_OP_ge, x, a), x, zero);
    if (strcmp(f->name, "ScaledTanh") == 0)
        return e_mul(n, e_un(n, FRIT_OP_tanh, e_mul(n, x, b)), a);
    if (strcmp(f->name, "HardSigmoid") == 0)
        return E_OP(n, FRIT_OP_hard_sigmoid, NULL, x, a, b);
    if (strcmp(f->name, "Elu") == 0)
        return e_where(n, e_bin(n, FRIT_OP_ge, x, zero), x, e_mul(n, e_un(n, FRIT_OP_expm1, x), a));
    return e_div(n, x, e_add(n, e_un(n, FRIT_OP_abs, x), e_num(n, 1)));
}

static void read_activations(struct import_node *n, const struct layer *layer, struct direction *d)
{
    static const char *const defaults[][3] = {[RNN_PLAIN] = {"Tanh"},
                                              [RNN_GRU] = {"Sigmoid", "Tanh"},
                                              [RNN_LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
    const Onnx__AttributeProto *names = attr_texts(n, "activations");
    const Onnx__AttributeProto *alphas = attr_floats(n, "activation_alpha");
    const Onnx__AttributeProto *betas = attr_floats(n, "activation_beta");

    for (uint32_t i = 0; i < layer->n_activations; i++) {
        uint32_t at = d->index * layer->n_activations + i;
        const struct activation *f;

        d->names[i] = defaults[layer->kind][i];
        if (names && at < names->n_strings)
            d->names[i] = arena_text(&n->import->arena, (const char *)names->strings[at].data,
                                     names->strings[at].len);
        if (!d->names[i])
            d->names[i] = "";
        f = find_activation(n, d->names[i]);
        d->alpha[i] = alphas && at < alphas->n_floats ? (double)alphas->floats[at] : f->alpha;
        d->beta[i] = betas && at < betas->n_floats ? (double)betas->floats[at] : f->beta;
    }
}

/* ---- parts ---- */

static val *clip(struct import_node *n, const struct layer *layer, val *x)
{
    if (layer->clip == 0)
        return x;
    return e_min(n, e_max(n, x, e_num(n, -layer->clip)), e_num(n, layer->clip));
}

/* The columns of gate k. */
static val *gate(struct import_node *n, const struct layer *layer, val *x, uint32_t k)
{
    return e_slice(n, x, e_rank(x) - 1, k * layer->hidden, (k + 1) * layer->hidden, 1);
}

static val *peephole(struct import_node *n, const struct layer *layer, const struct direction *d,
                     val *x, uint32_t k, val *cell)
{
    return d->peepholes ? e_add(n, x, e_mul(n, gate(n, layer, d->peepholes, k), cell)) : x;
}

/* ---- steps: each sets the new hidden state, and the cell's ---- */

static void step_plain(struct import_node *n, const struct layer *layer, struct direction *d,
                       val *x)
{
    x = e_add(n, x, e_matmul(n, d->h, d->recurrent));
    d->h = activate(n, d, 0, clip(n, layer, x));
}

/* Gates: update, reset, hidden. */
static void step_gru(struct import_node *n, const struct layer *layer, struct direction *d, val *x)
{
    bool after = attr_int(n, "linear_before_reset", 0) != 0;
    val *recurrent = e_matmul(n, d->h, d->recurrent), *update, *reset, *inner;

    update = activate(n, d, 0,
                      clip(n, layer, e_add(n, gate(n, layer, x, 0), gate(n, layer, recurrent, 0))));
    reset = activate(n, d, 0,
                     clip(n, layer, e_add(n, gate(n, layer, x, 1), gate(n, layer, recurrent, 1))));
    if (after) {
        inner = gate(n, layer, recurrent, 2);
        if (d->recurrent_bias)
            inner = e_add(n, inner, gate(n, layer, d->recurrent_bias, 2));
        inner = e_mul(n, reset, inner);
    } else {
        inner = e_matmul(n, e_mul(n, reset, d->h), gate(n, layer, d->recurrent, 2));
        if (d->recurrent_bias)
            inner = e_add(n, inner, gate(n, layer, d->recurrent_bias, 2));
    }
    inner = activate(n, d, 1, clip(n, layer, e_add(n, gate(n, layer, x, 2), inner)));
    d->h = e_add(n, e_mul(n, e_sub(n, e_num(n, 1), update), inner), e_mul(n, update, d->h));
}

/* Gates: input, output, forget, cell. */
static void step_lstm(struct import_node *n, const struct layer *layer, struct direction *d, val *x)
{
    bool coupled = attr_int(n, "input_forget", 0) != 0;
    val *in, *out, *forget, *cell;

    x = e_add(n, x, e_matmul(n, d->h, d->recurrent));
    in = peephole(n, layer, d, gate(n, layer, x, 0), 0, d->c);
    in = activate(n, d, 0, clip(n, layer, in));
    forget = peephole(n, layer, d, gate(n, layer, x, 2), 2, d->c);
    forget = coupled ? e_sub(n, e_num(n, 1), in) : activate(n, d, 0, clip(n, layer, forget));
    cell = activate(n, d, 1, clip(n, layer, gate(n, layer, x, 3)));
    d->c = e_add(n, e_mul(n, forget, d->c), e_mul(n, in, cell));
    out = peephole(n, layer, d, gate(n, layer, x, 1), 1, d->c);
    out = activate(n, d, 0, clip(n, layer, out));
    d->h = e_mul(n, out, activate(n, d, 2, d->c));
}

/* ---- a direction ---- */

/* The part of an operand for one direction, without that dim; NULL where it is absent. */
static val *part_in(struct import_node *n, uint32_t index, uint32_t direction)
{
    return e_has(n, index) ? e_take(n, e_in(n, index), 0, direction) : NULL;
}

static val *start_state(struct import_node *n, const struct layer *layer, val *states,
                        uint32_t index)
{
    if (states)
        return e_take(n, states, 0, index);
    return e_full(n, e_dtype(layer->x), e_num(n, 0), FRIT_SHAPE(layer->batch, layer->hidden));
}

static void begin_direction(struct import_node *n, const struct layer *layer, struct direction *d)
{
    int64_t columns = layer->gates * layer->hidden;
    val *weights = part_in(n, 1, d->index), *recurrent = part_in(n, 2, d->index);
    val *bias = part_in(n, 3, d->index), *split = NULL;

    read_activations(n, layer, d);
    d->recurrent = e_swap_last(n, recurrent);
    d->inputs = e_matmul(n, layer->x, e_swap_last(n, weights));
    if (bias) {
        d->inputs = e_add(n, d->inputs, e_slice(n, bias, 0, 0, columns, 1));
        split = e_slice(n, bias, 0, columns, 2 * columns, 1);
    }
    if (split && layer->kind == RNN_GRU) {
        /* The hidden gate's own is added where it is reset. */
        val *plain = e_slice(n, split, 0, 0, 2 * layer->hidden, 1);

        d->recurrent_bias = split;
        d->inputs =
            e_add(n, d->inputs, e_pad(n, plain, e_num(n, 0), NULL, (int64_t[]){layer->hidden}));
    } else if (split) {
        d->inputs = e_add(n, d->inputs, split);
    }
    d->h = start_state(n, layer, layer->hidden_start, d->index);
    if (layer->kind == RNN_LSTM) {
        d->c = start_state(n, layer, layer->cell_start, d->index);
        d->peepholes = part_in(n, 7, d->index);
    }
}

/* Runs all steps; `out` gets the hidden state of each as [1, batch, hidden], in the order of time.
 */
static void run_direction(struct import_node *n, const struct layer *layer, struct direction *d,
                          val **out)
{
    static void (*const steps[])(struct import_node * n, const struct layer *layer,
                                 struct direction *d, val *x) = {
        [RNN_PLAIN] = step_plain, [RNN_GRU] = step_gru, [RNN_LSTM] = step_lstm};

    for (int64_t k = 0; k < layer->steps && !n->failed; k++) {
        int64_t t = d->back ? layer->steps - 1 - k : k;
        val *h = d->h, *c = d->c, *runs, *y;

        steps[layer->kind](n, layer, d, e_take(n, d->inputs, 0, t));
        y = d->h;
        if (layer->lengths) {
            runs = e_bin(n, FRIT_OP_gt, layer->lengths, e_whole(n, t));
            y = e_where(n, runs, d->h, e_num(n, 0));
            d->h = e_where(n, runs, d->h, h);
            d->c = d->c ? e_where(n, runs, d->c, c) : NULL;
        }
        out[t] = e_unsqueeze(n, y, 0);
    }
}

/* ---- the layer ---- */

static bool read_layer(struct import_node *n, uint32_t kind, struct layer *layer)
{
    bool batch_first = attr_int(n, "layout", 0) != 0;
    val *x = e_in(n, 0), *recurrent = e_in(n, 2), *lengths = e_has(n, 4) ? e_in(n, 4) : NULL;
    static const uint32_t gates[] = {[RNN_PLAIN] = 1, [RNN_GRU] = 3, [RNN_LSTM] = 4};
    static const int64_t turn[] = {1, 0, 2};

    if (!x || !recurrent || !e_in(n, 1) || x->type.rank != 3 || recurrent->type.rank != 3) {
        problem_node(n, "operands 0 to 2 must have three dims");
        return false;
    }
    if (batch_first)
        x = e_permute(n, x, turn);
    if (!x)
        return false;
    *layer = (struct layer){.gates = gates[kind],
                            .kind = kind,
                            .steps = x->type.dims[0],
                            .batch = x->type.dims[1],
                            .hidden = recurrent->type.dims[2],
                            .x = x,
                            .clip = attr_float(n, "clip", 0),
                            .n_activations = kind == RNN_PLAIN ? 1
                                             : kind == RNN_GRU ? 2
                                                               : 3};
    if (lengths)
        layer->lengths = e_reshape(n, e_cast(n, lengths, FRIT_I64), FRIT_SHAPE(layer->batch, 1));
    if (e_has(n, 5))
        layer->hidden_start = batch_first ? e_permute(n, e_in(n, 5), turn) : e_in(n, 5);
    if (kind == RNN_LSTM && e_has(n, 6))
        layer->cell_start = batch_first ? e_permute(n, e_in(n, 6), turn) : e_in(n, 6);
    if (layer->steps < 1 || layer->steps > MAX_STEPS)
        problem_node(n, "%lld steps", (long long)layer->steps);
    return !n->failed;
}

static val *stack_two(struct import_node *n, uint32_t axis, val *const *xs, uint32_t count)
{
    val *parts[2] = {0};

    for (uint32_t i = 0; i < count; i++)
        parts[i] = e_unsqueeze(n, xs[i], axis);
    return e_cat(n, axis, parts, count);
}

void onnx_row_recurrent(struct import_node *n, uint32_t arg)
{
    const char *word = attr_text(n, "direction", "forward");
    bool both = strcmp(word, "bidirectional") == 0, back = strcmp(word, "reverse") == 0;
    bool batch_first = attr_int(n, "layout", 0) != 0;
    uint32_t count = both ? 2 : 1;
    val *y[2] = {0}, *h[2] = {0}, *c[2] = {0}, **outs;
    static const int64_t all[] = {2, 0, 1, 3}, last[] = {1, 0, 2};
    struct layer layer;

    if (!read_layer(n, arg, &layer))
        return;
    for (uint32_t i = 0; i < count; i++) {
        struct direction d = {.index = i, .back = back || i == 1};

        outs = import_alloc(n->import, (size_t)layer.steps * sizeof(val *));
        if (!outs)
            return;
        begin_direction(n, &layer, &d);
        run_direction(n, &layer, &d, outs);
        if (n->failed)
            return;
        y[i] = e_wants(n, 0) ? e_cat(n, 0, outs, (uint32_t)layer.steps) : NULL;
        h[i] = d.h;
        c[i] = d.c;
    }
    for (uint32_t i = 0; i < n->n_out && !n->failed; i++) {
        val *x;

        if (!e_wants(n, i))
            continue;
        x = i == 0 ? stack_two(n, 1, y, count) : stack_two(n, 0, i == 1 ? h : c, count);
        e_out(n, i, batch_first ? e_permute(n, x, i == 0 ? all : last) : x);
    }
}
