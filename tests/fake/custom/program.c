/* SPDX-License-Identifier: Apache-2.0 */
/* Programs run node after node inside submit; what an op with effects says is a line of the log. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "custom.h"

struct program {
    const struct fake *fake;
    struct recipe recipe;
};

/* ---- which ops ---- */

static bool is_named(const frit_op_desc *op, const char *name)
{
    return op->id >= FRIT_OP_CUSTOM && FRIT_HAS(op, frit_op_desc, name) && op->rev == 1 &&
           op->name.len == strlen(name) && memcmp(op->name.ptr, name, strlen(name)) == 0;
}

static bool all_alike(const frit_op_desc *op)
{
    const frit_operand *first = frit_operand_at(op, op->in, 0);

    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const frit_operand *at = i < op->n_in ? frit_operand_at(op, op->in, i)
                                              : frit_operand_at(op, op->out, i - op->n_in);

        if (at->kind != FRIT_OPERAND_TENSOR || at->dtype != FRIT_F32 || at->rank != first->rank ||
            memcmp(at->extent, first->extent, at->rank * sizeof(at->extent[0])) != 0)
            return false;
    }
    return true;
}

enum what what_of(const frit_op_desc *op)
{
    static const struct {
        const char *name;
        enum what what;
    } custom[] = {{CUSTOM_AXPBY, WHAT_AXPBY}, {CUSTOM_TICK, WHAT_TICK}, {CUSTOM_NOTE, WHAT_NOTE}};

    if (is_named(op, CUSTOM_SCALE))
        return frit_operand_at(op, op->in, 0)->dtype == FRIT_F32 ? WHAT_SCALE : WHAT_NOTHING;
    if (!op->n_in || !all_alike(op))
        return WHAT_NOTHING;
    for (size_t i = 0; i < sizeof(custom) / sizeof(custom[0]); i++)
        if (is_named(op, custom[i].name))
            return custom[i].what;
    return op->id == FRIT_OP_add    ? WHAT_ADD
           : op->id == FRIT_OP_mul  ? WHAT_MUL
           : op->id == FRIT_OP_neg  ? WHAT_NEG
           : op->id == FRIT_OP_copy ? WHAT_COPY
                                    : WHAT_NOTHING;
}

uint32_t scalars_of(enum what what)
{
    return what == WHAT_AXPBY ? 2 : what == WHAT_SCALE;
}

/* ---- running ---- */

static float *data_of(const frit_arg *arg)
{
    return (float *)(void *)((char *)arg->memory + arg->offset + arg->origin);
}

static int64_t count_of(const frit_arg *arg)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < arg->rank; i++)
        count *= arg->dims[i];
    return count;
}

static float scalar_at(const frit_launch *launch, uint32_t index)
{
    double x;

    memcpy(&x, &launch->scalars[index].bits, sizeof(x));
    return (float)x;
}

static void say(const struct program *program, const char *what, float first)
{
    char text[64];

    snprintf(text, sizeof(text), "%s %g", what, (double)first);
    program->fake->core->log(program->fake->host->self, FRIT_LOG_WARN, FRIT_STR("effect"),
                             (frit_str){text, strlen(text)});
}

/* Where element `at` in row-major order lies. */
static int64_t place_in(const frit_arg *arg, int64_t at)
{
    int64_t place = 0;

    for (uint32_t d = arg->rank; d-- > 0; at /= arg->dims[d])
        place += at % arg->dims[d] * arg->strides[d];
    return place;
}

static float load(const frit_arg *arg, int64_t at)
{
    return data_of(arg)[place_in(arg, at)];
}

/* CUSTOM_WRONG: axpby takes beta for 1. */
static float axpby(const frit_launch *launch, uint32_t first_scalar, const float in[2])
{
    float beta = CUSTOM_WRONG ? 1 : scalar_at(launch, first_scalar + 1);

    return scalar_at(launch, first_scalar) * in[0] + beta * in[1];
}

static float input(const frit_launch *launch, const struct place *place, const float *results,
                   int64_t at)
{
    if (place->kind == KIND_ARG)
        return load(frit_arg_at(launch, place->index), at);
    if (place->kind == KIND_NODE)
        return results[place->index];
    return place->kind == KIND_SCALAR ? scalar_at(launch, place->index) : 0;
}

/* One element of each node after the other: nodes are elementwise. */
static void run_element(const struct program *program, const frit_launch *launch, int64_t at)
{
    float result[MAX_NODES];

    for (uint32_t i = 0; i < program->recipe.n_nodes; i++) {
        const struct node *node = &program->recipe.nodes[i];
        float in[2] = {0, 0};

        for (int k = 0; k < 2; k++)
            in[k] = input(launch, &node->in[k], result, at);
        if (at == 0 && (node->what == WHAT_TICK || node->what == WHAT_NOTE))
            say(program, node->what == WHAT_TICK ? "tick" : "note", in[0]);
        result[i] = node->what == WHAT_ADD                               ? in[0] + in[1]
                    : node->what == WHAT_MUL || node->what == WHAT_SCALE ? in[0] * in[1]
                    : node->what == WHAT_NEG                             ? -in[0]
                    : node->what == WHAT_AXPBY ? axpby(launch, node->first_scalar, in)
                                               : in[0];
        if (node->stored) {
            const frit_arg *out = frit_arg_at(launch, node->stored - 1);

            data_of(out)[place_in(out, at)] = result[i];
        }
    }
}

frit_status custom_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    const struct fake *fake = fake_of(self);
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        const frit_cmd *cmd =
            (const frit_cmd *)(const void *)((const char *)cmds + (size_t)stride * i);
        frit_cmd plain = *cmd;

        if (cmd->kind == FRIT_CMD_LAUNCH) {
            const frit_launch *launch = cmd->launch;
            const struct program *program = launch->program->self;

            if (program->recipe.nodes[0].what == WHAT_NOTE &&
                isnan(*data_of(frit_arg_at(launch, 0))))
                return fake_fail(fake, err, FRIT_IO, "a NaN is nothing to note");
            for (int64_t at = 0; at < count_of(frit_arg_at(launch, 0)); at++)
                run_element(program, launch, at);
            plain.kind = FRIT_CMD_BARRIER;
        }
        st = fake->plain.submit(self, queue, &plain, 1, sizeof(plain), waits, n_waits, value, err);
    }
    return st;
}

/* ---- the table of a program ---- */

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    static const frit_candidate only = {.struct_size = sizeof(only), .identity = {"only", 4}};
    const struct program *program = self;

    (void)err;
    out->n_candidates = 1;
    out->candidate_stride = sizeof(only);
    out->n_ops = program->recipe.n_nodes;
    out->name = FRIT_STR("custom");
    out->candidates = &only;
    return FRIT_OK;
}

static bool is_dense(const frit_arg_sig *arg)
{
    int64_t stride = 1;

    for (uint32_t d = arg->rank; d-- > 0;) {
        if (arg->dims[d] != 1 && arg->strides[d] != stride)
            return false;
        stride *= arg->dims[d];
    }
    return true;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    static const frit_phase phase = {{1, 1, 1}, {1, 1, 1}};
    const struct program *program = self;

    (void)candidate;
    (void)variant;
    for (uint32_t i = 0; i < sig->n_in; i++) {
        const frit_arg_sig *arg = (const frit_arg_sig *)(const void *)((const char *)sig->args +
                                                                       (size_t)sig->arg_stride * i);

        if (!is_dense(arg) && program->recipe.nodes[0].what != WHAT_COPY)
            return fake_fail(program->fake, err, FRIT_UNSUPPORTED, "dense operands only");
    }
    out->n_phases = 1;
    out->phases = &phase;
    return FRIT_OK;
}

static void destroy(void *self)
{
    const struct program *program = self;

    program->fake->core->mem_free(program->fake->host->self, self);
}

static frit_status to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct program *program = self;

    (void)err;
    if (*n_bytes >= sizeof(program->recipe))
        memcpy(bytes, &program->recipe, sizeof(program->recipe));
    *n_bytes = sizeof(program->recipe);
    return FRIT_OK;
}

frit_status program_make(const struct fake *fake, const struct recipe *recipe, frit_program *out,
                         frit_err *err)
{
    static const frit_program_table table = {.struct_size =
                                                 FRIT_END_OF(frit_program_table, to_state),
                                             .describe = describe,
                                             .prepare = prepare,
                                             .destroy = destroy,
                                             .to_state = to_state};
    struct program *program = fake->core->mem_alloc(fake->host->self, sizeof(*program), 64);

    if (!program)
        return fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory for a program");
    *program = (struct program){fake, *recipe};
    out->table = &table;
    out->self = program;
    return FRIT_OK;
}

/* ---- single ops ---- */

frit_status custom_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    (void)self;
    (void)err;
    memset(bits, 0, (count + 63) / 64 * sizeof(*bits));
    for (uint32_t i = 0; i < count; i++)
        if (what_of((const frit_op_desc *)(const void *)((const char *)ops + (size_t)stride * i)))
            bits[i / 64] |= (uint64_t)1 << i % 64;
    return FRIT_OK;
}

frit_status custom_op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    struct recipe recipe = {.n_nodes = 1, .n_args = op->n_in + op->n_out};
    struct node *node = &recipe.nodes[0];

    node->what = what_of(op);
    if (!node->what)
        return fake_fail(fake_of(self), err, FRIT_UNSUPPORTED, "no such op");
    for (uint32_t i = 0; i < op->n_in; i++)
        node->in[i] = frit_operand_at(op, op->in, i)->kind == FRIT_OPERAND_TENSOR
                          ? (struct place){KIND_ARG, i}
                          : (struct place){KIND_SCALAR, 0};
    node->stored = op->n_out ? op->n_in + 1 : 0;
    return program_make(fake_of(self), &recipe, out, err);
}
