/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make scripts share: the script under way, and how actions enter it. */
#ifndef EQUIV_GENERATE_H
#define EQUIV_GENERATE_H

#include "script.h"

enum { MAX_ELEMENTS = 1200, MAX_EXPONENT = 24, ANY_EXPONENT = 127 };

struct generator {
    struct script *script;
    struct world world;
    struct chance chance;
    uint8_t thread, phase;
    uint32_t reading;        /* percent of ops after which a value is read */
    bool used[SCRIPT_VARS];  /* by an op */
    bool breaks;             /* a broken value is still to come */
    bool discrete;           /* a small error of an operand would show: exact ones are wanted */
    bool alone[SCRIPT_VARS]; /* only the home uses the value in this phase */
    bool alone_next[SCRIPT_VARS];
};

/* NULL for NO_VAR. */
static inline const struct var *value_of(const struct generator *g, uint16_t var)
{
    return var == NO_VAR ? NULL : &g->script->vars[var];
}

/* What is wanted of an operand. */
struct want {
    uint32_t dtypes; /* bits by element type */
    int exponent;    /* at most, for floats */
    uint32_t min_rank, max_rank;
    bool (*fits)(const struct var *var);
};

#define BIT(dtype) (1u << (dtype))
enum {
    REALS = BIT(FRIT_F32) | BIT(FRIT_F64),
    NUMBERS = REALS | BIT(FRIT_I32),
    LOGICS = BIT(FRIT_I32) | BIT(FRIT_BOOL),
    ANY = NUMBERS | BIT(FRIT_BOOL)
};

/* A value that the present thread may use; NO_VAR if none was found. */
uint16_t pick(struct generator *g, const struct want *want);
uint16_t pick_simple(struct generator *g, uint32_t dtypes, uint32_t min_rank);
/* Another one for which `fits` holds beside the first. */
uint16_t pick_beside(struct generator *g, uint16_t first,
                     bool (*fits)(const struct var *a, const struct var *b));

/* An operand, taken now and then. */
struct operand use(struct generator *g, uint16_t var);
/* Taken where it may be. */
struct operand consume(struct generator *g, uint16_t var);
struct operand scalar(void);

/* An action of the present thread, with a number of its own, not yet part of the script. */
struct action begin(struct generator *g, enum action_kind kind);
struct action begin_op(struct generator *g, uint16_t op, enum attr_form attrs);
/* Adds an output like `like` in exponent and taint of all operands, with this type. */
void add_output(struct generator *g, struct action *action, uint32_t dtype,
                const struct shape *shape, int exponent, bool positive);
/* Makes it part of the script; false where there is no room. */
bool commit(struct generator *g, const struct action *action);

/* views.c: a random view; false where nothing fitted. */
bool generate_view(struct generator *g);
/* ops.c: one random op, or a short pattern of ops; false where nothing fitted. */
bool generate_op(struct generator *g);

#endif
