/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of ops that break a rule each, and of two that break none: "org.frit.bad.fine/1" says
 * that the others did it no harm, "org.frit.bad.twice/1" is listed twice. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <frit/custom.h>

#include "../driver.h"

/* ---- schemas that cannot be ---- */

#define SLOTS(name, ...) static const frit_custom_slot name[] = {__VA_ARGS__}

SLOTS(float_in, {{"x", 1}, FRIT_ROLE_IN, FRIT_LETTER_F});
SLOTS(float_out, {{"y", 1}, FRIT_ROLE_OUT, FRIT_LETTER_F});
SLOTS(any_out, {{"y", 1}, FRIT_ROLE_OUT, FRIT_LETTER_NONE});
SLOTS(no_word, {{"X y", 3}, FRIT_ROLE_IN, FRIT_LETTER_F});
SLOTS(bad_role, {{"x", 1}, FRIT_ROLE_OUT, FRIT_LETTER_F});
SLOTS(late_many, {{"x", 1}, FRIT_ROLE_IN, FRIT_LETTER_F},
      {{"z", 1}, FRIT_ROLE_MANY, FRIT_LETTER_F});
SLOTS(bad_letter, {{"x", 1}, FRIT_ROLE_IN, 99});
SLOTS(no_dtype, {{"x", 1}, FRIT_ROLE_IN, FRIT_LETTER_D});
SLOTS(unbound, {{"y", 1}, FRIT_ROLE_OUT, FRIT_LETTER_Z});

#define FIELDS(name, ...) static const frit_custom_field name[] = {__VA_ARGS__}
#define FIELD(name, type, use)                                                      \
    {                                                                               \
        {name, 1}, {NULL, 0}, FRIT_ATTR_##type, FRIT_USE_##use, FRIT_PLACE_NAMED, 0 \
    }

FIELDS(bad_type, {{"a", 1}, {NULL, 0}, 77, FRIT_USE_KEY, FRIT_PLACE_NAMED, 0});
FIELDS(a_choice, FIELD("a", CHOICE, KEY));
FIELDS(launch_int, FIELD("a", INT, LAUNCH));
FIELDS(twin_fields, FIELD("a", INT, KEY), FIELD("a", INT, KEY));
/* Words as long as words may be, and as many. */
#define LONG_FIELD(letter)                                                                      \
    {                                                                                           \
        {"an_attribute_with_a_long_name_" letter, 31}, {NULL, 0}, FRIT_ATTR_DIMS, FRIT_USE_KEY, \
            FRIT_PLACE_NAMED, 0                                                                 \
    }
FIELDS(long_fields, LONG_FIELD("a"), LONG_FIELD("b"), LONG_FIELD("c"), LONG_FIELD("d"),
       LONG_FIELD("e"), LONG_FIELD("f"), LONG_FIELD("g"));
FIELDS(wide_record, FIELD("a", SLICES, KEY), FIELD("b", SLICES, KEY), FIELD("c", SLICES, KEY));

/* ---- infer ---- */

static const frit_custom_operand *operand(const frit_custom_call *call, uint32_t index)
{
    return (const frit_custom_operand *)(const void *)((const char *)call->in +
                                                       (size_t)call->in_stride * index);
}

#define INFER(name)                                                                                \
    static frit_status name(const void *self, const frit_custom_call *call, frit_custom_type *out, \
                            frit_err *err)
#define UNUSED (void)self, (void)call, (void)out, (void)err

INFER(infer_fine)
{
    UNUSED;
    *out = operand(call, 0)->type;
    return FRIT_OK;
}

INFER(infer_choosy)
{
    UNUSED;
    snprintf(err->text, sizeof(err->text), "nothing is good enough");
    return FRIT_INVALID;
}

INFER(infer_rank)
{
    UNUSED;
    out->rank = 99;
    return FRIT_OK;
}

INFER(infer_negative)
{
    UNUSED;
    *out = (frit_custom_type){.dtype = FRIT_F32, .rank = 2, .dims = {1, -3}};
    return FRIT_OK;
}

INFER(infer_overflow)
{
    UNUSED;
    *out = (frit_custom_type){.rank = 2, .dims = {INT64_MAX, INT64_MAX}};
    return FRIT_OK;
}

INFER(infer_dtype)
{
    UNUSED;
    *out = (frit_custom_type){.dtype = 77, .rank = 1, .dims = {6}};
    return FRIT_OK;
}

INFER(infer_silent)
{
    UNUSED;
    return FRIT_INVALID;
}

INFER(infer_positive)
{
    UNUSED;
    return 7;
}

INFER(infer_endless_text)
{
    UNUSED;
    memset(err->text, 'a', sizeof(err->text));
    return FRIT_INVALID;
}

/* Another answer from the second time on. */
INFER(infer_fickle)
{
    static atomic_int calls;

    UNUSED;
    *out = (frit_custom_type){.rank = 1, .dims = {atomic_fetch_add(&calls, 1) ? 3 : 6}};
    return FRIT_OK;
}

/* ---- decompose ---- */

#define DECOMPOSE(name)                                                     \
    static frit_status name(const void *self, const frit_custom_call *call, \
                            const frit_custom_build *build, uint32_t *results, frit_err *err)
#define UNUSED_PARTS (void)self, (void)call, (void)build, (void)results, (void)err

static frit_status add_op(const frit_custom_build *build, uint32_t op, uint32_t n_in,
                          uint32_t value, uint32_t *results, frit_err *err)
{
    const frit_custom_operand in[2] = {{.kind = FRIT_OPERAND_TENSOR, .value = value},
                                       {.kind = FRIT_OPERAND_TENSOR, .value = value}};
    const frit_custom_part part = {
        .struct_size = sizeof(part), .op = op, .n_in = n_in, .in_stride = sizeof(in[0]), .in = in};

    return build->add(build->self, &part, results, err);
}

/* As infer says now. */
DECOMPOSE(decompose_fickle)
{
    const frit_attrs_init init = {
        .struct_size = sizeof(init), .dtype = FRIT_F32, .dims = {1, {call->out->dims[0]}}};
    const frit_custom_operand in = {.kind = FRIT_OPERAND_SCALAR, .scalar = {FRIT_SCALAR_I64, 0, 1}};
    const frit_custom_part part = {.struct_size = sizeof(part),
                                   .op = FRIT_OP_full,
                                   .n_in = 1,
                                   .in_stride = sizeof(in),
                                   .in = &in,
                                   .attrs = &init};

    UNUSED_PARTS;
    return build->add(build->self, &part, results, err);
}

DECOMPOSE(decompose_nothing)
{
    UNUSED_PARTS;
    return FRIT_OK;
}

/* What fails is ignored: the host remembers it. */
DECOMPOSE(decompose_far)
{
    UNUSED_PARTS;
    (void)add_op(build, FRIT_OP_neg, 1, 1000, results, err);
    (void)add_op(build, FRIT_OP_neg, 1, 0, results, err);
    return FRIT_OK;
}

DECOMPOSE(decompose_wrong_type)
{
    const frit_attrs_cast cast = {.struct_size = sizeof(cast), .dtype = FRIT_F64};
    const frit_custom_operand in = {.kind = FRIT_OPERAND_TENSOR};
    const frit_custom_part part = {.struct_size = sizeof(part),
                                   .op = FRIT_OP_cast,
                                   .n_in = 1,
                                   .in_stride = sizeof(in),
                                   .in = &in,
                                   .attrs = &cast};

    UNUSED_PARTS;
    return build->add(build->self, &part, results, err);
}

DECOMPOSE(decompose_itself)
{
    UNUSED_PARTS;
    return add_op(build, FRIT_OP_CUSTOM, 1, 0, results, err);
}

DECOMPOSE(decompose_no_row)
{
    UNUSED_PARTS;
    return add_op(build, FRIT_OP_LIMIT - 1, 1, 0, results, err);
}

DECOMPOSE(decompose_drawing)
{
    UNUSED_PARTS;
    return add_op(build, FRIT_OP_random_raw, 0, 0, results, err);
}

DECOMPOSE(decompose_deaf)
{
    UNUSED_PARTS;
    return add_op(build, FRIT_OP_neg, 2, 0, results, err);
}

DECOMPOSE(decompose_unsized)
{
    const frit_custom_part part = {.op = FRIT_OP_neg};

    UNUSED_PARTS;
    return build->add(build->self, &part, results, err);
}

DECOMPOSE(decompose_endless)
{
    frit_status st = FRIT_OK;

    UNUSED_PARTS;
    while (!st)
        st = add_op(build, FRIT_OP_neg, 1, 0, results, err);
    return st;
}

DECOMPOSE(decompose_gives_up)
{
    UNUSED_PARTS;
    snprintf(err->text, sizeof(err->text), "not today");
    return FRIT_UNSUPPORTED;
}

/* ---- the table ---- */

#define FINE(name_)                                                                      \
    .struct_size = sizeof(frit_custom_op), .rev = 1, .name = {name_, sizeof(name_) - 1}, \
    .n_in = 1, .n_out = 1, .slot_stride = sizeof(frit_custom_slot),                      \
    .field_stride = sizeof(frit_custom_field), .in = float_in, .out = float_out,         \
    .infer = infer_fine
#define BAD_OP(word, words, ...)   {FINE("org.frit.bad." #word "/1"), __VA_ARGS__},
#define BAD_CALL(word, words, ...) {FINE("org.frit.bad." #word "/1"), __VA_ARGS__},

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const frit_custom_op ops[] = {
    {FINE("org.frit.bad.twice/1")},
    {FINE("org.frit.bad.twice/1")},
    {FINE("bad/1")},
    {FINE("org.Frit/1")},
    {FINE("org.frit.bad.none")},
    {FINE("org.frit.bad/0")},
    {FINE("org..bad/1")},
    {FINE("org.bad./1")},
    {FINE("org.bad/1x")},
    {FINE("")},
    {FINE("org.frit.bad.a_name_of_which_nobody_can_say_that_it_is_not_too_long/1")},
#include "badops.def"
    {FINE("org.frit.bad.fine/1")},
};
#pragma GCC diagnostic pop

static const frit_ops_table table = {.struct_size = sizeof(table),
                                     .n_ops = sizeof(ops) / sizeof(ops[0]),
                                     .op_stride = sizeof(ops[0]),
                                     .ops = ops};

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    struct fake *fake = NULL;
    frit_status st = fake_open(host, "badops", &fake, err);

    *instance = fake;
    return st;
}

static const void *plugin_interface(void *instance, frit_str id)
{
    const frit_str name = FRIT_STR(FRIT_OPS_TABLE);

    (void)instance;
    return id.len == name.len && memcmp(id.ptr, name.ptr, name.len) == 0 ? &table : NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(plugin),
    .id = {"fake-badops", 11},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .open = plugin_open,
    .close = fake_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("fake-badops", "1.0", "", &plugin)
