/* SPDX-License-Identifier: Apache-2.0 */
/* Observing a device: counters, device time, an inspector of plans, traces, leaks.  For tests,
 * tools and monitoring. */
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

/* Fills as much of `out` as its struct_size covers. */
void frit_stats_get(frit_device *device, frit_stats *out);

/* One counter, with its name. */
typedef struct frit_counter {
    uint64_t struct_size;
    const char *name; /* "launches" */
    const char *meaning;
    uint64_t value;
} frit_counter;

/* In the order of counters.def; FRIT_INVALID beyond the last. */
frit_status frit_counter_at(frit_device *device, uint64_t index, frit_counter *out);

/* ---- device time ---- */

/* Time of commands by the clock of the device. */
typedef struct frit_device_time {
    uint64_t struct_size;
    uint64_t commands; /* launches, copies and fills that were measured */
    uint64_t busy_ns;  /* sum of their times */
    uint64_t lost;     /* commands that could not be measured */
} frit_device_time;

/* Starts to measure the commands that are submitted from now on; until the stop they run one after
 * the other.  FRIT_UNSUPPORTED if the driver has no clock, FRIT_BUSY if it is started already. */
FRIT_NODISCARD frit_status frit_device_time_start(frit_device *device, frit_err *err);
/* Waits for the submitted commands, stops, and fills as much of `out` as its struct_size covers.
 * FRIT_INVALID if it was not started. */
FRIT_NODISCARD frit_status frit_device_time_stop(frit_device *device, frit_device_time *out,
                                                 frit_err *err);

/* ---- inspector ---- */

/* The plans that ran on a device during an inspection, in order.  Without an inspection this costs
 * nothing. */
typedef struct frit_inspection frit_inspection;

/* Starts an inspection; FRIT_BUSY if one is running. */
FRIT_NODISCARD frit_status frit_inspect_start(frit_device *device, frit_err *err);
/* Stops it; `out` (may be NULL) receives the plans, to be freed by frit_inspection_free.
 * FRIT_INVALID if none is running, FRIT_NO_HOST_MEMORY if a plan could not be copied. */
FRIT_NODISCARD frit_status frit_inspect_stop(frit_device *device, frit_inspection **out,
                                             frit_err *err);
void frit_inspection_free(frit_inspection *inspection); /* NULL does nothing */

/* Totals.  `before`: at frit_inspect_start, `after`: at frit_inspect_stop. */
typedef struct frit_inspection_desc {
    uint64_t struct_size;
    uint64_t n_runs; /* plans that ran */
    uint64_t tensors_before, tensors_after;
    uint64_t buffers_before, buffers_after;
    uint64_t bytes_before, bytes_after; /* in buffers */
} frit_inspection_desc;

frit_status frit_inspection_about(const frit_inspection *inspection, frit_inspection_desc *out);

/* One plan that ran. */
typedef struct frit_run_desc {
    uint64_t struct_size;
    uint32_t stream;  /* number of the stream, by the time of its first op */
    uint32_t n_calls; /* ops as recorded */
    uint32_t n_ops;   /* ops after decomposition */
    uint32_t n_steps;
    uint64_t bytes_in; /* sums over the steps */
    uint64_t bytes_out;
} frit_run_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_inspection_run_at(const frit_inspection *inspection, uint64_t run,
                                   frit_run_desc *out);

enum {
    FRIT_STEP_IN_PLACE = 1, /* an output reused the memory of an operand */
    FRIT_STEP_SKIPPED = 2,  /* did not run: its results were not needed */
    FRIT_STEP_BY_OPS = 4,   /* its program could not run; its ops ran one by one */
    FRIT_STEP_VIEW = 8,     /* only a layout changed */
    FRIT_STEP_CANDIDATE =
        16, /* the first candidate of its program could not run; another one ran */
    FRIT_STEP_DECOMPOSED =
        32, /* core ops of a composite op whose program there is not, failed or is slower */
    FRIT_STEP_ELSEWHERE = 64 /* ran on the fallback device */
};

/* One step of a plan: a block of ops that runs as one program, or a single op.  Values are numbered
 * per run. */
typedef struct frit_step_desc {
    uint64_t struct_size;
    const char *label; /* "map: add mul exp", or the op's name */
    const char *fuser; /* "plugin/fuser"; "" for a single op */
    const char *end;   /* why the block ended: "all" "closed" "split" "blocks" "short" "single" */
    uint32_t score;
    uint32_t flags; /* FRIT_STEP_* */
    uint32_t n_ops, n_in, n_out;
    uint32_t reserved;
    const uint32_t *ops;         /* their numbers in the run */
    const char *const *op_names; /* "add" */
    const char *const *op_texts; /* "%2 = add %0, %1" */
    const uint32_t *in;          /* values that it reads, without repeats */
    const uint32_t *out;         /* values that it stores */
    const char *const *in_types; /* "f32[2, 64]" */
    const char *const *out_types;
    uint64_t bytes_in, bytes_out; /* sizes of these values; 0 for a view */
    const char *why; /* why its program, candidate or device could not run it; "" if it could */
    const char *candidate; /* that ran, of a program with several; "" else */
    const char *chosen;    /* how: "priority" (the driver's), "measured", "forced"; "" likewise */
} frit_step_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_inspection_step_at(const frit_inspection *inspection, uint64_t run, uint64_t step,
                                    frit_step_desc *out);
/* The whole inspection as text, the caller's: frit_free.  NULL if memory is short. */
char *frit_inspection_text(const frit_inspection *inspection);

/* ---- traces ---- */

/* Traces the ops of all streams of the device, in the order of recording, until frit_trace_stop.
 * The result is a text program, FOLDER/trace.frit, with its constants in files beside it; `frit
 * replay` runs it.  Its constants are the operands that no traced op made; its outputs are the
 * results that the program read or moved, or still owns at the end.  Random ops draw new numbers in
 * a replay. Creates the folder (its parent must exist) and runs the recorded ops first.  FRIT_BUSY
 * if a trace is running. */
FRIT_NODISCARD frit_status frit_trace_start(frit_device *device, const char *folder, frit_err *err);
/* Stops the trace and writes it.  Returns the first failure of the trace; FRIT_INVALID if none is
 * running. */
FRIT_NODISCARD frit_status frit_trace_stop(frit_device *device, frit_err *err);

/* ---- leaks ---- */

/* The number of tensors, buffers and streams with pending ops on the device: 0 if everything was
 * run and released.  `text` (may be NULL) receives one line for each, the caller's: frit_free; NULL
 * if there are none.  No other call may use the device meanwhile. */
uint64_t frit_leaks(frit_device *device, char **text);

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
