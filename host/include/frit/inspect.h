/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on a device: counters, times by its own clock, an inspector of plans, traces, leaks.
 * For tests, tools and monitoring; computing needs none of it. */
#ifndef FRIT_INSPECT_H
#define FRIT_INSPECT_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- counters ---- */

/* The counters of a device since it was opened; counters.def has their names and meanings. */
typedef struct frit_stats {
    uint64_t struct_size;
#define FRIT_COUNTER(name, meaning) uint64_t name;
#include <frit/counters.def>
} frit_stats;

/* Fills as much of `out` as its struct_size says the caller knows. */
void frit_stats_get(frit_device *device, frit_stats *out);

/* One counter, for callers that go by names. */
typedef struct frit_counter {
    uint64_t struct_size;
    const char *name; /* "launches" */
    const char *meaning;
    uint64_t value;
} frit_counter;

/* In the order of counters.def; FRIT_INVALID beyond the last. */
frit_status frit_counter_at(frit_device *device, uint64_t index, frit_counter *out);

/* ---- time ---- */

/* Time by the device's own clock. */
typedef struct frit_device_time {
    uint64_t struct_size;
    uint64_t commands; /* launches, copies and fills that were measured, one after the other */
    uint64_t busy_ns;  /* that they took */
    uint64_t lost;     /* commands that could not be measured */
} frit_device_time;

/* Begins to measure what is submitted from now on.  Commands that could run at the same time run
 * one after the other meanwhile.  FRIT_UNSUPPORTED if the driver has no clock, FRIT_BUSY if it has
 * begun already. */
FRIT_NODISCARD frit_status frit_device_time_start(frit_device *device, frit_err *err);
/* Ends, waits for what was submitted, and fills as much of `out` as its struct_size says the caller
 * knows.  FRIT_INVALID if it had not begun. */
FRIT_NODISCARD frit_status frit_device_time_stop(frit_device *device, frit_device_time *out,
                                                 frit_err *err);

/* ---- inspector ---- */

/* What ran on a device while it was inspected: one plan after the other, in the order in which they
 * ran.  Costs nothing while no inspection is on. */
typedef struct frit_inspection frit_inspection;

/* Begins; FRIT_BUSY if it has begun already. */
FRIT_NODISCARD frit_status frit_inspect_start(frit_device *device, frit_err *err);
/* Ends; `out` (NULL: not wanted) gets what ran, for frit_inspection_free.  FRIT_INVALID if it had
 * not begun, FRIT_NO_HOST_MEMORY if a plan could not be copied. */
FRIT_NODISCARD frit_status frit_inspect_stop(frit_device *device, frit_inspection **out,
                                             frit_err *err);
void frit_inspection_free(frit_inspection *inspection); /* NULL does nothing */

/* The whole of it.  `before`: at frit_inspect_start, `after`: at frit_inspect_stop. */
typedef struct frit_inspection_desc {
    uint64_t struct_size;
    uint64_t n_runs;
    uint64_t tensors_before, tensors_after;
    uint64_t buffers_before, buffers_after;
    uint64_t bytes_before, bytes_after; /* in buffers */
} frit_inspection_desc;

frit_status frit_inspection_about(const frit_inspection *inspection, frit_inspection_desc *out);

/* One plan that ran. */
typedef struct frit_run_desc {
    uint64_t struct_size;
    uint32_t stream;  /* in order of first op */
    uint32_t n_calls; /* recorded ops */
    uint32_t n_ops;   /* composite ops replaced by what they stand for */
    uint32_t n_steps;
    uint64_t bytes_in; /* sums over the steps */
    uint64_t bytes_out;
} frit_run_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_inspection_run_at(const frit_inspection *inspection, uint64_t run,
                                   frit_run_desc *out);

enum {
    FRIT_STEP_IN_PLACE = 1,    /* an output took the memory of an operand */
    FRIT_STEP_SKIPPED = 2,     /* nobody wanted what it makes */
    FRIT_STEP_BY_OPS = 4,      /* its program could not run: its ops did by themselves */
    FRIT_STEP_VIEW = 8,        /* only a layout changed */
    FRIT_STEP_CANDIDATE = 16,  /* the first candidate of a program could not run: another one did */
    FRIT_STEP_DECOMPOSED = 32, /* a composite op's program could not: it ran as core ops */
    FRIT_STEP_ELSEWHERE = 64   /* its device could not: it ran on another one */
};

/* One step of a plan: a block of ops that runs as one program, or one op by itself.  Values are
 * numbered per run. */
typedef struct frit_step_desc {
    uint64_t struct_size;
    const char *label; /* "map: add mul exp", or the op's name */
    const char *fuser; /* "plugin/fuser"; "": an op by itself */
    const char *end;   /* why the block got no more ops: "all" "closed" "split" "blocks" "short"
                          "single" */
    uint32_t score;
    uint32_t flags; /* FRIT_STEP_* */
    uint32_t n_ops, n_in, n_out;
    uint32_t reserved;
    const uint32_t *ops;         /* numbers in the run */
    const char *const *op_names; /* "add" */
    const char *const *op_texts; /* "%2 = add %0, %1" */
    const uint32_t *in;          /* values that it reads, each once */
    const uint32_t *out;         /* values that it stores */
    const char *const *in_types; /* "f32[2, 64]" */
    const char *const *out_types;
    uint64_t bytes_in, bytes_out; /* of these; 0 for a view */
    const char *why; /* why a program, a candidate or the device could not; "": nothing of that */
} frit_step_desc;

frit_status frit_inspection_step_at(const frit_inspection *inspection, uint64_t run, uint64_t step,
                                    frit_step_desc *out);
/* All of it as text, to be ended by frit_free; NULL without memory. */
char *frit_inspection_text(const frit_inspection *inspection);

/* Records the ops of all streams of the device, in the order in which they are recorded, until
 * frit_trace_stop: as a text program FOLDER/trace.frit with its constants beside it, that
 * `frit replay` runs again.  Constants are what ops use that no recorded op made, read back;
 * outputs are the results that were read or moved, or are not released at the end; random rows draw
 * anew where it is replayed.  The folder is made in one that exists.  FRIT_BUSY if it has begun
 * already. Runs what is queued. */
FRIT_NODISCARD frit_status frit_trace_start(frit_device *device, const char *folder, frit_err *err);
/* Ends and writes it; the first failure of the recording, or FRIT_INVALID if it had not begun. */
FRIT_NODISCARD frit_status frit_trace_stop(frit_device *device, frit_err *err);

/* How many queues with ops, tensors and buffers are left on the device: 0 where everything was
 * released and run.  `text` (NULL: not wanted) gets a line for each, to be ended by frit_free; NULL
 * where nothing is left.  No other call on the device is under way. */
uint64_t frit_leaks(frit_device *device, char **text);

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
