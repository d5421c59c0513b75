/* SPDX-License-Identifier: Apache-2.0 */
/* A built engine in the smallest host, and groups whose ranks are threads of the test. */
#ifndef PLUGINS_COLLECTIVE_WORLD_H
#define PLUGINS_COLLECTIVE_WORLD_H

#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include <frit/collective.h>
#include <frit/op.h>
#include <frit/plugin.h>

enum { MAX_RANKS = 64 };

static const uint64_t patience = 120000000000u;

/* What differs between engines.  A program has one, in a file of its own. */
struct engine {
    const char *plugin;
    uint32_t max_ranks;        /* that a test can have, at most MAX_RANKS */
    uint32_t too_many_ranks;   /* that the engine refuses */
    const char *foreign_space; /* that it cannot reach */
    bool refuses_foreign_ids;
    bool combines_16_bit_integers;
    bool works_for_all; /* who waits completes the operation for all ranks */
    int scale;          /* tests with much data do 1 / scale of it */
    /* Before the plugin is opened; NULL: nothing. */
    void (*start)(void);
    /* Sets what the rank's memory is. */
    void (*set_device)(uint32_t rank, frit_group_params *params);
    /* The value of an option; NULL: the engine has none. */
    const char *(*option)(frit_str name);
};

extern const struct engine world_engine;

struct world {
    frit_host_root root;
    const frit_plugin *plugin;
    void *instance;
    const frit_collective_table *table;
    frit_group_id id;
    atomic_int n_live;      /* pieces of host memory that the engine holds */
    atomic_int n_allocated; /* in all */
    atomic_int refuse;      /* > 0: the allocation that many from now on finds no memory */
    pthread_barrier_t all;  /* of the ranks that run_ranks runs */
};

struct rank {
    struct world *world;
    uint32_t number, size;
    frit_group *group;
    frit_err err; /* of the last call */
    void (*run)(struct rank *rank);
    void *arg;
    const char *fault; /* the first check that failed; asserts are for the main thread */
    int line;
    pthread_t thread;
};

#define CHECK(rank, condition)                \
    do {                                      \
        if (!(condition) && !(rank)->fault) { \
            (rank)->fault = #condition;       \
            (rank)->line = __LINE__;          \
        }                                     \
    } while (0)

/* The last message that an engine has logged. */
extern char world_log[512];

void world_open(struct world *world);
/* The same for an engine that may have no id to give. */
void world_open_without_id(struct world *world);
/* All memory must be back. */
void world_close(struct world *world);

/* Joins the group of the world's id. */
frit_status rank_join(struct rank *rank, uint64_t timeout_ns);
/* Runs each rank in a thread, in a group of its own; fails the test at the first failed check. */
void run_ranks(struct world *world, uint32_t size, void (*run)(struct rank *rank), void *arg);
/* The same in a world of its own. */
void run_alone(uint32_t size, void (*run)(struct rank *rank), void *arg);

/* Of one buffer; the value, or 0 with the status in rank->err. */
uint64_t rank_begin(struct rank *rank, uint32_t kind, uint32_t combine, uint32_t dtype,
                    const void *from, void *into, uint64_t count);
frit_status rank_wait(struct rank *rank, uint64_t value);
void sleep_ms(int ms);

#endif
