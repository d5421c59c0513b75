/* SPDX-License-Identifier: Apache-2.0 */
/* What the kit makes of a driver's fusers: blocks, programs, and these as bytes. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "steps.h"

static int open_rig(void **state)
{
    memset(&seen, 0, sizeof seen);
    return steps_open(state);
}

static const frit_fuser_table *fuser_table(struct rig *rig)
{
    return rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_FUSER_TABLE));
}

static frit_fuser_device device_of(struct rig *rig, uint32_t same)
{
    return (frit_fuser_device){
        .struct_size = sizeof(frit_fuser_device), .same_plugin = same, .device = rig->device};
}

/* A fuser to push to: the driver's `index`-th. */
static void *fuser_of(struct rig *rig, uint32_t index)
{
    const frit_fuser_device device = device_of(rig, 1);
    frit_fuser fusers[2] = {{.struct_size = sizeof *fusers}, {.struct_size = sizeof *fusers}};
    uint32_t count;
    void *fuser;

    assert_int_equal(fuser_table(rig)->prototypes(rig->instance, &device, fusers, sizeof *fusers, 2,
                                                  &count, &rig->err),
                     FRIT_OK);
    assert_int_equal(count, 2);
    assert_int_equal(fusers[0].version, 3);
    assert_true(plug_is(fusers[1].name, FRIT_STR("any")));
    assert_int_equal(fuser_table(rig)->clone(fusers[index].prototype, &fuser, &rig->err), FRIT_OK);
    for (uint32_t i = 0; i < 2; i++)
        fuser_table(rig)->destroy(fusers[i].prototype);
    return fuser;
}

static uint32_t push(struct rig *rig, void *fuser, uint32_t id, uint32_t a, uint32_t b, uint32_t y,
                     uint32_t dead)
{
    frit_fuser_state state = {.struct_size = sizeof state};
    struct op op;

    op_of(&op, id, a, b, y, dead);
    fuser_table(rig)->push(fuser, &op.desc, 1, sizeof op.desc);
    fuser_table(rig)->state(fuser, &state);
    assert_int_equal(state.ready, state.accepted > 0);
    return state.accepted;
}

static bool is_open(struct rig *rig, const void *fuser)
{
    frit_fuser_state state = {.struct_size = sizeof state};

    fuser_table(rig)->state(fuser, &state);
    return state.open;
}

/* t = x + 2; u = t * y; v = u * 3, where t and u die.  `first` is the number of x. */
enum { CHAIN = 3 };

static void chain_ops(struct op ops[CHAIN], uint32_t first)
{
    op_of(&ops[0], FRIT_OP_add, first, 0, first + 1, 0);
    op_of(&ops[1], FRIT_OP_mul, first + 1, first + 2, first + 3, first + 1);
    op_of(&ops[2], FRIT_OP_mul, first + 3, 0, first + 4, first + 3);
}

static void *chain(struct rig *rig, uint32_t fuser_index)
{
    void *fuser = fuser_of(rig, fuser_index);

    assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 0, 11, 0), 1);
    assert_int_equal(push(rig, fuser, FRIT_OP_mul, 11, 12, 13, 11), 2);
    assert_int_equal(push(rig, fuser, FRIT_OP_mul, 13, 0, 14, 13), CHAIN);
    return fuser;
}

static void run_chain(struct rig *rig, const frit_program *program)
{
    frit_program_info info = {.struct_size = sizeof info};
    frit_failure failure;
    struct launch l;

    assert_int_equal(program->table->describe(program->self, &info, &rig->err), FRIT_OK);
    assert_int_equal(info.n_ops, 3);
    launch_of(rig, &l, program, 3); /* x, y; v */
    l.launch.n_scalars = 2;
    set_scalar(&l, 0, 2);
    set_scalar(&l, 1, 3);
    assert_int_equal(submit_and_wait(rig, &l, &failure), FRIT_OK);
    assert_int_equal(seen.n_ops, 3);
    assert_int_equal(seen.n_in, 2);
    assert_true(seen.inside);
    assert_true(seen.scalars[0] == 2 && seen.scalars[2] == 3);
    rig->backend->free(rig->device, l.memory.memory);
}

static void chains_become_programs(void **state)
{
    struct rig *rig = *state;
    frit_program program = {.struct_size = sizeof program};
    void *fuser = chain(rig, 0), *clone;

    assert_int_equal(fuser_table(rig)->clone(fuser, &clone, &rig->err), FRIT_OK);
    assert_int_equal(push(rig, fuser, FRIT_OP_exp, 14, 0, 15, 14), 3); /* not taken: closed */
    assert_false(is_open(rig, fuser));
    assert_int_equal(push(rig, fuser, FRIT_OP_add, 14, 14, 16, 0), 3);
    assert_int_equal(push(rig, clone, FRIT_OP_add, 14, 14, 16, 0), 4); /* the clone is its own */
    assert_int_equal(push(rig, clone, FRIT_OP_add, 14, 14, 17, 0), 4); /* the driver says no */
    fuser_table(rig)->destroy(clone);
    assert_int_equal(fuser_table(rig)->finish(fuser, &program, &rig->err), FRIT_OK);
    fuser_table(rig)->destroy(fuser);
    run_chain(rig, &program);
    program.table->destroy(program.self);
}

/* A longer prefix that shows nothing is not covered: what died in it is a result again. */
static void what_is_not_covered_has_no_say(void **state)
{
    struct rig *rig = *state;
    frit_program program = {.struct_size = sizeof program};
    frit_fuser_state now = {.struct_size = sizeof now};
    void *fuser = chain(rig, 0);
    struct op op;

    op_of(&op, FRIT_OP_add, 14, 14, 15, 14);
    op.dead[op.desc.n_dead++] = 15;
    fuser_table(rig)->push(fuser, &op.desc, 1, sizeof op.desc);
    fuser_table(rig)->state(fuser, &now);
    assert_int_equal(now.accepted, 3);
    assert_int_equal(fuser_table(rig)->finish(fuser, &program, &rig->err), FRIT_OK);
    fuser_table(rig)->destroy(fuser);
    run_chain(rig, &program);
    program.table->destroy(program.self);
}

/* Where all that was made is dead nothing is to be seen; the op that shows something makes it ready
 * again, and what comes back after reset begins anew. */
static void only_what_shows_something_is_covered(void **state)
{
    struct rig *rig = *state;
    void *fuser = fuser_of(rig, 1);

    assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 10, 11, 11), 0);
    assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 10, 12, 0), 2);
    fuser_table(rig)->reset(fuser);
    assert_true(is_open(rig, fuser));
    assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 10, 11, 0), 1);
    for (uint32_t i = 2; i <= KIT_ARGS - 1; i++) /* each result lives on: x and results */
        assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 10, 10 + i, 0), i);
    assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 10, 90, 0), KIT_ARGS - 1); /* too many */
    assert_int_equal(push(rig, fuser, FRIT_OP_add, 10, 10, 91, 0), KIT_ARGS - 1); /* too long */
    assert_false(is_open(rig, fuser));
    fuser_table(rig)->destroy(fuser);
}

static void another_drivers_devices_get_none(void **state)
{
    struct rig *rig = *state;
    const frit_fuser_device device = device_of(rig, 0);
    uint32_t count = 7;

    assert_int_equal(
        fuser_table(rig)->prototypes(rig->instance, &device, NULL, 0, 0, &count, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 0);
}

/* ---- programs as bytes ---- */

static frit_status from_state(struct rig *rig, frit_str name, const struct op *ops, uint32_t n_ops,
                              const void *bytes, uint64_t n, frit_program *out)
{
    const frit_fuser_device device = device_of(rig, 1);

    *out = (frit_program){.struct_size = sizeof *out};
    return fuser_table(rig)->from_state(rig->instance, &device, name, &ops->desc, n_ops,
                                        sizeof *ops, bytes, n, out, &rig->err);
}

static char *saved_chain(struct rig *rig, uint64_t *n)
{
    frit_program program = {.struct_size = sizeof program};
    void *fuser = chain(rig, 0);
    char *bytes;

    assert_int_equal(fuser_table(rig)->finish(fuser, &program, &rig->err), FRIT_OK);
    fuser_table(rig)->destroy(fuser);
    *n = 0;
    assert_int_equal(program.table->to_state(program.self, NULL, n, &rig->err), FRIT_OK);
    bytes = malloc(*n);
    assert_non_null(bytes);
    assert_int_equal(program.table->to_state(program.self, bytes, n, &rig->err), FRIT_OK);
    program.table->destroy(program.self);
    return bytes;
}

static void saved_programs_come_back(void **state)
{
    struct rig *rig = *state;
    const frit_fuser_device foreign = device_of(rig, 0);
    struct op ops[CHAIN], op;
    frit_program program;
    uint64_t n;
    char *bytes = saved_chain(rig, &n);

    for (uint32_t first = 10; first <= 30; first += 20) {
        chain_ops(ops, first);
        for (uint32_t i = 0; i < CHAIN && first > 10; i++)
            for (uint32_t k = 0; k < 3; k++)
                ops[i].in[k].extent[0] = ops[i].out[0].extent[0] = 7;
        assert_int_equal(from_state(rig, FRIT_STR("four"), ops, CHAIN, bytes, n, &program),
                         FRIT_OK);
        run_chain(rig, &program);
        program.table->destroy(program.self);
    }
    assert_int_equal(from_state(rig, FRIT_STR("any"), ops, CHAIN, bytes, n, &program),
                     FRIT_INCOMPATIBLE);
    assert_int_equal(from_state(rig, FRIT_STR("none"), ops, CHAIN, bytes, n, &program),
                     FRIT_INCOMPATIBLE);
    assert_int_equal(fuser_table(rig)->from_state(rig->instance, &foreign, FRIT_STR("four"),
                                                  &ops->desc, CHAIN, sizeof *ops, bytes, n,
                                                  &program, &rig->err),
                     FRIT_INCOMPATIBLE);
    free(bytes);
    op_of(&op, FRIT_OP_add, 1, 2, 3, 0); /* of one op: the host makes it again */
    program = program_for(rig, &op);
    assert_int_equal(program.table->to_state(program.self, NULL, &n, &rig->err), FRIT_UNSUPPORTED);
    program.table->destroy(program.self);
}

/* Cut short, or with any byte turned over. */
static void damaged_bytes_are_refused(void **state)
{
    struct rig *rig = *state;
    struct op ops[CHAIN];
    frit_program program;
    uint64_t n;
    char *bytes = saved_chain(rig, &n);

    chain_ops(ops, 10);
    for (uint64_t cut = 0; cut < n; cut++)
        assert_int_equal(from_state(rig, FRIT_STR("four"), ops, CHAIN, bytes, cut, &program),
                         FRIT_INCOMPATIBLE);
    for (uint64_t at = 0; at < n; at++) {
        bytes[at] = (char)~bytes[at];
        assert_int_equal(from_state(rig, FRIT_STR("four"), ops, CHAIN, bytes, n, &program),
                         FRIT_INCOMPATIBLE);
        bytes[at] = (char)~bytes[at];
    }
    free(bytes);
}

static void bytes_of_other_ops_are_refused(void **state)
{
    enum { ID, SCALAR, DTYPE, RANK, EXTENT, DEAD, SWAPPED, FEWER, N_OTHERS };
    struct rig *rig = *state;
    struct op ops[CHAIN];
    frit_program program;
    uint64_t n;
    char *bytes = saved_chain(rig, &n);

    for (int other = 0; other < N_OTHERS; other++) {
        chain_ops(ops, 10);
        ops[1].desc.id = other == ID ? FRIT_OP_add : ops[1].desc.id;
        ops[2].in[1] = other == SCALAR ? ops[2].in[0] : ops[2].in[1];
        ops[1].in[1].dtype = other == DTYPE ? FRIT_F64 : FRIT_F32;
        ops[1].in[1].rank = other == RANK ? 1 : 2;
        ops[1].in[1].extent[0] = other == EXTENT ? 1 : 2;
        ops[1].desc.n_dead = other != DEAD;
        ops[1].in[0].value = other == SWAPPED ? 12 : 11;
        ops[1].in[1].value = other == SWAPPED ? 11 : 12;
        assert_int_equal(from_state(rig, FRIT_STR("four"), ops, other == FEWER ? CHAIN - 1 : CHAIN,
                                    bytes, n, &program),
                         FRIT_INCOMPATIBLE);
    }
    free(bytes);
}

/* ---- out of memory ---- */

static void each_allocation_may_fail(void **state)
{
    struct rig *rig = *state;
    const frit_fuser_device device = device_of(rig, 1);
    frit_fuser fusers[2] = {{.struct_size = sizeof *fusers}, {.struct_size = sizeof *fusers}};
    frit_program program = {.struct_size = sizeof program};
    void *fuser = chain(rig, 0), *clone, *other;
    int64_t live = rig->live;
    uint32_t count = 7;
    struct op op;

    for (int i = 1; i <= 2; i++) {
        rig->refuse = i;
        assert_int_equal(fuser_table(rig)->prototypes(rig->instance, &device, fusers,
                                                      sizeof *fusers, 2, &count, &rig->err),
                         FRIT_NO_HOST_MEMORY);
        assert_int_equal(count, 0);
    }
    rig->refuse = 1;
    assert_int_equal(fuser_table(rig)->clone(fuser, &clone, &rig->err), FRIT_NO_HOST_MEMORY);
    rig->refuse = 1;
    assert_int_equal(fuser_table(rig)->finish(fuser, &program, &rig->err), FRIT_NO_HOST_MEMORY);
    rig->refuse = 1;
    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    assert_int_equal(rig->backend->op_program(rig->device, &op.desc, &program, &rig->err),
                     FRIT_NO_HOST_MEMORY);
    rig->refuse = 1;
    assert_int_equal(rig->backend->device_open(rig->instance, 1, &rig_params, &other, &rig->err),
                     FRIT_NO_HOST_MEMORY);
    assert_int_equal(rig->live, live);
    fuser_table(rig)->destroy(fuser);
    fuser_table(rig)->destroy(NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_rig, steps_close)
    const struct CMUnitTest tests[] = {
        CASE(chains_become_programs),
        CASE(what_is_not_covered_has_no_say),
        CASE(only_what_shows_something_is_covered),
        CASE(another_drivers_devices_get_none),
        CASE(saved_programs_come_back),
        CASE(damaged_bytes_are_refused),
        CASE(bytes_of_other_ops_are_refused),
        CASE(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
