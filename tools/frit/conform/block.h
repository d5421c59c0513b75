/* SPDX-License-Identifier: Apache-2.0 */
/* Short lists of ops of f32 for fusers, in relative form, and what single ops make of them. */
#ifndef CLI_CONFORM_BLOCK_H
#define CLI_CONFORM_BLOCK_H

#include "conform/bare.h"

enum { BLOCK_OPS = 6, BLOCK_IN = 3, BLOCK_VALUES = BLOCK_IN + BLOCK_OPS };

/* In the place of an operand. */
enum { BLOCK_NONE = -1, BLOCK_SCALAR = -2 };

struct block_op {
    uint32_t op;
    int32_t in[2]; /* values: first the inputs, then what the ops make in turn */
};

struct block {
    const char *name;
    const char *inputs; /* dims of each, two letters: r, c, k or 1 */
    struct block_op ops[BLOCK_OPS];
    uint32_t n_ops;
    uint32_t living; /* bits of values; else they die with their last use.  Inputs and the last
                        value live in any case. */
};

/* NULL beyond the last. */
const struct block *block_at(size_t index);
/* What no fuser can know: an op of nobody. */
extern const struct block_op block_foreign;

/* ---- as a fuser sees it ---- */

struct block_link {
    frit_op_desc desc;
    frit_operand in[2], out;
    uint64_t attrs[16];
    uint32_t dead[2 + BLOCK_IN];
};

/* Op `index`, or one that nobody knows after the last. */
void block_link(const struct block *block, uint32_t index, struct block_link *out);

/* ---- with numbers ---- */

/* Extents of r, c and k, all different and above 1, and what the scalars are. */
struct block_size {
    int64_t r, c, k;
    double scalar;
    bool special; /* NaN, infinities and -0 are among the inputs */
};

/* Values of a block, dense in host memory. */
struct block_values {
    const struct block *block;
    struct block_size size;
    uint32_t n; /* inputs and results */
    int64_t dims[BLOCK_VALUES][2];
    float *at[BLOCK_VALUES];
    const char *by; /* what made the results, in words */
};

/* What was computed, so that every check need not do it again. */
struct block_memo {
    struct block_values at[64];
    uint32_t n;
};

/* Inputs drawn, results computed by programs for one op each, or remembered.  FRIT_UNSUPPORTED with
 * words where the driver lacks one. */
frit_status block_values(struct bare *bare, const struct block *block,
                         const struct block_size *size, const struct block_values **out);
void block_memo_fini(struct block_memo *memo);
/* The same, not remembered and without results, which are 0.  Ended by block_values_fini, after a
 * failure too. */
frit_status block_values_draw(struct bare *bare, const struct block *block,
                              const struct block_size *size, struct block_values *out);
void block_values_fini(struct block_values *values);

/* The arguments of a program: numbers of values, inputs first; BLOCK_ABSENT for a scalar's place.
 */
struct block_args {
    uint32_t n_in, n_out, n_scalars;
    uint32_t value[BLOCK_VALUES];
};

#define BLOCK_ABSENT UINT32_MAX

/* Of a fuser's program for the first `n_ops`; 0: of a program for the first op alone. */
void block_args(const struct block *block, uint32_t n_ops, struct block_args *out);
/* A run of a program. */
struct block_run {
    const frit_program *program;
    uint32_t candidate, n_ops; /* as for block_args */
    const struct block_values *values;
    bool aliased; /* output `out` lies in the memory of input `in`; both have the same dims */
    uint32_t out, in;
    struct bare_derived *derived; /* as in bare_launch */
    uint32_t numeric_class;       /* how near to the values the results must be */
    bool exact;                   /* they must have the same bits; any NaN for a NaN */
};

/* Whether the program makes of the inputs the results that are there, and writes nothing else. */
frit_status block_check(struct bare *bare, const struct block_run *run);
/* Sets the results to those of the run, which is of the first candidate; `out` may be its values.
 */
frit_status block_values_run(struct bare *bare, const struct block_run *run,
                             struct block_values *out);
/* What prepare answers for it. */
frit_status block_prepare(struct bare *bare, const struct block_run *run,
                          struct bare_answer *answer);
/* What priority returns for it; 0 without the slot. */
frit_status block_priority(struct bare *bare, const struct block_run *run, int32_t *out);

#endif
