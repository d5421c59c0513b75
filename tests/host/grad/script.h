/* SPDX-License-Identifier: Apache-2.0 */
/* Random differentiable text programs with their inputs: what rules_test compares with finite
 * differences.  The same seed gives the same program on every machine. */
#ifndef GRAD_SCRIPT_H
#define GRAD_SCRIPT_H

#include <stdbool.h>

#include <frit/frit.h>
#include <frit/op_table.h>

enum { SCRIPT_INPUTS = 16, SCRIPT_TEXT = 8192 };

struct script_input {
    char name[16];
    uint32_t dtype;
    frit_dims dims;
    uint64_t count;
    double *floats;    /* of f64 inputs, else NULL; malloc'd like `others` */
    int64_t *integers; /* of i64, i32 and bool inputs, one each */
};

struct script {
    const frit_op_info *row; /* what it is about */
    uint64_t state;          /* of the random numbers */
    char text[SCRIPT_TEXT];
    size_t length;
    struct script_input in[SCRIPT_INPUTS];
    uint32_t n_in, n_names, n_floats;
    double step;      /* of the differences, relative to an element */
    double tolerance; /* relative */
};

/* Of elements: they are distinct, multiples of 0.004 apart from a small fraction, and away from
 * the kinks of ops by more than a step, as far as there are enough such numbers. */
struct domain {
    double low, high;
};
extern const struct domain any, positive, within_one, above_one, away;

/* Text that fits into a line. */
struct words {
    char text[160];
};

void script_init(struct script *s, const frit_op_info *row, uint64_t seed);
void script_fini(struct script *s);

uint64_t script_draw(struct script *s, uint64_t n);                  /* 0 .. n - 1 */
int64_t script_between(struct script *s, int64_t low, int64_t high); /* low .. high */
bool script_chance(struct script *s, unsigned percent);
double script_real(struct script *s, double low, double high);

/* A rank of low .. high, extents of 1 .. most; now and then an extent is 0. */
frit_dims script_dims(struct script *s, int64_t low, int64_t high, int64_t most);
/* The same without empty extents. */
frit_dims script_filled(struct script *s, int64_t low, int64_t high, int64_t most);
/* The extent of a batch, now and then 0. */
int64_t script_batch(struct script *s);
uint64_t script_count(frit_dims dims);

/* An f64 operand of these dims: an input, or a view or copy of one. */
struct words script_operand(struct script *s, frit_dims dims, struct domain domain);
/* The same, always an input itself. */
struct words script_plain(struct script *s, frit_dims dims, struct domain domain);
/* An operand whose dims broadcast to `dims`. */
struct words script_broadcast(struct script *s, frit_dims dims, struct domain domain);
/* Integers of low .. high, of i64 or i32. */
struct words script_index(struct script *s, frit_dims dims, int64_t low, int64_t high);
struct words script_integers(struct script *s, uint32_t dtype, frit_dims dims, int64_t low,
                             int64_t high);
struct words script_mask(struct script *s, frit_dims dims);

/* Makes some elements of the last input 0. */
void script_zeros(struct script *s);

struct words script_name(struct script *s);
struct words script_list(const int64_t *numbers, int64_t n);
struct words script_text(frit_dims dims);
/* A random set of axes as an attribute, "axes=[0, 2]"; "" stands for none. */
struct words script_axes(struct script *s, int64_t rank, bool may_be_none);
/* An axis, from the front or from the end. */
int64_t script_axis(struct script *s, int64_t rank);
__attribute__((format(printf, 1, 2))) struct words script_format(const char *format, ...);
__attribute__((format(printf, 2, 3))) void script_line(struct script *s, const char *format, ...);

#endif
