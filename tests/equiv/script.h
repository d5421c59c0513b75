/* SPDX-License-Identifier: Apache-2.0 */
/* A random stream as a script: what each thread does, one action after the other.
 *
 * A script knows no size.  Dims are codes over four symbols whose extents are given when it is
 * played, so that one script is played again with other sizes; scalars and data are drawn from the
 * numbers of their actions and of the play.  Everything in a script follows from its seed. */
#ifndef EQUIV_SCRIPT_H
#define EQUIV_SCRIPT_H

#include <stdbool.h>

#include <frit/frit.h>

enum {
    SCRIPT_THREADS = 4, /* that run beside the main one */
    SCRIPT_VARS = 1024,
    SCRIPT_ACTIONS = 2048,
    SCRIPT_INPUTS = 6,
    SCRIPT_OUTPUTS = 2,
    SCRIPT_SYMBOLS = 4,
    SCRIPT_VARIANTS = 4, /* assignments of extents */
    SCRIPT_LARGE = 2,    /* more of them, larger */
    SCRIPT_RANK = 5,
    NO_VAR = 0xffff
};

/* ---- dims ---- */

/* A code: the product of the symbols whose bits are set (none: 1), less one with DIM_MINUS, or with
 * DIM_HALF one more than half of it; or 0, or 2. */
enum {
    DIM_ONE = 0x00,
    DIM_SYMBOLS = 0x0f,
    DIM_MINUS = 0x10,
    DIM_ZERO = 0x20,
    DIM_TWO = 0x40,
    DIM_HALF = 0x80
};

/* Of one or more symbols, and of one alone that a smaller one comes before. */
static inline bool is_product(uint8_t code)
{
    return code & DIM_SYMBOLS && !(code & ~DIM_SYMBOLS);
}

static inline bool is_symbol(uint8_t code)
{
    return is_product(code) && code >> 1 && (code & (code - 1)) == 0;
}

struct shape {
    uint32_t rank;
    uint8_t code[FRIT_MAX_RANK];
};

int64_t dim_extent(uint8_t code, uint32_t variant);
frit_dims shape_dims(const struct shape *shape, uint32_t variant);
int64_t shape_count(const struct shape *shape, uint32_t variant);
/* Of the largest of the first SCRIPT_VARIANTS assignments. */
int64_t shape_most(const struct shape *shape);
bool shape_same(const struct shape *a, const struct shape *b);
/* NumPy's rule; false where the two do not go together. */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out);

/* ---- chance ---- */

struct chance {
    uint64_t state;
};
uint64_t chance_next(struct chance *chance);
/* 0 .. n - 1 */
uint32_t chance_below(struct chance *chance, uint32_t n);
/* True in `percent` of all cases. */
bool chance_of(struct chance *chance, uint32_t percent);

/* ---- actions ---- */

enum action_kind {
    ACT_FROM_HOST, /* out[0] */
    ACT_OP,
    ACT_BROKEN, /* out[0]: the sum of more elements than the device can hold */
    ACT_TAKE_READ,
    ACT_READ,
    ACT_WRITE,
    ACT_RELEASE,
    ACT_REF, /* for thread `number` */
    ACT_KEEP,
    ACT_SCOPE_BEGIN, /* number `number` of the script */
    ACT_SCOPE_END,
    ACT_SYNC,
    ACT_SYNC_ALL,
    ACT_FLUSH,
    ACT_KINDS
};

/* How an action says its attributes. */
enum attr_form {
    ATTR_NONE,
    ATTR_DIMS, /* of out[0] */
    ATTR_INIT, /* type and dims of out[0] */
    ATTR_ORDER,
    ATTR_SLICE,
    ATTR_AXES,
    ATTR_UNFOLD, /* axis, size, step */
    ATTR_CAST,   /* type of out[0] */
    ATTR_REDUCE, /* axes, keep */
    ATTR_AXIS,
    ATTR_SWAP,      /* axis, other_axis */
    ATTR_NORM_AXES, /* axes */
    ATTR_POOL,      /* step: the kernel's extent */
    ATTR_SORT,      /* axis; choice: descending */
    ATTR_TOPK,      /* axis; size: k */
    ATTR_SCATTER,   /* axis; choice: the update */
    ATTR_FFT,       /* axis; size: n */
    ATTR_QUANTIZE, /* type of out[0]; keep: a scale per line, of extent `size`; choice: symmetric */
    ATTR_DEQUANTIZE, /* keep and size, as those of the quantize */
    ATTR_CONV,       /* size: the groups */
    ATTR_ATTENTION   /* choice: causal */
};

/* Which scalars an action has. */
enum scalar_form { SCALARS_ANY, SCALARS_ONE, SCALARS_POWERS /* of two */ };

/* What a slice takes of a dim. */
enum slice_form { SLICE_WHOLE, SLICE_BACK, SLICE_ONE, SLICE_NONE, SLICE_PART };

struct operand {
    uint16_t var; /* NO_VAR: a scalar, or an absent one, see action_has_scalars */
    bool take;
};

struct action {
    uint8_t kind;
    uint8_t thread; /* SCRIPT_THREADS: the main one */
    uint8_t phase;
    uint8_t n_in, n_out;
    uint8_t attrs; /* attr_form */
    uint8_t keep, axis, other_axis, step;
    uint8_t size;                      /* a code of dims, see DIM_ONE */
    uint8_t choice;                    /* see attr_form */
    uint8_t n_axes, axes[SCRIPT_RANK]; /* or forms of slices */
    uint16_t op;
    uint16_t number;
    uint16_t out[SCRIPT_OUTPUTS];
    struct operand in[SCRIPT_INPUTS];
    uint32_t seed;
    uint8_t scalars; /* scalar_form */
    bool off;        /* dropped while shrinking */
};

/* Operands that are no values are scalars; else they are absent. */
static inline bool action_has_scalars(const struct action *action)
{
    return action->attrs != ATTR_NORM_AXES && action->attrs != ATTR_QUANTIZE &&
           action->attrs != ATTR_DEQUANTIZE && action->attrs != ATTR_CONV &&
           action->attrs != ATTR_ATTENTION;
}

struct var {
    uint32_t dtype;
    struct shape shape;
    int8_t exponent; /* floats: elements are below 2^exponent, but for what is not finite */
    bool positive;   /* floats: elements are not below 0 */
    bool exact;      /* the same elements on every device */
    bool tainted;    /* depends on a broken value */
    uint8_t home;    /* thread that made it */
};

/* How an op rounds floats: not at all, each result once, or repeatedly, in a reduction. */
enum rounding { OP_KEEPS, OP_ROUNDS, OP_FOLDS };
enum rounding rounding_of(const struct action *action);

struct script {
    uint64_t seed;
    bool well_conditioned; /* a small error stays small, see script_generate */
    uint32_t n_threads;    /* 0: everything in the main one */
    uint32_t n_phases;     /* the last belongs to the main thread, after the others */
    uint32_t n_vars, n_actions, n_scopes;
    uint32_t n_ops, n_views, n_made, n_early; /* ops, views, values, those that died unseen */
    struct var vars[SCRIPT_VARS];
    struct action actions[SCRIPT_ACTIONS];
};

/* Fills `script`.  In a well-conditioned one no small error of a rounded value can change a result
 * much: it compares only exact values, and divides by nothing that may be zero. */
void script_generate(struct script *script, uint64_t seed, bool well_conditioned);
/* The actions that are on, as text, with the extents of `variant`. */
void script_print(const struct script *script, uint32_t variant);

/* ---- who owns what ---- */

/* The owners of every value as the script's actions leave them.  Actions are applied phase by
 * phase, thread by thread, as in the script. */
struct world {
    const struct script *script;
    struct {
        uint8_t owners[SCRIPT_THREADS + 1]; /* owners a thread may give back */
        uint8_t coming[SCRIPT_THREADS + 1]; /* from the next phase on */
        uint16_t scope;                     /* that holds one of its home's owners, or NO_VAR */
        bool shared;                        /* other threads have or had owners */
        uint32_t drains;                    /* of its home when it was made */
        bool made;
    } vars[SCRIPT_VARS];
    struct {
        uint16_t open[4]; /* scopes */
        uint32_t depth;
        uint32_t drains;
    } threads[SCRIPT_THREADS + 1];
    uint32_t phase;
    uint32_t n_made, n_early;
};

void world_init(struct world *world, const struct script *script);
/* Whether the action can be done now. */
bool world_allows(const struct world *world, const struct action *action);
void world_apply(struct world *world, const struct action *action);
/* Whether the thread may give back one of its owners. */
bool world_may_end(const struct world *world, uint8_t thread, uint16_t var);
bool world_has(const struct world *world, uint8_t thread, uint16_t var);
/* Turns off what cannot be done any more; `left` gets the owners that are to be released in the
 * end, by value. */
void script_settle(struct script *script, uint8_t *left);

#endif
