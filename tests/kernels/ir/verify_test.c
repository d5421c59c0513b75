/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that no text can break, and that nothing breaks verify; the others are in text/bad-*. */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "ir/digest.h"
#include "ir/facts.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "kernels/ir/rig.h"

static void test_sample(void **state)
{
    struct kir_module m;
    frit_err err = ERR_INIT;

    (void)state;
    rig_row_sum(&m);
    if (kir_verify(&m, NULL, &err))
        fail_msg("%s", err.text);
    for (long n = 0, hit = 1; hit; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = kir_verify(&m, NULL, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
    }
    m.failed = true;
    assert_int_equal(kir_verify(&m, NULL, &err), FRIT_NO_HOST_MEMORY);
    kir_fini(&m);
}

/* ---- one broken field each ---- */

/* A module with a loop in an if: %0 const, %1 const, %2 b, %3 if, %4 for, %5 phi, %6 next, %7 end.
 */
static void make(struct kir_module *m)
{
    uint32_t zero, one, phi;

    kir_init(m, "k");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_phase(m, 4);
    kir_tile(m, KIR_LANE, KIR_F32, 4);
    zero = rig_int(m, 0);
    one = rig_int(m, 1);
    kir_if(m, OP2(m, lt, zero, one));
    kir_for(m, zero, one, 1);
    phi = kir_phi(m, one);
    kir_next(m, &phi, 1);
    kir_end(m);
}

static void check_broken(struct kir_module *m, uint32_t at, const char *text)
{
    struct kir_place place = {77, 77};
    frit_err err = ERR_INIT;

    assert_int_equal(kir_verify(m, &place, &err), FRIT_INVALID);
    assert_string_equal(err.text, text);
    assert_int_equal(place.at, at);
    assert_int_equal(place.phase, strncmp(text, "phase", 5) == 0 ? 0 : KIR_NONE);
    kir_fini(m);
}

static void break_inst(uint32_t at, struct kir_inst with, const char *text)
{
    struct kir_module m;

    make(&m);
    m.phases[0].inst[at] = with;
    check_broken(&m, at, text);
}

/* The instruction of a good module, to break. */
static struct kir_inst inst_at(uint32_t at)
{
    struct kir_inst inst;
    struct kir_module m;

    make(&m);
    inst = m.phases[0].inst[at];
    kir_fini(&m);
    return inst;
}

#define BREAK(at, field, text_)             \
    do {                                    \
        struct kir_inst inst = inst_at(at); \
        inst.field;                         \
        break_inst(at, inst, text_);        \
    } while (0)

static void test_fields(void **state)
{
    (void)state;
    BREAK(1, op = KIR_OPS, "phase 0, %1 ?: is not an instruction");
    BREAK(1, level = 1, "phase 0, %1 const: stands at level 0 and says 1");
    BREAK(1, pair = 0, "phase 0, %1 const: has a pair");
    BREAK(1, type = KIR_VOID, "phase 0, %1 const: the result cannot be of type void");
    BREAK(1, type = KIR_TYPES, "phase 0, %1 const: the result cannot be of type of no name");
    BREAK(1, a[2] = 0, "phase 0, %1 const: has more than 0 operands");
    BREAK(2, imm = 1, "phase 0, %2 lt: the immediate cannot be 1");
    BREAK(2, a[1] = KIR_NONE, "phase 0, %2 lt: an operand is missing");
    BREAK(2, a[1] = 2, "phase 0, %2 lt: uses %2, which is made later");
    BREAK(2, type = KIR_VOID, "phase 0, %2 lt: the result cannot be of type void");
    BREAK(3, type = KIR_B, "phase 0, %3 if: the result cannot be of type b");
    BREAK(4, a[0] = 3, "phase 0, %4 for: takes 2 values and has 2");
    BREAK(4, a[0] = UINT32_MAX, "phase 0, %4 for: takes 2 values and has 2");
    BREAK(4, a[1] = 1, "phase 0, %4 for: takes 2 values and has 1");
    BREAK(4, a[2] = 0, "phase 0, %4 for: has more than 0 operands");
    BREAK(4, imm = (uint64_t)INT32_MAX + 1, "phase 0, %4 for: the immediate cannot be 2147483648");
    BREAK(5, imm = 1, "phase 0, %5 phi: phis stand right after their loop, numbered from 0");
    BREAK(6, pair = 3, "phase 0, %6 next: is not paired with its for, which is %4");
    BREAK(6, a[0] = 3, "phase 0, %6 next: takes 1 values and has 1");
    BREAK(7, op = KIR_next, "phase 0, %7 next: the innermost open loop or if is not 'for'");
}

static void test_opener(void **state)
{
    struct kir_module m;

    (void)state;
    make(&m);
    m.phases[0].inst[4].pair = 7;
    check_broken(&m, 6, "phase 0, %6 next: is not paired with its for, which is %4");
    make(&m);
    m.phases[0].n--;
    check_broken(&m, 3, "phase 0, %3 if: is never closed");
}

static void test_depth(void **state)
{
    struct kir_module m;
    uint32_t condition;

    (void)state;
    kir_init(&m, "k");
    kir_phase(&m, 1);
    condition = kir_const_b(&m, true);
    for (int i = 0; i < KIR_MAX_DEPTH; i++)
        kir_if(&m, condition);
    for (int i = 0; i < KIR_MAX_DEPTH; i++)
        kir_end(&m);
    assert_int_equal(kir_verify(&m, NULL, NULL), FRIT_OK);
    for (int i = 0; i <= KIR_MAX_DEPTH; i++)
        kir_if(&m, condition);
    check_broken(&m, 193, "phase 0, %193 if: is nested deeper than 64");
}

static void test_heads(void **state)
{
    struct kir_module m;

    (void)state;
    make(&m);
    m.name = "two words";
    check_broken(&m, KIR_NONE, "the name is not a word of letters, digits and _ . - +");
    make(&m);
    m.args[0].access = 4;
    check_broken(&m, KIR_NONE, "argument 0 has no dtype that is loaded, or no access");
    make(&m);
    m.args[0].dtype = FRIT_Q4;
    check_broken(&m, KIR_NONE, "argument 0 has no dtype that is loaded, or no access");
    make(&m);
    m.phases[0].tiles[0].space = 2;
    check_broken(&m, KIR_NONE, "phase 0: tile 0 is of no space, of no type, or empty");
    make(&m);
    m.phases[0].lanes = 2 * KIR_MAX_LANES;
    check_broken(&m, KIR_NONE, "phase 0: 131072 lanes are not a power of two up to 65536");
}

/* ---- anything ---- */

static uint32_t next_random(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Small, rarely large or none. */
static uint32_t random_word(uint32_t *seed)
{
    uint32_t kind = next_random(seed, 16);

    if (kind == 0)
        return KIR_NONE;
    return kind == 1 ? UINT32_MAX - next_random(seed, 40) : next_random(seed, 40);
}

static void damage(struct kir_module *m, uint32_t *seed)
{
    struct kir_phase *phase = &m->phases[0];
    struct kir_inst *inst = &phase->inst[next_random(seed, phase->n)];

    switch (next_random(seed, 10)) {
    case 0:
        inst->op = (uint16_t)next_random(seed, KIR_OPS + 2);
        break;
    case 1:
        inst->type = (uint8_t)next_random(seed, KIR_TYPES + 1);
        break;
    case 2:
        inst->level = (uint8_t)next_random(seed, 4);
        break;
    case 3:
        inst->pair = random_word(seed);
        break;
    case 4:
        inst->imm = random_word(seed);
        break;
    case 5:
        m->links[next_random(seed, m->n_links)] = random_word(seed);
        break;
    case 6:
        phase->tiles[0].type = next_random(seed, KIR_TYPES + 1);
        break;
    case 7:
        m->args[next_random(seed, m->n_args)].dtype = next_random(seed, FRIT_DTYPE_LIMIT + 1);
        break;
    default:
        inst->a[next_random(seed, 3)] = random_word(seed);
    }
}

/* What verify lets pass is good for all that reads modules. */
static void check_passed(const struct kir_module *m)
{
    uint8_t digest[2][KIR_DIGEST];
    struct str text = {0};
    struct kir_module again;
    struct facts facts;
    frit_err err = ERR_INIT;

    assert_int_equal(facts_init(&facts, m, 0, NULL), FRIT_OK);
    facts_fini(&facts);
    kir_print(m, &text);
    if (kir_parse(text.text, text.length, &again, &err))
        fail_msg("%s\n%s", err.text, text.text);
    kir_digest(m, digest[0]);
    kir_digest(&again, digest[1]);
    assert_memory_equal(digest[0], digest[1], KIR_DIGEST);
    kir_fini(&again);
    str_fini(&text);
}

static void test_damage(void **state)
{
    uint32_t seed = 1, passed = 0;

    (void)state;
    for (int round = 0; round < 50000; round++) {
        struct str text = {0};
        struct kir_module m;

        rig_row_sum(&m);
        for (uint32_t n = next_random(&seed, 3) + 1; n; n--)
            damage(&m, &seed);
        if (kir_verify(&m, NULL, NULL) == FRIT_OK) {
            check_passed(&m);
            passed++;
        }
        kir_print(&m, &text); /* of anything */
        str_fini(&text);
        kir_fini(&m);
    }
    assert_true(passed > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample), cmocka_unit_test(test_fields), cmocka_unit_test(test_opener),
        cmocka_unit_test(test_heads),  cmocka_unit_test(test_damage), cmocka_unit_test(test_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
