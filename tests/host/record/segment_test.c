/* SPDX-License-Identifier: Apache-2.0 */
/* What waits in a stream: numbers by first appearance, holds, keys that do not know sizes or
 * tensors, and the records that a plan leaves over. */
#include "unit.h"

#include <string.h>

#include "failing_alloc.h"
#include "plan/automaton.h"
#include "plan/key.h"
#include "record/alias.h"
#include "record/segment.h"
#include "run/drain.h"

static struct slot_home home;
static struct automaton *automaton;
static struct walker walker;
static uint64_t last_epoch;

static int open_all(void **state)
{
    (void)state;
    home_init(&home);
    home_set_owner(&home, thread_token());
    walker = (struct walker){0};
    if (automaton_create(1 << 20, &automaton, NULL))
        return 1;
    walker_init(&walker, automaton);
    return 0;
}

static int close_all(void **state)
{
    bool left = atomic_load(&home.n_live);

    (void)state;
    walker_fini(&walker);
    automaton_destroy(automaton);
    home_fini(&home);
    return left;
}

static struct slot *make(int64_t rows, int64_t columns)
{
    struct slot *slot = slot_create(&home, NULL);

    assert_non_null(slot);
    slot->value.type = (struct op_type){.dtype = FRIT_F32, .rank = 2, .dims = {rows, columns}};
    return slot;
}

static void end(struct slot *slot)
{
    if (slot_disown(slot))
        slot_end(slot);
}

static struct segment_input tensor(struct slot *slot)
{
    return (struct segment_input){
        .kind = FRIT_OPERAND_TENSOR, .slot = slot, .type = &slot->value.type};
}

/* An op of one or two tensors (`b` NULL: the scalar `number`), whose output has the type of `a`. */
static bool append(struct segment *segment, uint32_t op, struct slot *a, struct slot *b,
                   double number, struct slot **out)
{
    struct segment_input in[2] = {tensor(a), {.kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32}};
    struct segment_call call = {.op = op, .n_in = 2, .n_out = 1, .in = in};
    bool ok;

    if (b)
        in[1] = tensor(b);
    else
        memcpy(&in[1].scalar.bits, &number, sizeof(number));
    *out = make(a->value.type.dims[0], a->value.type.dims[1]);
    call.types = &(*out)->value.type;
    call.out = out;
    ok = segment_append(segment, &call);
    if (!ok)
        end(*out);
    return ok;
}

static struct slot *add(struct segment *segment, struct slot *a, struct slot *b)
{
    struct slot *out;

    assert_true(append(segment, FRIT_OP_add, a, b, 2, &out));
    return out;
}

static void begin(struct segment *segment)
{
    segment_reset(segment, ++last_epoch);
}

static void finish(struct segment *segment)
{
    segment_release(segment);
    segment_fini(segment);
}

/* ---- numbers ---- */

static void test_values_are_numbered_as_they_appear(void **state)
{
    struct segment segment = {0};
    struct slot *x = make(4, 5), *y = make(4, 5), *a, *b;

    (void)state;
    begin(&segment);
    a = add(&segment, y, x);
    b = add(&segment, a, y);
    assert_int_equal(segment.n_values, 4);
    assert_int_equal(y->index, 0);
    assert_int_equal(x->index, 1);
    assert_int_equal(a->index, 2);
    assert_int_equal(b->index, 3);
    assert_int_equal(segment.values[1].maker, SEGMENT_EXTERNAL);
    assert_int_equal(segment.values[2].maker, 0);
    assert_int_equal(segment.values[3].maker, 1);
    assert_int_equal(segment.ops[1]->in[0].value, 2);
    assert_int_equal(segment.ops[1]->in[1].value, 0);
    assert_int_equal(segment.ops[1]->first, 3);
    finish(&segment);
    end(x), end(y), end(a), end(b);
}

static void test_extents_are_numbered_too(void **state)
{
    struct segment segment = {0};
    struct slot *x = make(7, 1), *y = make(0, 7), *z = make(3, 9), *a, *b, *c;
    struct op_key key;

    (void)state;
    begin(&segment);
    a = add(&segment, x, NULL);
    b = add(&segment, y, NULL);
    c = add(&segment, z, NULL);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(segment_key(&segment, i, NULL, &walker, &key));
    assert_memory_equal(segment.key_types[x->index].extent, ((uint32_t[]){2, 1}), 8);
    assert_memory_equal(segment.key_types[y->index].extent, ((uint32_t[]){0, 2}), 8);
    assert_memory_equal(segment.key_types[z->index].extent, ((uint32_t[]){3, 4}), 8);
    assert_memory_equal(segment.key_types[c->index].extent, ((uint32_t[]){3, 4}), 8);
    finish(&segment);
    end(x), end(y), end(z), end(a), end(b), end(c);
}

/* Once per value, however often it is used. */
static void test_values_are_held(void **state)
{
    struct segment segment = {0};
    struct slot *x = make(2, 2), *a, *b;

    (void)state;
    begin(&segment);
    a = add(&segment, x, x);
    b = add(&segment, x, a);
    assert_int_equal(x->holds, 1);
    assert_int_equal(a->holds, 1);
    end(x), end(a), end(b);
    assert_int_equal(x->state, SLOT_PENDING); /* still there */
    segment_release(&segment);
    assert_int_equal(x->state, SLOT_EMPTY);
    assert_int_equal(b->state, SLOT_EMPTY);
    segment_fini(&segment);
}

static void test_aliases_are_values(void **state)
{
    struct segment segment = {0};
    struct slot *x = make(2, 3), *source = make(2, 3), *out = make(2, 3);
    struct stream *user = calloc(1, sizeof(*user));
    struct alias alias = {.source = source, .user = user, .value = source->value};
    struct segment_input in[2] = {
        {.kind = FRIT_OPERAND_TENSOR, .alias = &alias, .type = &alias.value.type}};
    struct segment_call call = {
        .op = FRIT_OP_add, .n_in = 2, .n_out = 1, .in = in, .types = &out->value.type, .out = &out};

    (void)state;
    in[1] = in[0];
    begin(&segment);
    assert_true(segment_append(&segment, &call));
    assert_int_equal(alias.index, 0);
    assert_int_equal(alias.holds, 1);
    assert_ptr_equal(segment.values[0].alias, &alias);
    assert_int_equal(source->holds, 0); /* a queue holds no tensor of another stream */
    alias.state = ALIAS_GONE;
    segment_release(&segment);
    assert_int_equal(alias.holds, 0);
    assert_ptr_equal(alias_take_gone(&user->aliases), &alias);
    segment_fini(&segment);
    free(user);
    end(x), end(source), end(out);
}

/* ---- keys ---- */

enum { N_KEYS = 3 };

/* Keys of y = (x op w) + number; z = y + y; `dead`: y dies with z; and z + x. */
static void keys(uint32_t op, const int64_t dims[4], double number, bool dead,
                 struct op_key out[N_KEYS])
{
    struct segment segment = {0};
    struct slot *x = make(dims[0], dims[1]), *w = make(dims[2], dims[3]), *y, *z, *last;

    begin(&segment);
    assert_true(append(&segment, op, x, w, 0, &y));
    assert_true(append(&segment, FRIT_OP_add, y, NULL, number, &z));
    end(y);
    if (dead)
        segment_bury(&segment, y->index);
    last = add(&segment, z, x);
    for (uint32_t i = 0; i < N_KEYS; i++)
        assert_true(segment_key(&segment, i, NULL, &walker, &out[i]));
    finish(&segment);
    end(x), end(w), end(z), end(last);
}

static bool same_keys(const struct op_key a[N_KEYS], const struct op_key b[N_KEYS])
{
    return memcmp(a, b, N_KEYS * sizeof(*a)) == 0;
}

static void test_keys_do_not_know_sizes(void **state)
{
    struct op_key first[N_KEYS], again[N_KEYS];

    (void)state;
    keys(FRIT_OP_add, (int64_t[]){4, 5, 4, 5}, 2, true, first);
    keys(FRIT_OP_add, (int64_t[]){40, 7, 40, 7}, 0.5, true, again);
    assert_true(same_keys(first, again));
    keys(FRIT_OP_add, (int64_t[]){4, 5, 4, 5}, 2, false, again);
    assert_false(same_keys(first, again));
    assert_memory_equal(&first[0], &again[0], sizeof(first[0]));
    assert_memory_not_equal(&first[1], &again[1], sizeof(first[0]));
    keys(FRIT_OP_mul, (int64_t[]){4, 5, 4, 5}, 2, true, again);
    assert_memory_not_equal(&first[0], &again[0], sizeof(first[0]));
}

static void test_keys_know_which_extents_are_equal(void **state)
{
    static const int64_t shapes[][4] = {
        {4, 5, 4, 5}, {5, 5, 5, 5}, {4, 5, 1, 5}, {4, 5, 4, 1}, {4, 5, 1, 1},
        {0, 5, 0, 5}, {4, 5, 5, 4}, {1, 5, 1, 5}, {4, 1, 4, 1},
    };
    enum { N = sizeof(shapes) / sizeof(shapes[0]) };
    struct op_key all[N][N_KEYS];

    (void)state;
    for (int i = 0; i < N; i++) {
        keys(FRIT_OP_add, shapes[i], 2, true, all[i]);
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(&all[i][0], &all[k][0], sizeof(all[i][0]));
    }
}

/* ---- what is left over ---- */

/* x, y = x + x; | z = y + x, w = z + y with y dead: the part after | as a segment of its own. */
static void record_tail(struct segment *segment, struct slot *x, struct slot *y, struct slot **z,
                        struct slot **w)
{
    *z = add(segment, y, x);
    *w = add(segment, *z, y);
    end(*z);
    segment_bury(segment, (*z)->index);
}

static void test_moved_records_are_as_if_recorded_there(void **state)
{
    struct segment whole = {0}, rest = {0}, fresh = {0};
    struct slot *x = make(4, 5), *y, *z, *w, *u = make(6, 7), *v = make(6, 7), *z2, *w2;
    struct op_key moved, recorded;

    (void)state;
    begin(&whole);
    y = add(&whole, x, x);
    record_tail(&whole, x, y, &z, &w);
    begin(&rest);
    assert_true(segment_move(&rest, &whole, 1));
    assert_int_equal(rest.n_ops, 2);
    assert_int_equal(rest.values[y->index].maker, SEGMENT_EXTERNAL);
    assert_int_equal(rest.values[z->index].maker, 0);
    assert_int_equal(y->epoch, rest.epoch);
    assert_int_equal(y->holds, 2);
    begin(&fresh);
    record_tail(&fresh, u, v, &z2, &w2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(segment_key(&rest, i, NULL, &walker, &moved));
        assert_true(segment_key(&fresh, i, NULL, &walker, &recorded));
        assert_memory_equal(&moved, &recorded, sizeof(moved));
    }
    finish(&whole);
    assert_int_equal(y->holds, 1);
    finish(&rest);
    finish(&fresh);
    end(x), end(y), end(w), end(u), end(v), end(w2);
}

/* A loop that is long and short in turn: memory of records that do not come again is given back. */
static void test_lengths_in_turn(void **state)
{
    struct segment segment = {0};
    struct slot *x = make(4, 5);
    uint32_t n_fresh = 0;

    (void)state;
    begin(&segment);
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < (round % 2 ? 1 : 20); i++) {
            struct slot *y;

            if (segment_predicted(&segment)) { /* as if met */
                segment.n_values = segment.ops[segment.n_ops++]->end;
                continue;
            }
            y = add(&segment, x, NULL);
            end(y);
        }
        segment.n_matched = segment.n_ops;
        segment_release(&segment);
        for (uint32_t i = 0; i < segment.n_values; i++)
            segment.values[i] = (struct seg_value){.maker = segment.values[i].maker};
        segment_rewind(&segment, UINT64_MAX);
        n_fresh += segment.n_predicted == 0;
        segment_begin(&segment, ++last_epoch);
    }
    assert_true(n_fresh > 0);
    segment_fini(&segment);
    end(x);
}

/* What died with a record before, and has not yet died with it now, is not moved as dead. */
static void test_old_deaths_are_not_moved(void **state)
{
    struct segment whole = {0}, rest = {0};
    struct slot *x = make(4, 5), *y, *z;
    struct recorded_op *record;

    (void)state;
    begin(&whole);
    y = add(&whole, x, NULL);
    z = add(&whole, y, x);
    segment_bury(&whole, y->index);
    record = whole.ops[1];
    assert_int_equal(record->n_dead, 1);
    record->confirmed = true;
    record->n_confirmed_dead = 0;
    begin(&rest);
    assert_true(segment_move(&rest, &whole, 0));
    assert_int_equal(rest.ops[1]->n_dead, 0);
    finish(&rest);
    finish(&whole);
    end(x), end(y), end(z);
}

/* ---- out of memory ---- */

static void test_an_append_without_memory_changes_nothing(void **state)
{
    struct slot *x = make(4, 5);
    bool hit = true;

    (void)state;
    for (long n = 0; hit; n++) {
        struct segment segment = {0};
        struct slot *y = NULL;
        uint32_t before = 0;
        bool ok = true;

        begin(&segment);
        failing_alloc_arm(n);
        for (int i = 0; i < 20 && ok; i++) {
            before = segment.n_values;
            ok = append(&segment, FRIT_OP_add, x, NULL, 1, &y);
            if (ok)
                end(y);
        }
        hit = failing_alloc_disarm();
        assert_int_equal(ok, !hit);
        if (!ok)
            assert_int_equal(segment.n_values, before);
        finish(&segment);
        assert_int_equal(x->holds, 0);
    }
    end(x);
}

static void test_a_move_without_memory_holds_nothing(void **state)
{
    struct slot *x = make(4, 5), *y, *z, *w;
    struct segment whole = {0};
    bool hit = true;

    (void)state;
    begin(&whole);
    y = add(&whole, x, x);
    record_tail(&whole, x, y, &z, &w);
    for (long n = 0; hit; n++) {
        struct segment rest = {0};
        bool moved;

        begin(&rest);
        failing_alloc_arm(n);
        moved = segment_move(&rest, &whole, 1);
        hit = failing_alloc_disarm();
        assert_true(moved || hit);
        finish(&rest);
        assert_int_equal(y->holds, 1);
    }
    finish(&whole);
    end(x), end(y), end(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_values_are_numbered_as_they_appear),
        TEST(test_extents_are_numbered_too),
        TEST(test_values_are_held),
        TEST(test_aliases_are_values),
        TEST(test_keys_do_not_know_sizes),
        TEST(test_keys_know_which_extents_are_equal),
        TEST(test_moved_records_are_as_if_recorded_there),
        TEST(test_lengths_in_turn),
        TEST(test_old_deaths_are_not_moved),
        TEST(test_an_append_without_memory_changes_nothing),
        TEST(test_a_move_without_memory_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
