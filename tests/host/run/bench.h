/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of f32 vectors, its plan and its values, on a scripted device: what the tests of runs are
 * written with. */
#ifndef TESTS_STREAM_BENCH_H
#define TESTS_STREAM_BENCH_H

#include "graph/graph.h"
#include "run/driver.h"
#include "run/run.h"

enum { BENCH_VALUES = 64 };

struct bench {
    frit_device *device;
    int64_t n; /* elements of each input */
    struct graph graph;
    struct run_value values[BENCH_VALUES];
    struct run_op ops[BENCH_VALUES];
    struct run_note notes[BENCH_VALUES]; /* of all runs */
    struct run_scratch *scratch;
    struct run run;
    struct plan *plan;
};

void bench_open(struct bench *b, struct driver *driver, int64_t n);
/* Closes the fallback device of b->device too. */
void bench_close(struct bench *b);

/* An input whose elements are all `number`. */
uint32_t bench_in(struct bench *b, float number);
/* Ops; `bench_n` has a scalar as its second operand, `bench_flip` is a view. */
uint32_t bench_1(struct bench *b, uint32_t op, uint32_t x);
uint32_t bench_2(struct bench *b, uint32_t op, uint32_t x, uint32_t y);
uint32_t bench_n(struct bench *b, uint32_t op, uint32_t x, double number);
uint32_t bench_flip(struct bench *b, uint32_t x);

/* Some value is looked at after the run. */
void bench_want(struct bench *b, uint32_t value);

/* What a block runs, `foreign` as in driver_block; and its script. */
struct program *bench_program(struct driver *driver, const struct driver_op *ops, uint32_t n_ops,
                              const int *out, bool foreign);
struct driver_program *bench_script(const struct program *program);

/* Makes the plan: the blocks, each with a program whose reference goes over, at the place of their
 * first op, and the rest of the ops by themselves; no blocks: program order. */
struct bench_block {
    struct program *program;
    uint32_t n_ops;
    uint32_t ops[16];
};
void bench_plan(struct bench *b, const struct bench_block *blocks, uint32_t n_blocks);
/* bench_plan without blocks if there is no plan yet, and runs. */
void bench_run(struct bench *b);

uint64_t bench_count(const atomic_uint_least64_t *counter);
/* Element `at` of a value that the run made. */
float bench_at(struct bench *b, uint32_t value, int64_t at);
/* All elements are the same. */
void bench_expect(struct bench *b, uint32_t value, float number);
/* The text of a value's failure, which it must have. */
const char *bench_failure(struct bench *b, uint32_t value);

#endif
