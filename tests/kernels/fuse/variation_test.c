/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates that are variations of schedules: their identities, when they are offered, and that
 * each one gives the results of the schedule as it is, within its numeric class. */
#include "kernels/fuse/rig.h"

#include <math.h>
#include <string.h>

#include <frit/op.h>

#include "fuse/variation.h"
#include "lower/sched.h"

enum {
    MOST = 1 << 17, /* elements of an argument */
    TENSORS = 3,    /* operands and result of the first op */
    DIMS = 4,
    BLOCKS = 60, /* random ones for each target */
    SEED = 7
};

/* ---- targets ---- */

/* A processor's vectors, and a GPU's threads. */
static void make_processor(struct kir_target *t)
{
    t->lanes = 512;
    t->lanes_per_row = 64;
    t->max_lanes = 2048;
    t->units = 2;
    t->group_bytes = 65536;
    t->registers = 32;
    t->rereads_are_cached = t->lanes_interleaved = true;
    t->keeps_derived = t->winograd = true;
    t->tuning.winograd_wide = 1; /* small convs are Winograd's */
}

static void make_gpu(struct kir_target *t)
{
    t->lanes = t->lanes_per_row = 256;
    t->max_lanes = 512;
    t->near_lanes = 128;
    t->units = 4;
    t->group_bytes = 32768;
    t->tuning.slab_bytes = 64;
    t->stages_tiles = true;
}

static void (*const targets[])(struct kir_target *) = {make_processor, make_gpu};

/* ---- blocks ---- */

struct tensor {
    uint32_t rank;
    int64_t dims[DIMS], strides[DIMS];
};

/* An op, and the negation of its result. */
struct block_case {
    const char *fuser;
    uint32_t id, n_in;
    struct tensor tensor[TENSORS]; /* operands, then the result */
    union {
        frit_attrs_reduce reduce;
        frit_attrs_conv conv;
    } attrs;
    bool has_attrs;
    double terms; /* of a sum, times the largest of them */
};

static struct tensor dense(uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    struct tensor t = {.rank = rank, .dims = {a, b, c, d}};
    int64_t step = 1;

    for (uint32_t i = rank; i-- > 0; step *= t.dims[i])
        t.strides[i] = step;
    return t;
}

/* The same dims with the last two in the other order in memory. */
static void transpose(struct tensor *t)
{
    t->strides[t->rank - 1] = t->dims[t->rank - 2];
    t->strides[t->rank - 2] = 1;
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static int64_t pick(uint32_t *state, const int64_t *list, uint32_t n)
{
    return list[next(state) % n];
}
#define PICK(state, ...)                        \
    pick(state, (const int64_t[]){__VA_ARGS__}, \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void random_map(struct block_case *c, uint32_t *state)
{
    const int64_t rows = PICK(state, 100, 129, 170), columns = PICK(state, 20, 48, 130, 170);

    c->fuser = "map";
    c->id = FRIT_OP_add;
    c->n_in = 2;
    c->tensor[0] = c->tensor[1] = c->tensor[2] = dense(2, rows, columns, 0, 0);
    if (next(state) % 2)
        transpose(&c->tensor[1]);
    else
        c->tensor[1] = dense(2, next(state) % 2 ? 1 : rows, columns, 0, 0);
}

static void random_row(struct block_case *c, uint32_t *state)
{
    static const uint32_t ids[] = {FRIT_OP_sum, FRIT_OP_max};
    static const int64_t sizes[][2] = {{130, 33}, {64, 64},  {128, 40}, {300, 33},
                                       {1000, 9}, {65, 200}, {2, 50000}};
    const int64_t *size = sizes[next(state) % (sizeof(sizes) / sizeof(sizes[0]))];
    const uint32_t axis = next(state) % 2;

    c->fuser = "row";
    c->id = ids[next(state) % 2];
    c->n_in = 1;
    c->tensor[0] = dense(2, size[0], size[1], 0, 0);
    c->tensor[1] = dense(1, size[!axis], 0, 0, 0);
    c->attrs.reduce = (frit_attrs_reduce){.struct_size = sizeof(c->attrs.reduce),
                                          .axes = {.count = 1, .axis = {axis}}};
    c->has_attrs = true;
    c->terms = 8 * (double)size[axis];
}

static void random_product(struct block_case *c, uint32_t *state)
{
    const int64_t m = PICK(state, 5, 64, 128), n = PICK(state, 40, 64, 130),
                  k = PICK(state, 64, 130);

    c->fuser = "contract";
    c->id = FRIT_OP_matmul;
    c->n_in = 2;
    c->tensor[0] = dense(2, m, k, 0, 0);
    c->tensor[1] = dense(2, k, n, 0, 0);
    c->tensor[2] = dense(2, m, n, 0, 0);
    for (uint32_t i = 0; i < 2; i++)
        if (next(state) % 2)
            transpose(&c->tensor[i]);
    c->terms = 64 * (double)k;
}

static void random_conv(struct block_case *c, uint32_t *state)
{
    const bool many = next(state) % 3 == 0; /* channels */
    const int64_t images = many ? 1 : PICK(state, 1, 3), in = many ? 48 : PICK(state, 3, 8);
    const int64_t out = many ? 48 : PICK(state, 8, 12), size = many ? 8 : PICK(state, 7, 14);

    c->fuser = "contract";
    c->id = FRIT_OP_conv;
    c->n_in = 2;
    c->tensor[0] = dense(4, images, in, size, size);
    c->tensor[1] = dense(4, out, in, 3, 3);
    c->tensor[2] = dense(4, images, out, size, size);
    c->attrs.conv = (frit_attrs_conv){.struct_size = sizeof(c->attrs.conv),
                                      .stride = {1, 1},
                                      .padding = {1, 1},
                                      .dilation = {1, 1},
                                      .groups = 1};
    c->has_attrs = true;
    c->terms = 64 * (double)(9 * in);
}

static struct block_case random_case(uint32_t *state)
{
    static void (*const kinds[])(struct block_case *, uint32_t *) = {random_map, random_row,
                                                                     random_product, random_conv};
    struct block_case c = {0};

    kinds[next(state) % (sizeof(kinds) / sizeof(kinds[0]))](&c, state);
    return c;
}

/* ---- programs ---- */

/* The same number wherever the extent is the same. */
static frit_operand operand_of(const struct tensor *t, uint32_t value, int64_t *extents)
{
    frit_operand operand = rig_tensor(value, t->rank);

    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t i = 2;

        while (extents[i] && extents[i] != t->dims[d])
            i++;
        if (t->dims[d] > 1)
            extents[i] = t->dims[d];
        operand.extent[d] = t->dims[d] > 1 ? i : (uint32_t)t->dims[d];
    }
    return operand;
}

static frit_program program_of(struct rig *rig, struct block_case *c)
{
    int64_t extents[TENSORS * DIMS + 3] = {0};
    frit_operand in[2], result, negated;
    struct rig_ops ops = {0};

    for (uint32_t i = 0; i < c->n_in; i++)
        in[i] = operand_of(&c->tensor[i], i, extents);
    result = operand_of(&c->tensor[c->n_in], c->n_in, extents);
    negated = result;
    negated.value++;
    if (c->n_in == 1)
        rig_unary(&ops, c->id, in[0], result, NULL);
    else
        rig_binary(&ops, c->id, in[0], in[1], result, NULL);
    if (c->id == FRIT_OP_conv) { /* without a bias */
        ops.operand[0][3] = result;
        ops.operand[0][2] = (frit_operand){.kind = FRIT_OPERAND_ABSENT};
        ops.op[0].n_in = 3;
        ops.op[0].out = ops.operand[0] + 3;
    }
    if (c->has_attrs)
        ops.op[0].attrs = &c->attrs;
    rig_unary(&ops, FRIT_OP_neg, result, negated, RIG_DEAD(c->n_in));
    return rig_program(rig, c->fuser, &ops);
}

static void sign(const struct block_case *c, struct rig_sig *out)
{
    const int64_t none[] = {0};

    rig_signature(out, c->n_in, 1, 0, 0, none);
    for (uint32_t i = 0; i <= c->n_in; i++) {
        out->args[i].rank = c->tensor[i].rank;
        memcpy(out->args[i].dims, c->tensor[i].dims, sizeof(c->tensor[i].dims));
        memcpy(out->args[i].strides, c->tensor[i].strides, sizeof(c->tensor[i].strides));
    }
}

static frit_program_info describe(const frit_program *program)
{
    frit_program_info info = {.struct_size = sizeof(info)};

    assert_int_equal(program->table->describe(program->self, &info, NULL), FRIT_OK);
    return info;
}

/* False: the candidate is not for this signature. */
static bool run(const frit_program *program, uint32_t candidate, const struct rig_sig *sig,
                float *const *args)
{
    frit_launch_spec spec = {.struct_size = sizeof(spec)};
    frit_variant variant = {.struct_size = sizeof(variant)};
    static struct rig_launch launch;
    frit_err err = {.struct_size = sizeof(err)};
    frit_status st =
        program->table->prepare(program->self, candidate, &sig->sig, &spec, &variant, &err);

    if (st == FRIT_UNSUPPORTED)
        return false;
    if (st < 0)
        fail_msg("prepare: %s", err.text);
    if (st == FRIT_PREPARE_NEEDS_COMPILE)
        assert_int_equal(program->table->compile(program->self, candidate, &variant, NULL, NULL),
                         FRIT_OK);
    rig_bind(&launch, program, &spec, args, sig->sig.n_in + 1, MOST, NULL, 0);
    rig_run(&launch);
    program->table->spec_release(program->self, &spec);
    return true;
}

static uint32_t find_variation(frit_str identity)
{
    uint32_t i = 0;

    while (i < n_variations && (strlen(variations[i].identity) != identity.len ||
                                memcmp(variations[i].identity, identity.ptr, identity.len) != 0))
        i++;
    return i;
}

/* ---- results ---- */

static void fill(float *to, uint64_t n, uint32_t state)
{
    for (uint64_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        to[i] = (float)(int32_t)state * 0x1p-28f; /* -8 to 8 */
    }
}

static uint64_t count_of(const struct tensor *t)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < t->rank; d++)
        n *= (uint64_t)t->dims[d];
    assert_true(n <= MOST);
    return n;
}

static bool is_right(const struct block_case *c, uint32_t numeric_class, float got, float want)
{
    if (numeric_class == FRIT_NUMERIC_EXACT)
        return memcmp(&got, &want, sizeof(got)) == 0;
    return fabs((double)got - (double)want) <= 0x1p-23 * c->terms;
}

static void compare(const struct block_case *c, const frit_candidate *candidate, const float *got,
                    const float *want)
{
    const uint64_t n = count_of(&c->tensor[c->n_in]);

    for (uint64_t i = 0; i < n; i++)
        if (!is_right(c, candidate->numeric_class, got[i], want[i]))
            fail_msg("%.*s: element %llu is %g, not %g", (int)candidate->identity.len,
                     candidate->identity.ptr, (unsigned long long)i, (double)got[i],
                     (double)want[i]);
}

/* Runs all candidates of a block, and counts those that are variations by row. */
static void check_block(struct rig *rig, struct block_case *c, uint32_t *n_run)
{
    static float a[MOST], b[MOST], want[MOST], got[MOST];
    frit_program program = program_of(rig, c);
    const frit_program_info info = describe(&program);
    struct rig_sig sig;

    sign(c, &sig);
    fill(a, MOST, 1);
    fill(b, MOST, 2);
    assert_true(
        run(&program, 0, &sig, c->n_in == 1 ? (float *[]){a, want} : (float *[]){a, b, want}));
    for (uint32_t i = 1; i < info.n_candidates; i++) {
        const uint32_t row = find_variation(info.candidates[i].identity);

        fill(got, MOST, 3);
        if (row == n_variations || program.table->priority(program.self, i, &sig.sig) < 0 ||
            !run(&program, i, &sig, c->n_in == 1 ? (float *[]){a, got} : (float *[]){a, b, got}))
            continue;
        compare(c, &info.candidates[i], got, want);
        n_run[row]++;
    }
    rig_destroy(&program);
}

static void test_results(void **state)
{
    uint32_t n_run[64] = {0}, random = SEED;

    assert_in_range(n_variations, 1, 64);
    for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
        struct rig *rig = *state;

        targets[t](&rig->device.target);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            struct block_case c = random_case(&random);

            check_block(rig, &c, n_run);
        }
    }
    for (uint32_t i = 0; i < n_variations; i++)
        if (!n_run[i])
            fail_msg("no block ran with %s", variations[i].identity);
}

/* ---- identities ---- */

/* What was measured of a candidate is found by its identity: one may be added, but none renamed. */
static void test_identities(void **state)
{
    static const char *const expected[] = {
        "map:line=short",       "map:tiles=none",      "map:lanes=half",
        "row:lanes=half",       "row:lanes=quarter",   "row:columns=few",
        "row:chunk=whole",      "contract:line=short", "contract:packing=none",
        "contract:conv=direct", "contract:tile=small", "contract:tile=tiny",
        "contract:depth=twice"};
    const uint32_t n = sizeof(expected) / sizeof(expected[0]);

    (void)state;
    assert_int_equal(n_variations, n);
    for (uint32_t i = 0; i < n; i++) {
        bool has_schedule = false;

        assert_int_equal(find_variation((frit_str){expected[i], strlen(expected[i])}), i);
        for (uint32_t k = 0; k < n_schedules; k++)
            has_schedule |= strcmp(schedules[k]->name, variations[i].schedule) == 0;
        assert_true(has_schedule);
    }
}

/* ---- when they are offered ---- */

static uint32_t candidate_named(const frit_program *program, const char *identity)
{
    const frit_program_info info = describe(program);

    for (uint32_t i = 0; i < info.n_candidates; i++)
        if (info.candidates[i].identity.len == strlen(identity) &&
            memcmp(info.candidates[i].identity.ptr, identity, strlen(identity)) == 0)
            return i;
    fail_msg("no candidate %s", identity);
    return 0;
}

static void make_add(struct block_case *c, int64_t rows, int64_t columns)
{
    *c = (struct block_case){.fuser = "map", .id = FRIT_OP_add, .n_in = 2};
    c->tensor[0] = c->tensor[1] = c->tensor[2] = dense(2, rows, columns, 0, 0);
}

static void test_priorities(void **state)
{
    struct rig *rig = *state;
    struct block_case c;
    frit_program program;
    struct rig_sig sig;
    uint32_t line;

    make_processor(&rig->device.target);
    make_add(&c, 1000, 48);
    program = program_of(rig, &c);
    line = candidate_named(&program, "map:line=short");
    assert_true(line > 0);
    sign(&c, &sig);
    assert_int_equal(program.table->priority(program.self, line, &sig.sig), 0);
    assert_true(program.table->priority(program.self, 0, &sig.sig) > 0);
    make_add(&c, 1000, 200); /* no short line */
    sign(&c, &sig);
    assert_true(program.table->priority(program.self, line, &sig.sig) < 0);
    make_add(&c, 10, 48); /* nothing to save */
    sign(&c, &sig);
    assert_true(program.table->priority(program.self, line, &sig.sig) < 0);
    rig_destroy(&program);
}

/* Dense operands are not read through tiles anyway: the change has no effect. */
static void test_equal_kernels(void **state)
{
    struct rig *rig = *state;
    frit_launch_spec spec = {.struct_size = sizeof(spec)};
    frit_variant variant = {.struct_size = sizeof(variant)};
    frit_err err = {.struct_size = sizeof(err)};
    struct block_case c;
    frit_program program;
    struct rig_sig sig;
    uint32_t tiles;

    make_processor(&rig->device.target);
    make_add(&c, 300, 200);
    program = program_of(rig, &c);
    tiles = candidate_named(&program, "map:tiles=none");
    sign(&c, &sig);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            program.table->prepare(program.self, tiles, &sig.sig, &spec, &variant, &err),
            FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "map:tiles=none"));
    transpose(&c.tensor[1]);
    sign(&c, &sig);
    assert_int_equal(program.table->prepare(program.self, tiles, &sig.sig, &spec, &variant, &err),
                     FRIT_PREPARE_NEEDS_COMPILE);
    rig_destroy(&program);
}

/* Whole numbers have the same sum in any order, and so has a maximum. */
static void test_classes(void **state)
{
    struct rig *rig = *state;
    uint32_t random = SEED, seen = 0;

    make_processor(&rig->device.target);
    while (seen != 3) {
        struct block_case c = {0};
        frit_program program;
        uint32_t class;

        random_row(&c, &random);
        program = program_of(rig, &c);
        class = describe(&program)
                    .candidates[candidate_named(&program, "row:lanes=half")]
                    .numeric_class;
        assert_int_equal(class, c.id == FRIT_OP_sum ? FRIT_NUMERIC_REORDERED : FRIT_NUMERIC_EXACT);
        seen |= c.id == FRIT_OP_sum ? 1 : 2;
        rig_destroy(&program);
    }
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig_init(rig);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    rig_fini(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_results, setup, teardown),
        cmocka_unit_test(test_identities),
        cmocka_unit_test_setup_teardown(test_priorities, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_kernels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_classes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
