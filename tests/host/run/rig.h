/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of f32 vectors, its plan and its values, on a scripted device: the rig for tests of
 * runs. */
#ifndef TESTS_RUN_RIG_H
#define TESTS_RUN_RIG_H

#include "graph/graph.h"
#include "run/driver.h"
#include "run/run.h"

enum { RIG_VALUES = 64 };

struct rig {
    frit_device *device;
    int64_t n; /* elements of each input */
    struct graph graph;
    struct run_value values[RIG_VALUES];
    struct run_op ops[RIG_VALUES];
    struct run_note notes[RIG_VALUES]; /* of all runs */
    struct run_scratch *scratch;
    struct run run;
    struct plan *plan;
};

void rig_open(struct rig *rig, struct driver *driver, int64_t n);
/* Closes the fallback device of rig->device too. */
void rig_close(struct rig *rig);

/* Adds an input whose elements are all `number`. */
uint32_t rig_in(struct rig *rig, float number);
/* Append ops; `rig_n` has a scalar as its second operand, `rig_flip` is a view. */
uint32_t rig_1(struct rig *rig, uint32_t op, uint32_t x);
uint32_t rig_2(struct rig *rig, uint32_t op, uint32_t x, uint32_t y);
uint32_t rig_n(struct rig *rig, uint32_t op, uint32_t x, double number);
uint32_t rig_flip(struct rig *rig, uint32_t x);

/* Marks a value as wanted after the run. */
void rig_want(struct rig *rig, uint32_t value);

/* A program for a block, `foreign` as in driver_block; and the script of a program. */
struct program *rig_program(struct driver *driver, const struct driver_op *ops, uint32_t n_ops,
                            const int *out, bool foreign);
struct driver_program *rig_script(const struct program *program);

/* Makes the plan: each block, whose reference to its program the plan takes over, runs at the place
 * of its first op, the other ops run as single ops.  Without blocks: all ops in program order. */
struct rig_block {
    struct program *program;
    uint32_t n_ops;
    uint32_t ops[16];
};
void rig_plan(struct rig *rig, const struct rig_block *blocks, uint32_t n_blocks);
/* Runs the plan; makes one without blocks if there is none yet. */
void rig_run(struct rig *rig);

uint64_t rig_count(const atomic_uint_least64_t *counter);
/* Element `at` of a value that the run made. */
float rig_at(struct rig *rig, uint32_t value, int64_t at);
/* Checks that all elements are `number`. */
void rig_expect(struct rig *rig, uint32_t value, float number);
/* The text of a value's failure, which it must have. */
const char *rig_failure(struct rig *rig, uint32_t value);

#endif
