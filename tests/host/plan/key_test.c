/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are exact: over many random ops two keys are the same where everything that enters a key is
 * the same, and nowhere else, packed or interned. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <frit/op.h>

#include "plan/automaton.h"
#include "plan/key.h"
#include "plan/walker.h"

enum { MOST = 12, ROUNDS = 20000 };

/* What a key is made of, with room of its own. */
struct made {
    struct key_parts parts;
    struct key_operand in[MOST];
    struct key_type types[MOST];
    uint32_t dead[MOST];
    frit_attrs_reduce reduce;
};

struct rig {
    struct automaton *automaton;
    struct walker walker;
};

static void rig_open(struct rig *rig)
{
    assert_int_equal(automaton_create(1 << 24, &rig->automaton, NULL), FRIT_OK);
    rig->walker = (struct walker){0};
    walker_init(&rig->walker, rig->automaton);
}

static void rig_close(struct rig *rig)
{
    walker_fini(&rig->walker);
    automaton_destroy(rig->automaton);
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

/* Mostly small, at times at and over what is packed. */
static uint32_t number(uint64_t *seed)
{
    static const uint32_t edges[] = {(1 << 14) - 1, 1 << 14, 1 << 16};

    return draw(seed, 40) ? draw(seed, 4) : edges[draw(seed, 3)];
}

static void random_type(uint64_t *seed, struct key_type *type)
{
    static const uint32_t edges[] = {31, 32, 1000};

    *type = (struct key_type){.dtype = FRIT_F32 + draw(seed, 2),
                              .rank = draw(seed, 20) ? draw(seed, 3) : draw(seed, 7)};
    for (uint32_t d = 0; d < type->rank; d++)
        type->extent[d] = draw(seed, 30) ? draw(seed, 4) : edges[draw(seed, 3)];
    key_type_pack(type);
}

/* The parts point into the struct. */
static void settle(struct rig *rig, struct made *made)
{
    struct key_parts *parts = &made->parts;
    bool has_attrs = parts->op == FRIT_OP_sum;

    parts->in = made->in;
    parts->types = made->types;
    parts->dead = made->dead;
    parts->attrs = has_attrs ? &made->reduce : NULL;
    parts->attrs_id = has_attrs ? key_attrs(&rig->walker, parts->op, &made->reduce) : 0;
}

static void random_op(struct rig *rig, uint64_t *seed, struct made *made)
{
    static const uint32_t ops[] = {FRIT_OP_add, FRIT_OP_neg, FRIT_OP_sum};
    struct key_parts *parts = &made->parts;

    memset(made, 0, sizeof(*made));
    parts->op = ops[draw(seed, 3)];
    parts->n_in = draw(seed, 20) ? 1 + draw(seed, 2) : 3 + draw(seed, 4);
    parts->n_types = draw(seed, 20) ? 1 + draw(seed, 2) : 2 + draw(seed, 4);
    parts->n_dead = draw(seed, 10) ? draw(seed, 2) : draw(seed, 6);
    parts->wanted = draw(seed, 10) ? 1 : draw(seed, 4);
    for (uint32_t i = 0; i < parts->n_in; i++)
        made->in[i] = draw(seed, 3)
                          ? (struct key_operand){FRIT_OPERAND_TENSOR, number(seed)}
                          : (struct key_operand){FRIT_OPERAND_SCALAR, FRIT_F32 + draw(seed, 2)};
    for (uint32_t i = 0; i < parts->n_types; i++)
        random_type(seed, &made->types[i]);
    for (uint32_t i = 0; i < parts->n_dead; i++)
        made->dead[i] = i * 2 + draw(seed, 2) + (draw(seed, 40) ? 0 : 1 << 14);
    made->reduce = (frit_attrs_reduce){.struct_size = sizeof(made->reduce)};
    made->reduce.axes.count = 1;
    made->reduce.axes.axis[0] = draw(seed, 3);
    settle(rig, made);
}

/* An op after a first operand whose type is known decides with it. */
static void with_first(struct made *made, uint64_t *seed)
{
    struct key_type type;

    random_type(seed, &type);
    made->parts.first_tensor_type =
        draw(seed, 2) ? type.packed : made->types[made->parts.n_types - 1].packed;
}

static bool same_type(const struct key_type *a, const struct key_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->extent, b->extent, a->rank * sizeof(a->extent[0])) == 0;
}

static bool same(const struct made *a, const struct made *b)
{
    const struct key_parts *x = &a->parts, *y = &b->parts;

    if (x->op != y->op || x->n_in != y->n_in || x->n_types != y->n_types ||
        x->n_dead != y->n_dead || x->wanted != y->wanted)
        return false;
    for (uint32_t i = 0; i < x->n_in; i++) {
        if (a->in[i].kind != b->in[i].kind || a->in[i].value != b->in[i].value)
            return false;
    }
    for (uint32_t i = 0; i < x->n_types; i++) {
        if (!same_type(&a->types[i], &b->types[i]))
            return false;
    }
    if (memcmp(a->dead, b->dead, x->n_dead * sizeof(a->dead[0])))
        return false;
    return !x->attrs || a->reduce.axes.axis[0] == b->reduce.axes.axis[0];
}

/* The last type stands for "as the first operand's", so ops compare where that is the same. */
static bool same_first(const struct made *a, const struct made *b)
{
    return a->parts.first_tensor_type == b->parts.first_tensor_type;
}

static bool key_equal(const struct op_key *a, const struct op_key *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void test_keys_are_equal_where_ops_are(void **state)
{
    struct rig rig;
    uint64_t seed = 1;
    uint32_t n_same = 0, n_interned = 0;

    (void)state;
    rig_open(&rig);
    for (int i = 0; i < ROUNDS; i++) {
        struct made a, b;
        struct op_key ka, kb;
        uint64_t step = draw(&seed, 3), other = seed + step;

        random_op(&rig, &seed, &a);
        seed = other;
        random_op(&rig, &seed, &b);
        with_first(&a, &seed);
        b.parts.first_tensor_type = a.parts.first_tensor_type;
        assert_true(same_first(&a, &b));
        assert_true(key_make(&rig.walker, &a.parts, &ka));
        assert_true(key_make(&rig.walker, &b.parts, &kb));
        n_same += same(&a, &b);
        n_interned += (uint32_t)(ka.word[0] >> 63);
        if (key_equal(&ka, &kb) != same(&a, &b))
            fail_msg("round %d: keys are %s, ops are %s", i, key_equal(&ka, &kb) ? "equal" : "not",
                     same(&a, &b) ? "equal" : "not");
    }
    assert_true(n_same > 20 && n_same < ROUNDS / 2);
    assert_true(n_interned > 100 && n_interned < ROUNDS / 2);
    rig_close(&rig);
}

/* One thing at a time changed in an op. */
static void change(struct made *made, uint32_t what, uint64_t *seed)
{
    struct key_parts *parts = &made->parts;
    uint32_t in = draw(seed, parts->n_in), type = draw(seed, parts->n_types);

    switch (what) {
    case 0:
        parts->op = parts->op == FRIT_OP_add ? FRIT_OP_mul : FRIT_OP_add;
        break;
    case 1:
        made->in[in].value ^= 1;
        break;
    case 2:
        made->in[in].kind ^= FRIT_OPERAND_TENSOR ^ FRIT_OPERAND_SCALAR;
        break;
    case 3:
        made->types[type].dtype ^= 1;
        break;
    case 4:
        made->types[type].extent[made->types[type].rank++] = draw(seed, 2);
        break;
    case 5:
        made->types[type].extent[0] ^= 1;
        made->types[type].rank += !made->types[type].rank;
        break;
    case 6:
        parts->wanted ^= 2;
        break;
    case 7:
        made->dead[parts->n_dead++] = 200;
        break;
    case 8:
        parts->n_types++;
        made->types[parts->n_types - 1] = made->types[0];
        break;
    default:
        made->in[parts->n_in++] = (struct key_operand){FRIT_OPERAND_TENSOR, 0};
        break;
    }
    for (uint32_t i = 0; i < parts->n_types; i++)
        key_type_pack(&made->types[i]);
}

static void test_one_difference_is_another_key(void **state)
{
    struct rig rig;
    uint64_t seed = 2;

    (void)state;
    rig_open(&rig);
    for (int i = 0; i < ROUNDS; i++) {
        struct made a, b;
        struct op_key before, after;
        uint32_t what = (uint32_t)i % 10;

        random_op(&rig, &seed, &a);
        with_first(&a, &seed);
        b = a;
        change(&b, what, &seed);
        settle(&rig, &b);
        assert_true(key_make(&rig.walker, &a.parts, &before));
        assert_true(key_make(&rig.walker, &b.parts, &after));
        if (key_equal(&before, &after))
            fail_msg("round %d: change %u is not in the key", i, what);
    }
    rig_close(&rig);
}

static void test_deaths_are_a_set(void **state)
{
    struct rig rig;
    uint64_t seed = 3;
    struct made made;
    struct op_key forward, backward;

    (void)state;
    rig_open(&rig);
    random_op(&rig, &seed, &made);
    made.parts.n_dead = 3;
    memcpy(made.dead, (uint32_t[]){5, 1, 9}, 3 * sizeof(uint32_t));
    assert_true(key_make(&rig.walker, &made.parts, &forward));
    memcpy(made.dead, (uint32_t[]){9, 5, 1}, 3 * sizeof(uint32_t));
    assert_true(key_make(&rig.walker, &made.parts, &backward));
    assert_true(key_equal(&forward, &backward));
    rig_close(&rig);
}

/* Only KEY fields enter: a slice's bounds do not, axes do. */
static void test_attributes_enter_by_their_use(void **state)
{
    frit_attrs_slice near = {.struct_size = sizeof(near)}, far = near;
    frit_attrs_reduce first = {.struct_size = sizeof(first)}, second = first;
    struct rig rig;
    uint32_t id;

    (void)state;
    rig_open(&rig);
    near.slices.count = far.slices.count = 1;
    near.slices.dim[0] = (frit_range){0, 4, 1};
    far.slices.dim[0] = (frit_range){2, 9, 3};
    assert_int_equal(key_attrs(&rig.walker, FRIT_OP_slice, &near),
                     key_attrs(&rig.walker, FRIT_OP_slice, &far));
    first.axes.count = second.axes.count = 1;
    second.axes.axis[0] = 1;
    id = key_attrs(&rig.walker, FRIT_OP_sum, &first);
    assert_int_not_equal(id, 0);
    assert_int_not_equal(id, key_attrs(&rig.walker, FRIT_OP_sum, &second));
    assert_int_equal(id, key_attrs(&rig.walker, FRIT_OP_sum, &first));
    assert_int_equal(key_attrs(&rig.walker, FRIT_OP_neg, NULL), 0);
    rig_close(&rig);
}

/* What a store saves and puts back: the interned number, in both forms. */
static void test_the_interned_number_can_be_exchanged(void **state)
{
    struct rig rig;
    uint64_t seed = 4;
    bool seen[2] = {false, false};

    (void)state;
    rig_open(&rig);
    for (int i = 0; i < 2000; i++) {
        struct made made;
        struct op_key key, other;

        random_op(&rig, &seed, &made);
        assert_true(key_make(&rig.walker, &made.parts, &key));
        if (key_interned(&key) == 0)
            continue;
        seen[key.word[0] >> 63] = true;
        other = key;
        key_with_interned(&other, key_interned(&key) + 1);
        assert_false(key_equal(&key, &other));
        assert_int_equal(key_interned(&other), key_interned(&key) + 1);
        key_with_interned(&other, key_interned(&key));
        assert_true(key_equal(&key, &other));
    }
    assert_true(seen[0] && seen[1]);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_equal_where_ops_are),
        cmocka_unit_test(test_one_difference_is_another_key),
        cmocka_unit_test(test_deaths_are_a_set),
        cmocka_unit_test(test_attributes_enter_by_their_use),
        cmocka_unit_test(test_the_interned_number_can_be_exchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
