/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on GPUs, as threads of one process or as processes, over an engine in the smallest host.
 *
 * The program's first process starts them and uses no device itself.  What they share is memory
 * that was mapped before: the store by which groups are made, and what they measured. */
#ifndef DIST_RIG_H
#define DIST_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <frit/collective.h>
#include <frit/op.h>

#include "device.h"

enum { MAX_RANKS = 8, N_VALUES = 256, N_NUMBERS = 64 };

struct value {
    char key[96];
    uint64_t size;
    unsigned char bytes[1024];
};

struct shared {
    pthread_mutex_t lock;
    uint32_t n_values;
    struct value values[N_VALUES];
    uint32_t n_ranks; /* of this run */
    _Atomic uint32_t n_met, n_meetings;
    _Atomic uint32_t n_failed; /* checks, of all ranks */
    char fault[600];           /* the first */
    _Atomic uint64_t ended_at; /* ns: the host ends the group; 0: it does not */
    _Atomic uint64_t steps[MAX_RANKS];
    double numbers[MAX_RANKS][N_NUMBERS]; /* of a rank */
    uint64_t hashes[MAX_RANKS][N_NUMBERS];
    _Atomic uint32_t n_wrong; /* reports of all runs, by whichever process */
};

struct rank {
    uint32_t number, size;
    uint32_t device_number;
    struct device device;
    const frit_collective_table *table; /* of the engine */
    void *instance;
    frit_group *group;
    frit_err err; /* of the last call */
    const void *arg;
};

extern struct shared *shared;

/* One line of the report, and whether it is as it must be. */
void report(bool is_right, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool all_was_right(void);

/* What a rank finds wrong, once for the run. */
#define CHECK(rank, condition) check(rank, condition, #condition, __LINE__)
bool check(const struct rank *rank, bool is_right, const char *what, int line);

uint64_t now_ns(void);

/* Runs `run` on each rank.  Results of the run before are gone.  False: a check failed, or a
 * process ended badly, which is reported. */
bool run_ranks(uint32_t n, bool as_threads, void (*run)(struct rank *rank), const void *arg);
/* The same, by the caller's hand: processes only. */
void start_ranks(uint32_t n, void (*run)(struct rank *rank), const void *arg,
                 pid_t pids[MAX_RANKS]);

/* Waits for all ranks of the run.  Ends the process if one of them has failed. */
void meet(void);

/* Joins group `generation`; each has its own ids. */
frit_status join(struct rank *rank, uint32_t generation, uint32_t number, uint32_t size,
                 uint64_t timeout_ns);
void leave(struct rank *rank);
/* Begins a sum or mean of f32, behind the stream if it is not NULL.  0: see rank->err. */
uint64_t begin_reduce(struct rank *rank, uint64_t at, uint64_t count, void *stream);
uint64_t begin_buffers(struct rank *rank, const frit_collective_op *op);
frit_status wait_for(struct rank *rank, uint64_t value);

/* The value of an environment variable; "" if there is none. */
const char *setting(const char *name);
/* The same as a number, `usual` if there is none. */
uint32_t number(const char *name, uint32_t usual);
/* Elements for a test: `count`, or less on fakes (GPUS_SCALE). */
uint64_t scaled(uint64_t count);
/* Spans that the engine records, as a timeline in the file; NULL: none are. */
void record_spans(const char *file);
void write_spans(const struct rank *rank);

#endif
