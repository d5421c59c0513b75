/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments as cooperative matrices: the words, and on a device that multiplies matrices what eval
 * computes.  FRIT_TEST_SPIRV_VAL names a spirv-val that knows the extensions; that of
 * Debian 12 does not, and no software device has them. */
#include "unit.h"

#include <string.h>

#include "base/fail.h"
#include "ir/half.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "kernels/emit/spirv/rig.h"

enum { TEAMS = 2, STEPS = 2, OP_LOAD = 4457, OP_STORE = 4458, OP_MULTIPLY = 4459 };

/* out = left right + 1 of two teams with rows of their own, in STEPS steps of k; each lane then
 * has some of it as floats of 16 bits. */
enum { FROM_ARGUMENTS, FROM_STORES, FROM_COPIES, SOURCES };

struct form {
    struct kir_fragment_shape shape;
    uint32_t per_thread;
    uint32_t source;
    uint32_t left, right; /* by columns */
    uint32_t sums;        /* likewise as they are stored to a tile */
};

struct build {
    struct kir_module *m;
    const struct form *form;
    uint32_t rows, depth, columns; /* of all teams */
    uint32_t lanes, lane, team;    /* values: of the group, of the team */
};

static uint32_t number(const struct build *b, int64_t value)
{
    return kir_const_i(b->m, KIR_I32, value);
}

static uint32_t times(const struct build *b, uint32_t a, int64_t by)
{
    return kir_binary(b->m, KIR_mul, a, number(b, by));
}

static uint32_t plus(const struct build *b, uint32_t a, uint32_t c)
{
    return kir_binary(b->m, KIR_add, a, c);
}

static void instruction(const struct build *b, enum kir_op op, uint64_t imm, uint32_t x, uint32_t y)
{
    kir_emit_imm(b->m, op, imm, x, y, KIR_NONE);
}

/* Where a fragment is in memory. */
static struct kir_fragment_place place_of(const struct build *b, enum kir_use use)
{
    const struct form *f = b->form;

    if (use == KIR_SUM)
        return (struct kir_fragment_place){
            .fragment = 0, .is_tile = true, .place = 2, .by_columns = f->sums};
    return (struct kir_fragment_place){.fragment = use == KIR_LEFT ? 1 : 2,
                                       .is_tile = f->source != FROM_ARGUMENTS,
                                       .place = use == KIR_RIGHT,
                                       .by_columns = use == KIR_LEFT ? f->left : f->right};
}

static void place(const struct build *b, enum kir_op op, struct kir_fragment_place at,
                  uint32_t offset, uint32_t stride)
{
    instruction(b, op, kir_fragment_imm(&at), offset, number(b, stride));
}

/* Element `lane` and every `lanes`-th one of an argument into a tile. */
static void stage(const struct build *b, uint32_t arg, uint32_t tile, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += b->lanes) {
        uint32_t at = plus(b, b->lane, number(b, i)), value;

        if (b->form->source == FROM_COPIES) {
            kir_emit_imm(b->m, KIR_tcopy, kir_copy_imm(&(struct kir_copy){tile, arg}), at, at,
                         kir_binary(b->m, KIR_lt, at, number(b, count)));
            continue;
        }
        value = kir_emit_as(b->m, KIR_load, KIR_F32, arg, at, KIR_NONE, KIR_NONE);
        instruction(b, KIR_tstore, tile, at, value);
    }
}

static void multiply(const struct build *b)
{
    const struct form *f = b->form;
    const struct kir_fragment_shape *s = &f->shape;
    uint32_t left_stride = f->left ? b->rows : b->depth,
             right_stride = f->right ? b->depth : b->columns;
    uint32_t row = times(b, b->team, s->m), step, left, right;

    step = kir_for(b->m, number(b, 0), number(b, b->depth), s->k);
    left = f->left ? plus(b, times(b, step, left_stride), row)
                   : plus(b, times(b, row, left_stride), step);
    right = f->right ? step : times(b, step, right_stride);
    place(b, KIR_mload, place_of(b, KIR_LEFT), left, left_stride);
    place(b, KIR_mload, place_of(b, KIR_RIGHT), right, right_stride);
    instruction(b, KIR_mma, kir_product(0, 1, 2), KIR_NONE, KIR_NONE);
    kir_next(b->m, NULL, 0);
}

static void store(const struct build *b)
{
    const struct kir_fragment_shape *s = &b->form->shape;
    uint32_t stride = b->form->sums ? b->rows : b->columns, row = times(b, b->team, s->m), at;

    kir_emit(b->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    place(b, KIR_mstore, place_of(b, KIR_SUM), b->form->sums ? row : times(b, row, stride), stride);
    kir_emit(b->m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    for (uint32_t i = 0; i < b->rows * b->columns; i += b->lanes) {
        at = plus(b, b->lane, number(b, i));
        instruction(b, KIR_store, 2, at,
                    kir_emit_as(b->m, KIR_tload, KIR_F32, 2, at, KIR_NONE, KIR_NONE));
    }
}

static void build_form(struct kir_module *m, const struct form *form)
{
    const struct kir_fragment_shape *s = &form->shape;
    struct build b = {.m = m,
                      .form = form,
                      .rows = TEAMS * s->m,
                      .depth = STEPS * s->k,
                      .columns = s->n,
                      .lanes = TEAMS * 32 * form->per_thread};
    uint32_t one, x;

    kir_init(m, "fragments");
    kir_arg(m, s->dtype, KIR_READ);
    kir_arg(m, s->dtype, KIR_READ);
    kir_arg(m, s->dtype, KIR_WRITE);
    kir_phase(m, b.lanes);
    kir_tile_of(m, KIR_GROUP, s->dtype, b.rows * b.depth);
    kir_tile_of(m, KIR_GROUP, s->dtype, b.depth * b.columns);
    kir_tile_of(m, KIR_GROUP, s->sum, b.rows * b.columns);
    m->phases[0].team = 32 * form->per_thread;
    kir_fragment(m, &(struct kir_fragment){KIR_SUM, s->sum, s->m, s->n});
    kir_fragment(m, &(struct kir_fragment){KIR_LEFT, s->dtype, s->m, s->k});
    kir_fragment(m, &(struct kir_fragment){KIR_RIGHT, s->dtype, s->k, s->n});
    b.lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    b.team = kir_binary(m, KIR_shr, b.lane, number(&b, __builtin_ctz(m->phases[0].team)));
    one = kir_const_f(m, KIR_F32, 1);
    instruction(&b, KIR_mfill, 0, kir_const_f(m, KIR_F32, 0), KIR_NONE);
    if (form->source != FROM_ARGUMENTS) {
        stage(&b, 0, 0, b.rows * b.depth);
        stage(&b, 1, 1, b.depth * b.columns);
        instruction(&b, KIR_twait, 0, KIR_NONE, KIR_NONE);
        kir_emit(m, KIR_barrier, KIR_NONE, KIR_NONE, KIR_NONE);
    }
    multiply(&b);
    x = kir_each(m, 0);
    kir_done(m, kir_binary(m, KIR_add, x, one));
    store(&b);
}

/* ---- the words ---- */

static struct kir_fragment_shape shape_16(uint32_t n, uint32_t dtype)
{
    return (struct kir_fragment_shape){.m = 16, .n = n, .k = 16, .dtype = dtype, .sum = FRIT_F32};
}

static struct spirv_target matrix_target(void)
{
    struct spirv_target target = spirv_rich;

    target.matrices = target.matrices_f16 = target.matrices_bf16 = true;
    return target;
}

/* The form of a number; every combination comes within 96. */
static struct form form_of(struct kir_fragment_shape shape, uint32_t i)
{
    return (struct form){.shape = shape,
                         .per_thread = i & 1 ? 8 : 2,
                         .left = i >> 1 & 1,
                         .right = i >> 2 & 1,
                         .sums = i >> 3 & 1,
                         .source = i >> 4};
}

static void matrices_are_loaded_multiplied_and_stored(void **state)
{
    struct spirv_target target = matrix_target();

    (void)state;
    for (uint32_t i = 0; i < SOURCES * 16; i++) {
        const uint32_t dtype = i & 2 ? FRIT_F16 : FRIT_BF16;
        struct form form = form_of(shape_16(8, dtype), i);
        struct kir_module m;
        struct spirv_code code;

        form.per_thread = 1u << (i & 3);
        target.shares_tiles = i & 4;
        build_form(&m, &form);
        spirv_rig_emit(&m, 0, &target, true, &code);
        assert_int_equal(code.per_thread, form.per_thread);
        assert_int_equal(code.threads, TEAMS * 32);
        assert_true(code.subgroups);
        assert_int_equal(spirv_rig_count(&code, OP_LOAD), 2);
        assert_int_equal(spirv_rig_count(&code, OP_MULTIPLY), 1);
        assert_int_equal(spirv_rig_count(&code, OP_STORE), 1);
        spirv_fini(&code);
        kir_fini(&m);
    }
}

/* The sums lie where the factors were. */
static void tiles_share_memory(void **state)
{
    const struct form form = {
        .shape = shape_16(16, FRIT_BF16), .per_thread = 8, .source = FROM_STORES};
    struct spirv_target target = matrix_target();
    struct kir_module m;
    struct spirv_code apart, shared;

    (void)state;
    build_form(&m, &form);
    spirv_rig_emit(&m, 0, &target, true, &apart);
    target.shares_tiles = true;
    spirv_rig_emit(&m, 0, &target, true, &shared);
    assert_int_equal(apart.shared_bytes, 2 * (32 * 32 + 32 * 16) + 4 * 32 * 16);
    assert_int_equal(shared.shared_bytes, 2 * (32 * 32 + 32 * 16));
    spirv_fini(&apart);
    spirv_fini(&shared);
    kir_fini(&m);
}

/* Elements of 16 bits go from an argument to a tile in words, unconverted. */
static void pairs_are_copied_as_words(void **state)
{
    const struct form form = {
        .shape = shape_16(16, FRIT_BF16), .per_thread = 8, .source = FROM_STORES};
    const struct spirv_target target = matrix_target();
    struct kir_module m;
    struct spirv_code code;
    const uint32_t and_also = 199;   /* OpBitwiseAnd, for results: two of each that is rounded, */
    const uint32_t most = 8 * 2 + 4; /* and one of each pair that is packed */

    (void)state;
    build_form(&m, &form);
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_true(spirv_rig_count(&code, and_also) <= most);
    spirv_fini(&code);
    kir_fini(&m);
}

static void refused(const struct kir_module *m, const struct spirv_target *target, bool aligned)
{
    struct spirv_code code;
    frit_err err = ERR_INIT;

    assert_int_equal(spirv_emit(m, 0, target, aligned, &code, &err), FRIT_UNSUPPORTED);
    spirv_fini(&code);
}

static void what_the_device_lacks_is_refused(void **state)
{
    const struct form form = {
        .shape = shape_16(16, FRIT_BF16), .per_thread = 1, .source = FROM_ARGUMENTS};
    const struct spirv_target all = matrix_target();
    struct spirv_target target = all;
    struct kir_module m;

    (void)state;
    build_form(&m, &form);
    refused(&m, &all, false); /* matrices at any address */
    target.matrices_bf16 = false;
    refused(&m, &target, true);
    target = all;
    target.matrices = false;
    refused(&m, &target, true);
    m.phases[0].team = 16;
    refused(&m, &all, true);
    kir_fini(&m);
}

static void coordinates_are_refused(void **state)
{
    const struct spirv_target target = matrix_target();
    struct kir_module m;
    uint32_t x;

    (void)state;
    kir_init(&m, "coordinates");
    kir_phase(&m, 32);
    m.phases[0].team = 32;
    kir_fragment(&m, &(struct kir_fragment){KIR_SUM, FRIT_F32, 16, 16});
    kir_emit_imm(&m, KIR_mfill, 0, kir_const_f(&m, KIR_F32, 0), KIR_NONE, KIR_NONE);
    x = kir_each(&m, 0);
    kir_emit(&m, KIR_row, KIR_NONE, KIR_NONE, KIR_NONE);
    kir_done(&m, x);
    refused(&m, &target, true);
    kir_fini(&m);
}

/* ---- on a device ---- */

static struct vulkan_rig *rig;

static uint16_t half_of(uint32_t dtype, int value)
{
    return half_store((float)value, frit_dtype_info_of(dtype).fraction);
}

/* As many lanes as the form says, or as every matrix has elements. */
static void run_form(struct form *form)
{
    const struct kir_fragment_shape *s = &form->shape;
    uint16_t left[2048], right[2048], out[2048] = {0};
    const uint32_t n_left = TEAMS * STEPS * s->m * s->k, n_right = STEPS * s->k * s->n;
    const struct spirv_rig_arg args[] = {
        {left, n_left * 2u}, {right, n_right * 2u}, {out, TEAMS * s->m * s->n * 2u}};
    struct kir_module m;
    frit_err err = ERR_INIT;

    for (uint32_t i = 0; i < 2048; i++) {
        left[i] = half_of(s->dtype, (int)(i * 7 % 17) - 8);
        right[i] = half_of(s->dtype, (int)(i * 5 % 13) - 6);
    }
    while (form->per_thread * 32 > s->m * s->n ||
           form->per_thread * 32 * TEAMS > STEPS * s->k * s->n)
        form->per_thread /= 2;
    build_form(&m, form);
    if (kir_verify(&m, NULL, &err))
        fail_msg("%s", err.text);
    spirv_rig_check(rig, &(struct spirv_rig_run){.module = &m,
                                                 .args = args,
                                                 .grid = (const uint32_t[][3]){{1, 1, 1}},
                                                 .aligned_only = form->source == FROM_ARGUMENTS});
    kir_fini(&m);
}

static void products_are_those_of_eval(void **state)
{
    const struct kir_fragment_shape *shapes;
    uint32_t n;

    (void)state;
    rig = vulkan_open();
    assert_non_null(rig);
    shapes = vulkan_shapes(rig, &n);
    if (!n) {
        vulkan_close(rig);
        skip();
    }
    for (uint32_t i = 0; i < n * SOURCES * 16; i++) {
        struct form form = form_of(shapes[i % n], i / n);

        run_form(&form);
    }
    vulkan_close(rig);
}

/* Copies with and without conditions, in neighbours and apart, that a loop goes on beside. */
static const char copies[] = "kernel copies\nparams 2\narg a0 @ read\narg a1 @ write\n"
                             "phase 64\ntile t0 group @ 128\n"
                             "%0 i32 = lane\n%1 i32 = const 64\n%2 i32 = param 0\n"
                             "%3 i32 = add %0 %1\n%4 b = lt %3 %2\n%5 b = const 1\n"
                             "tcopy t0 a0 %0 %3 %4\n"
                             "%7 i32 = const 63\n%8 i32 = sub %7 %0\n%9 i32 = add %8 %1\n"
                             "tcopy t0 a0 %9 %0 %5\n"
                             "tbatch\ntwait 0\nbarrier\n"
                             "%14 # = tload t0 %0\nstore a1 %0 %14\n"
                             "%16 # = tload t0 %3\nstore a1 %3 %16\n";

/* Neighbours of 16 bits, some with conditions: copied, and loaded and stored as they are. */
static const char pairs[] = "kernel pairs\nparams 2\narg a0 @ read\narg a1 @ write\n"
                            "phase 256\ntile t0 group @ 768\n"
                            "%0 i32 = lane\n%1 i32 = const 256\n%2 i32 = param 0\n"
                            "%3 i32 = add %0 %1\n%4 b = lt %3 %2\n%5 b = const 1\n"
                            "tcopy t0 a0 %0 %0 %5\ntcopy t0 a0 %3 %3 %4\n"
                            "%8 i32 = add %3 %1\n%9 f32 = const 0x00000000\n"
                            "%10 b = lt %0 %2\n%11 f32 = load_if a0 %3 %4 %9\n"
                            "tstore t0 %8 %11\ntbatch\ntwait 0\nbarrier\n"
                            "%16 # = tload t0 %0\nstore a1 %0 %16\n"
                            "%18 # = tload t0 %3\nstore a1 %3 %18\n"
                            "%20 # = tload t0 %8\nstore a1 %8 %20\n";

static void run_copies(const char *form, uint64_t end, const char *dtype, const char *type,
                       uint32_t bytes)
{
    char text[sizeof(pairs) + 64], *to = text;
    uint8_t in[1024], out[1536] = {0};
    const struct spirv_rig_arg args[] = {{in, sizeof(in)}, {out, sizeof(out)}};
    const uint64_t words[] = {end, 0};
    struct kir_module m;
    frit_err err = ERR_INIT;

    for (const char *from = form; *from; from++)
        to = *from == '@'   ? stpcpy(to, dtype)
             : *from == '#' ? stpcpy(to, type)
                            : stpncpy(to, from, 1);
    *to = 0;
    for (uint32_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 7 % 101);
    if (kir_parse(text, strlen(text), &m, &err))
        fail_msg("%s", err.text);
    spirv_rig_check(rig, &(struct spirv_rig_run){.module = &m,
                                                 .words = words,
                                                 .args = args,
                                                 .grid = (const uint32_t[][3]){{1, 1, 1}},
                                                 .aligned_only = bytes == 2});
    kir_fini(&m);
}

static void copies_are_those_of_eval(void **state)
{
    (void)state;
    rig = vulkan_open();
    assert_non_null(rig);
    run_copies(copies, 100, "f32", "f32", 4);
    run_copies(copies, 100, "i32", "i32", 4);
    run_copies(copies, 101, "i64", "i64", 8);
    if (vulkan_target(rig)->float64)
        run_copies(copies, 100, "f64", "f64", 8);
    for (uint64_t end = 400; end < 409; end++) {
        run_copies(pairs, end, "bf16", "f32", 2);
        run_copies(pairs, end, "f16", "f32", 2);
    }
    vulkan_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_loaded_multiplied_and_stored),
        cmocka_unit_test(tiles_share_memory),
        cmocka_unit_test(pairs_are_copied_as_words),
        cmocka_unit_test(what_the_device_lacks_is_refused),
        cmocka_unit_test(coordinates_are_refused),
        cmocka_unit_test(products_are_those_of_eval),
        cmocka_unit_test(copies_are_those_of_eval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
