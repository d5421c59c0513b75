/* SPDX-License-Identifier: Apache-2.0 */
/* What the kit makes of a row's or fuser's list of candidates. */
#include "ways.h"

#include <string.h>

#include "steps.h"

static int open_rig(void **state)
{
    memset(&ways, 0, sizeof ways);
    return steps_open(state);
}

static frit_program_info describe(struct rig *rig, const frit_program *program)
{
    frit_program_info info = {.struct_size = sizeof info};

    assert_int_equal(program->table->describe(program->self, &info, &rig->err), FRIT_OK);
    return info;
}

static void check_candidate(const frit_program_info *info, uint32_t i, const char *identity,
                            uint32_t version, uint32_t numeric_class)
{
    const frit_candidate *candidate =
        (const frit_candidate *)(const void *)((const char *)info->candidates +
                                               (size_t)i * info->candidate_stride);

    assert_true(plug_is(candidate->identity, (frit_str){identity, strlen(identity)}));
    assert_int_equal(candidate->version, version);
    assert_int_equal(candidate->numeric_class, numeric_class);
    assert_int_equal(candidate->struct_size, sizeof *candidate);
}

static void candidates_are_the_list(void **state)
{
    struct rig *rig = *state;
    frit_program program;
    frit_program_info info;
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    program = program_for(rig, &op);
    info = describe(rig, &program);
    assert_int_equal(info.n_candidates, 2);
    assert_null(info.serial); /* no candidate has code */
    check_candidate(&info, 0, "plain", 1, FRIT_NUMERIC_EXACT);
    check_candidate(&info, 1, "elements", 2, FRIT_NUMERIC_EXACT);
    program.table->destroy(program.self);
    op_of(&op, FRIT_OP_matmul, 1, 2, 3, 0);
    program = program_for(rig, &op);
    info = describe(rig, &program);
    assert_int_equal(info.n_candidates, 2);
    check_candidate(&info, 1, "rows", 1, FRIT_NUMERIC_REORDERED);
    program.table->destroy(program.self);
    op_of(&op, FRIT_OP_exp, 1, 0, 3, 0);
    program = program_for(rig, &op);
    info = describe(rig, &program);
    assert_int_equal(info.n_candidates, 1);
    program.table->destroy(program.self);
}

static frit_status prepare_candidate(struct rig *rig, const frit_program *program,
                                     const frit_arg_sig *args, uint32_t candidate,
                                     frit_launch_spec *spec, int32_t *priority)
{
    static frit_variant variant;
    const frit_signature sig = {
        .struct_size = sizeof sig, .n_in = 2, .n_out = 1, .arg_stride = sizeof *args, .args = args};

    variant.struct_size = sizeof variant;
    *spec = (frit_launch_spec){.struct_size = sizeof *spec};
    *priority = program->table->priority(program->self, candidate, &sig);
    return program->table->prepare(program->self, candidate, &sig, spec, &variant, &rig->err);
}

static void predicates_and_priorities(void **state)
{
    struct rig *rig = *state;
    frit_arg_sig args[3] = {sig_of(4, 4, false), sig_of(4, 4, false), sig_of(4, 4, false)};
    frit_launch_spec spec;
    frit_program program;
    int32_t priority;
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    program = program_for(rig, &op);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(prepare_candidate(rig, &program, args, i, &spec, &priority), FRIT_OK);
        assert_int_equal(priority, 0);
        assert_int_equal(rig_aliases(&spec, 0), 3);
        program.table->spec_release(program.self, &spec);
    }
    assert_int_equal(prepare_candidate(rig, &program, args, 0, &spec, &priority), FRIT_OK);
    program.table->spec_release(program.self, &spec);
    args[1] = (frit_arg_sig){0}; /* a scalar */
    assert_int_equal(prepare_candidate(rig, &program, args, 0, &spec, &priority), FRIT_OK);
    program.table->spec_release(program.self, &spec);
    assert_int_equal(prepare_candidate(rig, &program, args, 1, &spec, &priority), FRIT_UNSUPPORTED);
    assert_string_equal(rig->err.text, "ways: add: candidate elements does not take such operands");
    assert_int_equal(priority, -1);
    program.table->destroy(program.self);

    op_of(&op, FRIT_OP_matmul, 1, 2, 3, 0);
    program = program_for(rig, &op);
    args[1] = sig_of(4, 4, true);
    assert_int_equal(prepare_candidate(rig, &program, args, 1, &spec, &priority),
                     FRIT_PREPARE_RELAYOUT); /* by the flags of the candidate */
    assert_int_equal(spec.wanted_arg, 1);
    assert_int_equal(priority, 0);
    program.table->spec_release(program.self, &spec);
    args[1] = sig_of(4, 16, false);
    args[2] = sig_of(4, 16, false);
    assert_int_equal(prepare_candidate(rig, &program, args, 1, &spec, &priority), FRIT_OK);
    assert_int_equal(priority, 1);
    program.table->spec_release(program.self, &spec);
    program.table->destroy(program.self);
}

static void launches_run_their_candidate(void **state)
{
    struct rig *rig = *state;
    frit_failure failure;
    frit_program program;
    struct launch l;
    struct op op;

    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    program = program_for(rig, &op);
    launch_of(rig, &l, &program, 3);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_int_equal(ways.plain_adds, 0);
    assert_null(kit_program_of(&l.launch)->candidate);
    l.launch.candidate = 1;
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_int_equal(ways.plain_adds, 1);
    assert_true(plug_is(kit_program_of(&l.launch)->candidate->identity, FRIT_STR("elements")));
    l.launch.candidate = 2;
    assert_null(kit_program_of(&l.launch));
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_INVALID);
    assert_string_equal(rig->err.text, "ways: add has candidates up to 1, not 2");
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
}

/* Two candidates whose code has the same variant have each their own. */
static void code_is_of_a_candidate(void **state)
{
    struct rig *rig = *state;
    frit_arg_sig args[3] = {sig_of(2, 3, false), sig_of(2, 3, false), sig_of(2, 3, false)};
    const frit_variant variant = {.struct_size = sizeof variant};
    frit_launch_spec spec;
    frit_failure failure;
    frit_program program;
    int32_t priority;
    struct launch l;
    struct op op;

    op_of(&op, FRIT_OP_mul, 1, 2, 3, 0);
    program = program_for(rig, &op);
    assert_non_null(describe(rig, &program).serial);
    assert_int_equal(program.table->compile(program.self, 0, &variant, NULL, &rig->err),
                     FRIT_INVALID);
    launch_of(rig, &l, &program, 3);
    for (uint32_t i = 1; i < 3; i++) {
        l.launch.candidate = i;
        assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_INVALID);
        assert_int_equal(prepare_candidate(rig, &program, args, i, &spec, &priority),
                         FRIT_PREPARE_NEEDS_COMPILE);
        assert_int_equal(rig_aliases(&spec, 0), i == 1 ? 3 : 0);
        program.table->spec_release(program.self, &spec);
        assert_int_equal(program.table->compile(program.self, i, &variant, NULL, &rig->err),
                         FRIT_OK);
        assert_int_equal(prepare_candidate(rig, &program, args, i, &spec, &priority), FRIT_OK);
        program.table->spec_release(program.self, &spec);
        assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
        assert_int_equal(failure.status, FRIT_OK);
        assert_int_equal(ways.codes, i);
        assert_int_equal(program.table->generation(program.self, i, &variant), 0);
    }
    rig->backend->free(rig->device, l.memory.memory);
    program.table->destroy(program.self);
    assert_int_equal(ways.codes, 0);
}

/* Of one list, not of two rows. */
static void identities_are_unlike(void **state)
{
    static const struct kit_candidate twins[] = {
        {.identity = FRIT_STR_INIT("a")}, {.identity = FRIT_STR_INIT("a")}, {0}};
    static const struct kit_candidate plain[] = {{.identity = FRIT_STR_INIT("plain")}, {0}};
    static const struct kit_candidate code[] = {
        {.identity = FRIT_STR_INIT("a"), .flags = KIT_COMPILED}, {0}};
    struct kit_row row = {.op = FRIT_OP_add, .dtypes = 1, .candidates = twins};
    const struct kit_driver driver = {.name = FRIT_STR_INIT("alike"), .rows = &row, .n_rows = 1};
    struct rig *rig = *state;
    const int64_t live = rig->live;
    void *none;

    assert_int_equal(kit_open(&driver, &rig->root, &none, &rig->err), FRIT_INTERNAL);
    assert_string_equal(
        rig->err.text,
        "alike: two candidates of a row or fuser have the same identity, or one is `plain`");
    row.candidates = plain;
    assert_int_equal(kit_open(&driver, &rig->root, &none, &rig->err), FRIT_INTERNAL);
    row.candidates = code;
    assert_int_equal(kit_open(&driver, &rig->root, &none, &rig->err), FRIT_INTERNAL);
    assert_string_equal(rig->err.text,
                        "alike: KIT_COMPILED without a compiler in the struct kit_driver");
    assert_int_equal(rig->live, live);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_rig, steps_close)
    const struct CMUnitTest tests[] = {
        CASE(candidates_are_the_list),      CASE(predicates_and_priorities),
        CASE(launches_run_their_candidate), CASE(code_is_of_a_candidate),
        CASE(identities_are_unlike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
