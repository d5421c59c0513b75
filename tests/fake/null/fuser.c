/* SPDX-License-Identifier: Apache-2.0 */
/* Fusers: take any op of a few classes, up to option.max_fused_ops of them.
 *
 * A fuser is one piece of memory: its counters, then the values that its ops use and do not make,
 * in order of first use, then those that they make.  There is room for the most that max_fused_ops
 * ops can have, so push needs no memory. */
#include <string.h>

#include <frit/op_table.h>

#include "null.h"

enum { QUALITY = 900, FUSER_VERSION = 1 };

struct seen {
    uint32_t value;
    uint32_t dtype;
    uint32_t dead;
};

struct fuser {
    struct instance *instance;
    struct cover cover; /* n_in: values used; n_out: values made that are alive */
    uint32_t n_made;
    uint32_t n_computing; /* ops that are more than a view */
    uint32_t room_in;     /* values used that there is room for; those made follow */
    uint32_t closed;
    frit_status fails; /* of the ops taken; see option.fail_ops */
    struct seen seen[];
};

static bool class_taken(uint32_t cls)
{
    static const bool taken[] = {
        [FRIT_CLASS_MAP] = true,  [FRIT_CLASS_CAST] = true,   [FRIT_CLASS_VIEW] = true,
        [FRIT_CLASS_INIT] = true, [FRIT_CLASS_REDUCE] = true, [FRIT_CLASS_NORM] = true,
    };

    return cls < sizeof taken && taken[cls];
}

static uint32_t room_in(const struct instance *instance)
{
    return instance->options.max_fused_ops * FRIT_OP_MAX_IN;
}

static uint64_t fuser_bytes(const struct instance *instance)
{
    return sizeof(struct fuser) +
           (room_in(instance) + (uint64_t)instance->options.max_fused_ops * FRIT_OP_MAX_OUT) *
               sizeof(struct seen);
}

/* The name of fuser `index`. */
static frit_str fuser_name(uint32_t index)
{
    static const char names[NULL_MAX_FUSERS][8] = {"null",   "null-2", "null-3", "null-4",
                                                   "null-5", "null-6", "null-7", "null-8"};

    return (frit_str){names[index], strlen(names[index])};
}

/* ---- values ---- */

static struct seen *made_of(struct fuser *fuser)
{
    return fuser->seen + fuser->room_in;
}

static struct seen *find(struct seen *seen, uint32_t n, uint32_t value)
{
    for (uint32_t i = 0; i < n; i++)
        if (seen[i].value == value)
            return &seen[i];
    return NULL;
}

static void use(struct fuser *fuser, const frit_operand *operand)
{
    if (operand->kind != FRIT_OPERAND_TENSOR ||
        find(made_of(fuser), fuser->n_made, operand->value) ||
        find(fuser->seen, fuser->cover.n_in, operand->value))
        return;
    fuser->seen[fuser->cover.n_in++] = (struct seen){operand->value, operand->dtype, 0};
}

static void make(struct fuser *fuser, const frit_operand *operand)
{
    if (operand->kind != FRIT_OPERAND_TENSOR)
        return;
    made_of(fuser)[fuser->n_made++] = (struct seen){operand->value, operand->dtype, 0};
    fuser->cover.n_out++;
}

static void bury(struct fuser *fuser, uint32_t value)
{
    struct seen *made = find(made_of(fuser), fuser->n_made, value);

    if (!made || made->dead)
        return;
    made->dead = 1;
    fuser->cover.n_out--;
}

/* ---- slots of frit.fuser/1 ---- */

static bool can_take(const struct fuser *fuser, const frit_op_desc *op)
{
    return fuser->cover.n_ops < fuser->instance->options.max_fused_ops && op_known(op) &&
           class_taken(frit_op_info_at(op->id)->cls) && op->n_in <= FRIT_OP_MAX_IN &&
           op->n_out <= FRIT_OP_MAX_OUT && fuser->cover.n_out + op->n_out <= NULL_MAX_OUTPUTS;
}

static void take(struct fuser *fuser, const frit_op_desc *op)
{
    uint32_t n_scalars, n_bounds;

    op_extras(op, &n_scalars, &n_bounds);
    fuser->cover.n_ops++;
    fuser->fails = fuser->fails ? fuser->fails : null_op_fault(fuser->instance, op);
    fuser->cover.n_scalars += n_scalars;
    fuser->cover.n_bounds += n_bounds;
    fuser->n_computing += frit_op_info_at(op->id)->cls != FRIT_CLASS_VIEW;
    for (uint32_t i = 0; i < op->n_in; i++)
        use(fuser, frit_operand_at(op, op->in, i));
    for (uint32_t i = 0; i < op->n_out; i++)
        make(fuser, frit_operand_at(op, op->out, i));
    for (uint32_t i = 0; i < op->n_dead; i++)
        bury(fuser, op->dead[i]);
}

void fuser_push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    struct fuser *fuser = self;

    for (uint32_t i = 0; i < count && !fuser->closed; i++) {
        const void *op = (const char *)ops + (size_t)i * stride;

        if (can_take(fuser, op))
            take(fuser, op);
        else
            fuser->closed = 1;
    }
}

void fuser_state(const void *self, frit_fuser_state *out)
{
    const struct fuser *fuser = self;

    out->open = !fuser->closed && fuser->cover.n_ops < fuser->instance->options.max_fused_ops;
    out->ready = fuser->n_computing > 0;
    out->accepted = fuser->cover.n_ops;
    out->quality = QUALITY;
}

void fuser_reset(void *self)
{
    struct fuser *fuser = self;

    fuser->cover = (struct cover){0};
    fuser->n_made = 0;
    fuser->n_computing = 0;
    fuser->closed = 0;
    fuser->fails = FRIT_OK;
}

static struct fuser *fuser_new(struct instance *instance)
{
    struct fuser *fuser = null_alloc(instance, fuser_bytes(instance));

    if (!fuser)
        return NULL;
    fuser->instance = instance;
    fuser->room_in = room_in(instance);
    fuser_reset(fuser);
    null_count(instance, NULL_COUNT_fusers_now, 1);
    return fuser;
}

frit_status fuser_clone(const void *self, void **out, frit_err *err)
{
    const struct fuser *from = self;
    frit_status status = null_count_call(from->instance, NULL_CALL_clone, err);
    struct fuser *fuser;

    *out = NULL;
    if (status)
        return status;
    fuser = fuser_new(from->instance);
    if (!fuser)
        return null_fail(from->instance, err, FRIT_NO_HOST_MEMORY, "null: no memory for a fuser");
    *fuser = *from;
    memcpy(fuser->seen, from->seen, from->cover.n_in * sizeof from->seen[0]);
    memcpy(made_of(fuser), from->seen + from->room_in, from->n_made * sizeof from->seen[0]);
    *out = fuser;
    return FRIT_OK;
}

void fuser_destroy(void *self)
{
    struct fuser *fuser = self;

    if (!fuser)
        return;
    null_uncount(fuser->instance, NULL_COUNT_fusers_now, 1);
    null_free(fuser->instance, fuser);
}

/* The program of what was pushed. */
static frit_status make_program(struct fuser *fuser, frit_program *out, frit_err *err)
{
    struct program *program;
    frit_status status = program_create(fuser->instance, &fuser->cover, true, out, &program, err);
    uint32_t n = 0;

    if (status)
        return status;
    program->fails = fuser->fails;
    for (uint32_t i = 0; i < fuser->cover.n_in; i++)
        program->dtypes[n++] = fuser->seen[i].dtype;
    for (uint32_t i = 0; i < fuser->n_made; i++)
        if (!made_of(fuser)[i].dead)
            program->dtypes[n++] = made_of(fuser)[i].dtype;
    return FRIT_OK;
}

frit_status fuser_finish(void *self, frit_program *out, frit_err *err)
{
    struct fuser *fuser = self;
    frit_status status = null_count_call(fuser->instance, NULL_CALL_finish, err);

    return status ? status : make_program(fuser, out, err);
}

static bool name_known(const struct instance *instance, frit_str name)
{
    for (uint32_t i = 0; i < instance->options.n_fusers; i++) {
        frit_str known = fuser_name(i);

        if (known.len == name.len && memcmp(known.ptr, name.ptr, name.len) == 0)
            return true;
    }
    return false;
}

/* The program of the ops, if the bytes are its state. */
static frit_status restore(struct fuser *fuser, const void *bytes, uint64_t n_bytes,
                           frit_program *out, frit_err *err)
{
    frit_program made;
    frit_status status = make_program(fuser, &made, err);

    if (status)
        return status;
    if (!program_state_is(made.self, bytes, n_bytes)) {
        program_destroy(made.self);
        return null_fail(fuser->instance, err, FRIT_INCOMPATIBLE,
                         "null: %llu bytes that are no saved program of %u ops",
                         (unsigned long long)n_bytes, fuser->cover.n_ops);
    }
    out->table = made.table;
    out->self = made.self;
    return FRIT_OK;
}

frit_status fuser_from_state(void *self, const frit_fuser_device *device, frit_str name,
                             const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                             const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    struct instance *instance = self;
    frit_status status = null_count_call(instance, NULL_CALL_from_state, err);
    struct fuser *fuser;

    (void)device;
    if (status)
        return status;
    if (!name_known(instance, name))
        return null_fail(instance, err, FRIT_INCOMPATIBLE, "null: there is no fuser %.*s",
                         (int)name.len, name.ptr);
    fuser = fuser_new(instance);
    if (!fuser)
        return null_fail(instance, err, FRIT_NO_HOST_MEMORY, "null: no memory for a fuser");
    fuser_push(fuser, ops, n_ops, op_stride);
    if (fuser->cover.n_ops != n_ops || fuser->n_computing == 0)
        status = null_fail(instance, err, FRIT_INCOMPATIBLE, "null: %u ops of which it takes %u",
                           n_ops, fuser->cover.n_ops);
    else
        status = restore(fuser, bytes, n_bytes, out, err);
    fuser_destroy(fuser);
    return status;
}

frit_status fuser_prototypes(void *self, const frit_fuser_device *device, frit_fuser *out,
                             uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    struct instance *instance = self;
    uint32_t n =
        device->same_plugin && instance->options.max_fused_ops ? instance->options.n_fusers : 0;
    frit_status status = null_count_call(instance, NULL_CALL_prototypes, err);

    *count = 0;
    if (status)
        return status;
    for (uint32_t i = 0; i < n && i < capacity; i++) {
        frit_fuser *fuser = (frit_fuser *)(void *)((char *)out + i * stride);

        fuser->version = FUSER_VERSION;
        fuser->name = fuser_name(i);
        fuser->prototype = fuser_new(instance);
        if (fuser->prototype)
            continue;
        while (i-- > 0)
            fuser_destroy(((frit_fuser *)(void *)((char *)out + i * stride))->prototype);
        return null_fail(instance, err, FRIT_NO_HOST_MEMORY, "null: no memory for fusers");
    }
    *count = n;
    return FRIT_OK;
}
