/* SPDX-License-Identifier: Apache-2.0 */
/* The fuser of the wrong driver: neg, add and maximum of f32 whose results all have the extents of
 * the first, run element by element. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "wrong.h"

enum { STEPS = 16, VALUES = 3 * STEPS, MARK = 0x77726f6e };

#define NO_VALUE UINT32_MAX /* a scalar's place */

struct step {
    uint32_t op, n_in, in[2], out, n_dead, dead[4];
};

/* What was pushed; a fuser each, unless that is what is wrong. */
struct steps {
    uint32_t refs, n;
    bool closed;
    frit_operand shape; /* of the first result */
    struct step at[STEPS];
};

struct wrong_fuser {
    const struct fake *fake;
    struct steps *steps;
    uint32_t n_queries;
};

struct fused {
    const struct fake *fake;
    uint32_t n, n_in, n_out, n_scalars;
    uint32_t args[VALUES]; /* values, inputs first */
    frit_output_spec outputs[STEPS];
    struct step at[STEPS];
    int64_t count; /* of its first launch */
    float scalar;
    uint32_t prepared, runs;
};

static void *take(const struct fake *fake, size_t bytes)
{
    void *memory = fake->core->mem_alloc(fake->host->self, bytes, 64);

    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static void free_memory(const struct fake *fake, void *memory)
{
    fake->core->mem_free(fake->host->self, memory);
}

/* ---- fusers ---- */

static struct wrong_fuser *create(const struct fake *fake)
{
    struct wrong_fuser *fuser = take(fake, sizeof(*fuser));

    if (!fuser)
        return NULL;
    fuser->fake = fake;
    fuser->steps = take(fake, sizeof(*fuser->steps));
    if (!fuser->steps) {
        free_memory(fake, fuser);
        return NULL;
    }
    fuser->steps->refs = 1;
    return fuser;
}

static void destroy(void *self)
{
    struct wrong_fuser *fuser = self;

    if (!fuser)
        return;
    if (--fuser->steps->refs == 0)
        free_memory(fuser->fake, fuser->steps);
    free_memory(fuser->fake, fuser);
}

static frit_status prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    const struct fake *fake = instance;

    (void)stride;
    *count = device->same_plugin && capacity ? 1 : 0;
    if (!*count)
        return FRIT_OK;
    out->version = 1;
    out->name = FRIT_STR("few");
    out->prototype = create(fake);
    return out->prototype ? FRIT_OK : fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory");
}

static frit_status clone(const void *self, void **out, frit_err *err)
{
    const struct wrong_fuser *from = self;
    struct wrong_fuser *to = create(from->fake);

    *out = to;
    if (!to)
        return fake_fail(from->fake, err, FRIT_NO_HOST_MEMORY, "no memory");
    if (wrong_row == WRONG_SHALLOW && from->steps->n) {
        free_memory(from->fake, to->steps);
        to->steps = from->steps;
        to->steps->refs++;
        return FRIT_OK;
    }
    *to->steps = *from->steps;
    to->steps->refs = 1;
    return FRIT_OK;
}

static void reset(void *self)
{
    struct wrong_fuser *fuser = self;

    fuser->steps->n = 0;
    if (wrong_row != WRONG_RESET)
        fuser->steps->closed = false;
}

static bool fits(const struct steps *steps, const frit_op_desc *op)
{
    if (!wrong_takes(op) || op->id == FRIT_OP_copy || steps->n == STEPS || op->n_dead > 4)
        return false;
    return steps->n == 0 ||
           (op->out->rank == steps->shape.rank &&
            memcmp(op->out->extent, steps->shape.extent, sizeof(op->out->extent)) == 0);
}

static void push_one(struct steps *steps, const frit_op_desc *op)
{
    struct step *step = &steps->at[steps->n];

    if (!fits(steps, op)) {
        steps->closed = wrong_row != WRONG_UNKNOWN;
        return;
    }
    if (steps->n++ == 0)
        steps->shape = *op->out;
    *step =
        (struct step){.op = op->id, .n_in = op->n_in, .out = op->out->value, .n_dead = op->n_dead};
    for (uint32_t k = 0; k < op->n_in; k++) {
        const frit_operand *in = frit_operand_at(op, op->in, k);

        step->in[k] = in->kind == FRIT_OPERAND_TENSOR ? in->value : NO_VALUE;
    }
    if (op->n_dead)
        memcpy(step->dead, op->dead, op->n_dead * sizeof(*step->dead));
}

static const frit_op_desc *op_at(const frit_op_desc *ops, uint32_t stride, uint32_t i)
{
    return (const frit_op_desc *)(const void *)((const char *)ops + (size_t)stride * i);
}

static void push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    struct wrong_fuser *fuser = self;

    for (uint32_t i = 0; i < count; i++)
        if (!fuser->steps->closed || wrong_row == WRONG_PUSHED)
            push_one(fuser->steps, op_at(ops, stride, i));
}

static void state(const void *self, frit_fuser_state *out)
{
    struct wrong_fuser *fuser = (struct wrong_fuser *)self;

    out->open = !fuser->steps->closed;
    out->ready = fuser->steps->n > 0;
    out->accepted = fuser->steps->n;
    out->quality = out->ready ? 500 : 0;
    if (wrong_row == WRONG_STATE)
        out->quality += fuser->n_queries++;
}

/* ---- its programs ---- */

static uint32_t find(const uint32_t *values, uint32_t n, uint32_t value)
{
    uint32_t i = 0;

    while (i < n && values[i] != value)
        i++;
    return i;
}

static bool is_made(const struct fused *fused, uint32_t value)
{
    for (uint32_t i = 0; i < fused->n; i++)
        if (fused->at[i].out == value)
            return true;
    return false;
}

static bool is_dead(const struct fused *fused, uint32_t value)
{
    for (uint32_t i = 0; i < fused->n; i++)
        if (find(fused->at[i].dead, fused->at[i].n_dead, value) < fused->at[i].n_dead)
            return true;
    return false;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void find_args(struct fused *fused)
{
    for (uint32_t i = 0; i < fused->n; i++) {
        for (uint32_t k = 0; k < fused->at[i].n_in; k++) {
            uint32_t value = fused->at[i].in[k];

            fused->n_scalars += value == NO_VALUE;
            if (value != NO_VALUE && !is_made(fused, value) &&
                find(fused->args, fused->n_in, value) == fused->n_in)
                fused->args[fused->n_in++] = value;
        }
    }
    if (wrong_row == WRONG_ORDER)
        qsort(fused->args, fused->n_in, sizeof(*fused->args), by_number);
    for (uint32_t i = 0; i < fused->n; i++)
        if (!is_dead(fused, fused->at[i].out))
            fused->args[fused->n_in + fused->n_out++] = fused->at[i].out;
}

static float *place(const frit_launch *launch, const struct fused *fused, uint32_t value, int64_t i)
{
    uint32_t n = fused->n_in + fused->n_out, arg = find(fused->args, n, value);

    return arg == n ? NULL
                    : wrong_element(frit_arg_at(launch, arg),
                                    frit_arg_at(launch, launch->n_args - 1), i);
}

static float operand(const frit_launch *launch, const struct fused *fused, const float *results,
                     uint32_t value, int64_t i, uint32_t *scalar)
{
    if (value == NO_VALUE)
        return wrong_row == WRONG_FUSED_SCALAR ? fused->scalar : wrong_scalar(launch, (*scalar)++);
    for (uint32_t s = 0; s < fused->n; s++)
        if (fused->at[s].out == value)
            return results[s];
    return *place(launch, fused, value, i);
}

static void run_element(const frit_launch *launch, const struct fused *fused, int64_t i)
{
    float results[STEPS], in[2] = {0, 0};
    uint32_t scalar = 0;

    for (uint32_t s = 0; s < fused->n; s++) {
        const struct step *step = &fused->at[s];
        float *to = place(launch, fused, step->out, i);

        for (uint32_t k = 0; k < step->n_in; k++)
            in[k] = operand(launch, fused, results, step->in[k], i, &scalar);
        results[s] = wrong_result(step->op, in[0], in[1]);
        if (to)
            *to = results[s];
        else if (wrong_row == WRONG_DEAD)
            *place(launch, fused, fused->args[0], i) = results[s];
    }
}

void fused_run(const frit_launch *launch)
{
    struct fused *fused = launch->program->self;
    const frit_arg *out = frit_arg_at(launch, launch->n_args - 1);
    int64_t count = wrong_count(out);

    if (wrong_row == WRONG_FUSED_CRASH && fused->n > 2)
        raise(SIGSEGV);
    if (fused->runs++ == 0) {
        fused->count = count;
        fused->scalar = fused->n_scalars ? wrong_scalar(launch, 0) : 0;
    }
    if (wrong_row == WRONG_FUSED_SHAPE && count > fused->count)
        count = fused->count;
    for (int64_t i = 0; i < count && wrong_row == WRONG_FUSED_ALIAS; i++)
        *wrong_element(out, out, i) = 0;
    for (int64_t i = 0; i < count; i++) {
        run_element(launch, fused, i);
        if (wrong_row == WRONG_CANDIDATE && launch->candidate == 1)
            *wrong_element(out, out, i) += 1;
    }
}

/* ---- slots of its programs ---- */

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    static const frit_candidate list[] = {{.struct_size = sizeof(*list), .identity = {"plain", 5}},
                                          {.struct_size = sizeof(*list), .identity = {"best", 4}}};
    const struct fused *fused = self;

    (void)err;
    out->n_candidates = wrong_row == WRONG_CANDIDATE ? 2 : 1;
    out->candidate_stride = sizeof(*list);
    out->n_ops = fused->n;
    out->name = FRIT_STR("fused");
    out->candidates = list;
    return FRIT_OK;
}

/* Element by element, each read before it is written: a dense input of all extents may be taken. */
static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct fused *fused = self;

    (void)candidate;
    if (sig->flags & FRIT_MUST_UNDERSTAND && wrong_row != WRONG_FLAGS)
        return fake_fail(fused->fake, err, FRIT_UNSUPPORTED, "unknown flags");
    out->n_phases = 1;
    out->phases = wrong_phase();
    out->n_outputs = fused->n_out;
    out->output_stride = sizeof(fused->outputs[0]);
    out->outputs = fused->outputs;
    if (wrong_row == WRONG_PREPARE) {
        variant->n_bytes = 1;
        variant->bytes[0] = (uint8_t)fused->prepared++;
    }
    return FRIT_OK;
}

static int32_t priority(void *self, uint32_t candidate, const frit_signature *sig)
{
    (void)self;
    (void)sig;
    return (int32_t)candidate;
}

static void program_destroy(void *self)
{
    const struct fused *fused = self;

    free_memory(fused->fake, self);
}

/* What is saved: enough to recognise the ops. */
struct saved {
    uint32_t mark, n, sum;
};

static void add_word(uint32_t *sum, uint32_t word)
{
    *sum = (*sum ^ word) * 16777619u;
}

/* A value by its place in the order of first use. */
static void add_value(uint32_t *sum, uint32_t values[VALUES], uint32_t *n, uint32_t value)
{
    uint32_t at = value == NO_VALUE ? NO_VALUE : find(values, *n, value);

    if (at == *n)
        values[(*n)++] = value;
    add_word(sum, at);
}

static struct saved saved_of(const struct fused *fused)
{
    struct saved saved = {.mark = MARK, .n = fused->n};
    uint32_t values[VALUES], n = 0;

    for (uint32_t i = 0; i < fused->n; i++) {
        const struct step *step = &fused->at[i];

        add_word(&saved.sum, step->op);
        for (uint32_t k = 0; k < step->n_in; k++)
            add_value(&saved.sum, values, &n, step->in[k]);
        add_value(&saved.sum, values, &n, step->out);
        add_word(&saved.sum, step->n_dead);
    }
    return saved;
}

static frit_status to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    struct saved saved = saved_of(self);

    (void)err;
    if (*n_bytes)
        memcpy(bytes, &saved, *n_bytes < sizeof(saved) ? (size_t)*n_bytes : sizeof(saved));
    *n_bytes = sizeof(saved);
    return FRIT_OK;
}

static const frit_program_table table = {.struct_size = FRIT_END_OF(frit_program_table, priority),
                                         .describe = describe,
                                         .prepare = prepare,
                                         .destroy = program_destroy,
                                         .to_state = to_state,
                                         .priority = priority};

bool fused_owns(const frit_program *program)
{
    return program->table == &table;
}

static frit_status make(const struct fake *fake, const struct steps *steps, frit_program *out,
                        frit_err *err)
{
    struct fused *fused = take(fake, sizeof(*fused));

    if (!fused)
        return fake_fail(fake, err, FRIT_NO_HOST_MEMORY, "no memory");
    fused->fake = fake;
    fused->n = steps->n - (wrong_row == WRONG_ACCEPTED && steps->n > 1);
    memcpy(fused->at, steps->at, sizeof(fused->at));
    find_args(fused);
    if (wrong_row == WRONG_FUSED_ALIAS)
        fused->outputs[fused->n_out - 1] = wrong_aliased;
    out->table = &table;
    out->self = fused;
    return FRIT_OK;
}

static frit_status finish(void *self, frit_program *out, frit_err *err)
{
    struct wrong_fuser *fuser = self;
    frit_status status = make(fuser->fake, fuser->steps, out, err);

    if (wrong_row == WRONG_FINISHED)
        fuser->steps->n = 0;
    return status;
}

static frit_status from_state(void *instance, const frit_fuser_device *device, frit_str name,
                              const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                              const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    struct steps steps = {0};
    struct saved saved;
    frit_status status;

    (void)device;
    (void)name;
    for (uint32_t i = 0; i < n_ops && !steps.closed; i++)
        push_one(&steps, op_at(ops, op_stride, i));
    if (n_bytes != sizeof(saved) || steps.closed || steps.n == 0)
        return fake_fail(instance, err, FRIT_INCOMPATIBLE, "bytes or ops of others");
    status = make(instance, &steps, out, err);
    if (status)
        return status;
    saved = saved_of(out->self);
    if (memcmp(&saved, bytes, sizeof(saved)) == 0 || wrong_row == WRONG_SAVED)
        return FRIT_OK;
    program_destroy(out->self);
    return fake_fail(instance, err, FRIT_INCOMPATIBLE, "bytes with a fault, or of other ops");
}

const frit_fuser_table wrong_fusers = {
    .struct_size = sizeof(frit_fuser_table),
    .prototypes = prototypes,
    .clone = clone,
    .destroy = destroy,
    .reset = reset,
    .push = push,
    .state = state,
    .finish = finish,
    .from_state = from_state,
};
