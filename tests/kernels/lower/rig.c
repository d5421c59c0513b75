/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lower/rig.h"

#include <string.h>

#include "base/fail.h"
#include "ir/eval.h"
#include "ir/facts.h"
#include "ir/half.h"
#include "ir/verify.h"
#include "unit.h"

void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->index_width = 32;
    rig->target = (struct kir_target){.lanes = 64,
                                      .lanes_per_row = 64,
                                      .max_lanes = 256,
                                      .units = 4,
                                      .group_bytes = 32768,
                                      .bindings = 64,
                                      .fma = true,
                                      .f64 = true,
                                      .i64 = true,
                                      .exact_div = true,
                                      .denormals = true,
                                      .atomic_f32 = true,
                                      .store_bytes = 1};
}

static void forget(struct rig *rig)
{
    block_fini(&rig->block);
    kir_fini(&rig->module);
    arena_fini(&rig->numbers.arena);
    rig->numbers = (struct sched_numbers){0};
    rig->n_scalars = rig->n_bounds = 0;
}

void rig_fini(struct rig *rig)
{
    forget(rig);
    for (uint32_t i = 0; i < rig->n_values; i++)
        free(rig->values[i].data);
}

/* ---- values ---- */

static uint32_t add_value(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                          const uint32_t *order, uint32_t negative, int64_t gap)
{
    struct rig_value *v = &rig->values[rig->n_values];
    int64_t stride = gap;

    assert_true(rig->n_values < RIG_VALUES);
    *v = (struct rig_value){
        .dtype = dtype, .rank = rank, .maker = RIG_NONE, .last_use = RIG_NONE, .elements = 1};
    for (uint32_t i = rank; i-- > 0;) {
        uint32_t d = order ? order[i] : i;

        v->dims[d] = dims[d];
        v->strides[d] = stride;
        if (negative >> d & 1) {
            v->strides[d] = -stride;
            v->origin += (dims[d] - 1) * stride;
        }
        stride *= dims[d];
    }
    v->elements = stride;
    if (stride <= RIG_MAX) {
        v->data = calloc(1, (size_t)frit_storage_bytes(dtype, v->elements + 1));
        assert_non_null(v->data);
    }
    return rig->n_values++;
}

uint32_t rig_input(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    return add_value(rig, dtype, rank, dims, NULL, 0, 1);
}

uint32_t rig_laid(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims,
                  const uint32_t *order, uint32_t negative, int64_t gap)
{
    return add_value(rig, dtype, rank, dims, order, negative, gap);
}

struct rig_in rig_value(uint32_t value)
{
    return (struct rig_in){.value = value};
}

struct rig_in rig_real(uint32_t dtype, double real)
{
    struct rig_in in = {.value = RIG_NONE, .dtype = dtype, .scalar = {.kind = FRIT_SCALAR_F64}};

    memcpy(&in.scalar.bits, &real, sizeof(real));
    return in;
}

struct rig_in rig_int(uint32_t dtype, int64_t number)
{
    struct rig_in in = {.value = RIG_NONE, .dtype = dtype, .scalar = {.bits = (uint64_t)number}};

    in.scalar.kind = dtype >= FRIT_U64 ? FRIT_SCALAR_U64 : FRIT_SCALAR_I64;
    return in;
}

uint32_t rig_op(struct rig *rig, uint32_t id, uint32_t n_in, const struct rig_in *in,
                const void *attrs, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    uint32_t out = rig_input(rig, dtype, rank, dims);
    struct rig_op *op = &rig->ops[rig->n_ops];

    assert_true(rig->n_ops < RIG_OPS);
    *op = (struct rig_op){.id = id,
                          .n_in = n_in,
                          .out = out,
                          .attrs = attrs,
                          .extra = {0x0123456789abcdef, 0x0000000700000005}};
    for (uint32_t i = 0; i < n_in; i++) {
        op->in[i] = in[i];
        if (in[i].value < RIG_ABSENT)
            rig->values[in[i].value].last_use = rig->n_ops;
    }
    rig->values[out].maker = rig->n_ops++;
    return out;
}

uint32_t rig_second(struct rig *rig, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    uint32_t out = rig_input(rig, dtype, rank, dims);
    struct rig_op *op = &rig->ops[rig->n_ops - 1];

    assert_true(op->n_more < FRIT_OP_MAX_OUT - 1);
    rig->values[out].maker = rig->n_ops - 1;
    op->more[op->n_more++] = out;
    return out;
}

void rig_keep(struct rig *rig, uint32_t value)
{
    rig->values[value].keep = true;
}

/* ---- lowering and running ---- */

/* Numbers with gaps, as a host's: an extent's is the first value and dim that has it. */
static uint32_t extent_number(const struct rig *rig, int64_t extent)
{
    if (extent < 2)
        return (uint32_t)extent;
    for (uint32_t v = 0; v < rig->n_values; v++)
        for (uint32_t d = 0; d < rig->values[v].rank; d++)
            if (rig->values[v].dims[d] == extent)
                return 17 + 3 * (v * FRIT_MAX_RANK + d);
    abort();
}

static void fill_operand(const struct rig *rig, uint32_t value, frit_operand *out)
{
    const struct rig_value *v = &rig->values[value];

    *out = (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = v->dtype, .value = 100 + 2 * value, .rank = v->rank};
    for (uint32_t d = 0; d < v->rank; d++)
        out->extent[d] = extent_number(rig, v->dims[d]);
}

static void add_bounds(struct rig *rig, const int64_t *from, uint32_t n)
{
    static const struct {
        int64_t bound;
        uint8_t cls;
    } known[] = {{0, FRIT_SCALAR_CLASS_ZERO},
                 {1, FRIT_SCALAR_CLASS_ONE},
                 {-1, FRIT_SCALAR_CLASS_MINUS_ONE},
                 {2, FRIT_SCALAR_CLASS_TWO}};

    assert_true(rig->n_bounds + n <= RIG_BOUNDS);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *cls = &rig->bound_classes[rig->n_bounds];

        rig->bounds[rig->n_bounds++] = from[i];
        *cls = FRIT_SCALAR_CLASS_INTEGER;
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            if (known[k].bound == from[i])
                *cls = known[k].cls;
    }
}

static void add_real(struct rig *rig, const char *at)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
    double real;

    memcpy(&real, at, sizeof(real));
    memcpy(&scalar.bits, at, sizeof(real));
    rig->scalar_classes[rig->n_scalars] =
        real == 0 ? FRIT_SCALAR_CLASS_ZERO : FRIT_SCALAR_CLASS_OTHER;
    rig->scalars[rig->n_scalars++] = scalar;
}

/* The LAUNCH fields of an op's attributes, as frit_launch says. */
static void push_launch_fields(struct rig *rig, const struct rig_op *op, const frit_op_info *info)
{
    const frit_record_info *record = frit_record_info_at(info->record);
    uint32_t x = op->n_in ? op->in[0].value : RIG_NONE;
    uint32_t rank = x < RIG_ABSENT ? rig->values[x].rank : 0;

    for (uint32_t i = 0; i < record->n_fields; i++) {
        const char *at = (const char *)op->attrs + record->field[i].offset;

        if (record->field[i].use != FRIT_USE_LAUNCH)
            continue;
        if (record->field[i].type == FRIT_ATTR_REAL)
            add_real(rig, at);
        else if (record->field[i].type == FRIT_ATTR_SLICES)
            add_bounds(rig, &((const frit_slices *)(const void *)at)->dim[0].start, 3 * rank);
        else if (record->field[i].type == FRIT_ATTR_DIMS)
            add_bounds(rig, ((const frit_dims *)(const void *)at)->dim, rank);
    }
}

static void push_op(struct rig *rig, uint32_t number)
{
    const struct rig_op *op = &rig->ops[number];
    const frit_op_info *info = frit_op_info_at(op->id);
    frit_operand in[FRIT_OP_MAX_IN], out[FRIT_OP_MAX_OUT] = {{0}};
    uint32_t dead[RIG_VALUES], n_dead = 0;
    frit_op_desc desc = {.struct_size = sizeof(desc),
                         .id = op->id,
                         .rev = info->rev,
                         .n_in = op->n_in,
                         .operand_stride = sizeof(*in),
                         .n_extra = info->traits & FRIT_OP_SEEDED ? 2 : 0,
                         .in = in,
                         .out = out,
                         .attrs = op->attrs,
                         .dead = dead};
    frit_err err = ERR_INIT;

    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].value == RIG_ABSENT) {
            in[i] = (frit_operand){.kind = FRIT_OPERAND_ABSENT};
        } else if (op->in[i].value != RIG_NONE) {
            fill_operand(rig, op->in[i].value, &in[i]);
        } else {
            in[i] = (frit_operand){.kind = FRIT_OPERAND_SCALAR,
                                   .dtype = op->in[i].dtype,
                                   .value = 1000 + rig->n_scalars};
            rig->scalars[rig->n_scalars++] = op->in[i].scalar;
        }
    while (desc.n_out < FRIT_OP_MAX_OUT && info->out[desc.n_out].name)
        desc.n_out++;
    push_launch_fields(rig, op, info);
    for (uint32_t i = 0; i < desc.n_extra; i++)
        rig->scalars[rig->n_scalars++] = (frit_scalar){FRIT_SCALAR_U64, 0, op->extra[i]};
    fill_operand(rig, op->out, &out[0]);
    for (uint32_t i = 0; i < op->n_more; i++)
        fill_operand(rig, op->more[i], &out[1 + i]);
    for (uint32_t v = 0; v < rig->n_values; v++)
        if (rig->values[v].last_use == number && rig->values[v].maker != RIG_NONE &&
            !rig->values[v].keep)
            dead[n_dead++] = 100 + 2 * v;
    desc.n_dead = n_dead;
    assert_int_equal(block_push(&rig->block, &desc, &err), FRIT_OK);
}

void rig_push(struct rig *rig)
{
    forget(rig);
    block_init(&rig->block);
    for (uint32_t i = 0; i < rig->n_ops; i++)
        push_op(rig, i);
}

static uint32_t value_of(const struct rig *rig, uint32_t block_value)
{
    return (rig->block.values[block_value].number - 100) / 2;
}

static uint32_t arg_value(const struct rig *rig, uint32_t arg)
{
    const struct block *block = &rig->block;

    return value_of(rig, arg < block->n_inputs ? block->inputs[arg]
                                               : block->outputs[arg - block->n_inputs]);
}

static void fill_sig(struct rig *rig)
{
    const struct block *block = &rig->block;

    rig->sig = (frit_signature){.struct_size = sizeof(rig->sig),
                                .n_in = block->n_inputs,
                                .n_out = block->n_outputs,
                                .arg_stride = sizeof(*rig->args),
                                .n_scalars = block->n_scalars,
                                .index_width = rig->index_width,
                                .args = rig->args,
                                .scalar_classes = rig->no_classes ? NULL : rig->scalar_classes,
                                .bound_classes = rig->no_classes ? NULL : rig->bound_classes,
                                .n_bounds = rig->n_bounds};
    for (uint32_t i = 0; i < block->n_inputs + block->n_outputs; i++) {
        const struct rig_value *v = &rig->values[arg_value(rig, i)];

        rig->args[i] = (frit_arg_sig){.dtype = v->dtype, .rank = v->rank};
        memcpy(rig->args[i].dims, v->dims, sizeof(v->dims));
        for (uint32_t d = 0; d < v->rank; d++)
            rig->args[i].strides[d] = v->dims[d] == 1 ? 0 : v->strides[d];
    }
}

static uint64_t word_of_bound(const struct sched_late *late, int64_t bound)
{
    bound = bound < late->min ? late->min : bound > late->max ? late->max : bound;
    return (uint64_t)(bound + late->offset);
}

static uint64_t word_of(const struct sched_late *late, const frit_scalar *scalar)
{
    uint64_t bits = scalar->bits;
    double real;
    float single;

    if (late->type != KIR_F32)
        return late->type == KIR_I32 ? (uint32_t)bits : bits;
    memcpy(&real, &bits, sizeof(real));
    single = (float)real;
    return half_bits_of(single);
}

static void fill_words(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->numbers.n_late; i++) {
        const struct sched_late *late = &rig->numbers.late[i];

        assert_true(late->number < (late->from == SCHED_BOUND ? rig->n_bounds : rig->n_scalars));
        rig->numbers.words[late->word] = late->from == SCHED_BOUND
                                             ? word_of_bound(late, rig->bounds[late->number])
                                             : word_of(late, &rig->scalars[late->number]);
    }
}

/* Memory that holds nothing yet. */
static struct eval_arg memory_of(uint64_t bytes)
{
    struct eval_arg arg = {malloc(bytes), 0, bytes};

    assert_non_null(arg.base);
    memset(arg.base, 0x5a, bytes);
    return arg;
}

static void run(struct rig *rig)
{
    uint32_t n_args = rig->block.n_inputs + rig->block.n_outputs, n = n_args;
    uint32_t *last = rig->numbers.grid[rig->module.n_phases - 1];
    struct eval_arg args[RIG_VALUES];
    frit_err err = ERR_INIT;
    frit_status status;

    if (rig->most_groups && last[0] > rig->most_groups)
        last[0] = rig->most_groups;
    if (rig->numbers.derived.bytes)
        args[n++] = memory_of(rig->numbers.derived.bytes);
    if (rig->numbers.workspace_bytes)
        args[n++] = memory_of(rig->numbers.workspace_bytes);
    assert_int_equal(rig->module.n_args, n);
    for (uint32_t i = 0; i < n_args; i++) {
        struct rig_value *v = &rig->values[arg_value(rig, i)];
        uint64_t before = frit_storage_bytes(v->dtype, v->origin);
        uint64_t bytes = frit_storage_bytes(v->dtype, v->elements);

        args[i] = (struct eval_arg){v->data + before, before, bytes - before};
        if (i >= rig->block.n_inputs)
            memset(v->data, 0xa5, (size_t)bytes);
    }
    status = eval_run(&rig->module, rig->numbers.words, args,
                      (const uint32_t(*)[3])rig->numbers.grid, &err);
    while (n > n_args)
        free(args[--n].base);
    if (status)
        fail_msg("%s", err.text);
}

uint32_t rig_match(const struct schedule *schedule, const struct block *block, bool *open)
{
    uint32_t covered;

    return match_block(schedule, NULL, block, &covered, open, NULL) ? 0 : covered;
}

frit_status rig_build(struct rig *rig, const struct schedule *schedule)
{
    struct sched s = {&rig->block,  &rig->sig,     &rig->target, rig->extents,
                      &rig->module, &rig->numbers, false};
    frit_err err = ERR_INIT;
    frit_status status;
    uint32_t covered;
    bool open;

    rig_push(rig);
    if (match_block(schedule, &rig->target, &rig->block, &covered, &open, NULL) ||
        covered != rig->n_ops)
        return FRIT_UNSUPPORTED;
    assert_int_equal(block_close(&rig->block, rig->n_ops, &err), FRIT_OK);
    fill_sig(rig);
    kir_init(&rig->module, "test");
    status = block_extents(&rig->block, &rig->sig, rig->extents, &err);
    if (!status)
        status = schedule->build(&s, &err);
    if (status == FRIT_UNSUPPORTED)
        return status;
    if (!status)
        status = kir_verify(&rig->module, NULL, &err);
    if (status)
        fail_msg("%s", err.text);
    assert_int_equal(rig->module.n_params, rig->numbers.n_words);
    return FRIT_OK;
}

frit_status rig_try(struct rig *rig, const struct schedule *schedule)
{
    frit_status status = rig_build(rig, schedule);

    if (status)
        return status;
    fill_words(rig);
    run(rig);
    return FRIT_OK;
}

void rig_run(struct rig *rig, const struct schedule *schedule)
{
    assert_int_equal(rig_try(rig, schedule), FRIT_OK);
}

/* ---- elements ---- */

static char *element(const struct rig *rig, uint32_t value, int64_t number)
{
    const struct rig_value *v = &rig->values[value];
    int64_t at = v->origin;

    for (uint32_t d = v->rank; d-- > 0;) {
        at += number % v->dims[d] * v->strides[d];
        number /= v->dims[d];
    }
    return v->data + at * (frit_dtype_bits(v->dtype) / 8);
}

double rig_get_real(const struct rig *rig, uint32_t value, int64_t number)
{
    const char *at = element(rig, value, number);
    uint16_t half;
    float single;
    double real;

    switch (rig->values[value].dtype) {
    case FRIT_F64:
        memcpy(&real, at, sizeof(real));
        return real;
    case FRIT_F32:
        memcpy(&single, at, sizeof(single));
        return (double)single;
    default:
        memcpy(&half, at, sizeof(half));
        return (double)half_load(half, frit_dtype_info_of(rig->values[value].dtype).fraction);
    }
}

void rig_set_real(struct rig *rig, uint32_t value, int64_t number, double real)
{
    char *at = element(rig, value, number);
    float single = (float)real;
    uint16_t half;

    switch (rig->values[value].dtype) {
    case FRIT_F64:
        memcpy(at, &real, sizeof(real));
        break;
    case FRIT_F32:
        memcpy(at, &single, sizeof(single));
        break;
    default:
        half = half_store(single, frit_dtype_info_of(rig->values[value].dtype).fraction);
        memcpy(at, &half, sizeof(half));
        break;
    }
}

int64_t rig_get_int(const struct rig *rig, uint32_t value, int64_t number)
{
    uint32_t dtype = rig->values[value].dtype, bits = frit_dtype_bits(dtype);
    uint64_t integer = 0;

    memcpy(&integer, element(rig, value, number), bits / 8);
    if (dtype >= FRIT_U64 || bits == 64)
        return (int64_t)integer;
    return (int64_t)(integer << (64 - bits)) >> (64 - bits);
}

void rig_set_int(struct rig *rig, uint32_t value, int64_t number, int64_t integer)
{
    memcpy(element(rig, value, number), &integer, frit_dtype_bits(rig->values[value].dtype) / 8);
}

int64_t rig_count(const struct rig *rig, uint32_t value)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < rig->values[value].rank; d++)
        count *= rig->values[value].dims[d];
    return count;
}

uint32_t rig_every(void)
{
#ifdef __SANITIZE_ADDRESS__
    return getenv("FRIT_TEST_LONG") ? 1 : 7;
#else
    return 1;
#endif
}

bool rig_is_real(uint32_t dtype)
{
    return dtype != FRIT_NO_DTYPE && dtype <= FRIT_BF16;
}

uint32_t rig_random(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

uint32_t rig_divisions(const struct rig *rig)
{
    struct facts facts;
    uint32_t n = 0;

    assert_int_equal(facts_init(&facts, &rig->module, 0, NULL), FRIT_OK);
    for (uint32_t i = 0; i < facts.n; i++)
        n += rig->module.phases[0].inst[i].op == KIR_mulhi && facts.of[i].kind != FACT_UNIFORM;
    facts_fini(&facts);
    return n;
}
