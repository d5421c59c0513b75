/* SPDX-License-Identifier: Apache-2.0 */
/* An open device: the driver's object, its memory, its programs, the streams that feed it, its
 * counters. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <frit/frit.h>

#include "base/versioned.h"
#include "device/cache.h"
#include "device/watch.h"
#include "load/registry.h"
#include "memory/memory.h"
#include "search/fuser.h"
#include "tensor/failure.h"

struct plan_saver;
struct labels;
struct programs;
struct stream;
struct job_queue;

/* What the device layer needs from its host; outlives the device. */
struct device_config {
    frit_host *host; /* for callers above; not used here */
    const struct registry *registry;
    uint64_t id;     /* unique in the process */
    int64_t max_ops; /* queued ops that make a stream run */
    int64_t block_bytes, keep_bytes;
    bool single_stream;           /* one for all threads */
    bool fusion;                  /* ops are run together */
    uint32_t max_blocks;          /* of a search */
    uint64_t max_explorations;    /* 0: no limit */
    uint64_t store_bytes;         /* of known plans, half; of what `cache` has, half */
    const char *store;            /* file of known plans, NULL: none */
    bool store_named;             /* by the user */
    bool compile_ahead;           /* blocks of ops do not wait for their programs */
    bool decompose;               /* composite ops run as core ops even where claimed */
    bool poison;                  /* memory is filled with NaN before each use */
    const struct versioned *seed; /* of the host */
};

enum drain_cause { DRAIN_READ, DRAIN_SYNC, DRAIN_SHARE, DRAIN_FULL, DRAIN_SCOPE, DRAIN_CAUSES };

/* What ran instead of a program that refused or failed. */
enum fallback {
    FALLBACK_CANDIDATE,  /* the program's next candidate */
    FALLBACK_OPS,        /* the ops of a block, one by one */
    FALLBACK_DECOMPOSED, /* what a composite op stands for */
    FALLBACK_DEVICE,     /* another device */
    FALLBACKS
};

struct device_counters {
    atomic_uint_least64_t views, decomposed, programs, launches, compiles;
    /* Beside what streams count themselves. */
    atomic_uint_least64_t plan_misses, explorations, plan_runs;
    atomic_uint_least64_t fused;              /* launches of programs for blocks */
    atomic_uint_least64_t barriers;           /* between commands of one submit */
    atomic_uint_least64_t in_place;           /* outputs in the memory of an input */
    atomic_uint_least64_t skipped;            /* steps whose results nobody wanted */
    atomic_uint_least64_t store_loaded;       /* plans from the file */
    atomic_uint_least64_t disabled;           /* programs that failed and are not run again */
    atomic_uint_least64_t waiting;            /* launches whose program was not ready yet */
    atomic_uint_least64_t compiles_joined;    /* asked for while an equal one was under way */
    atomic_uint_least64_t compiles_cancelled; /* before they began */
    atomic_uint_least64_t fallbacks[FALLBACKS];
    atomic_uint_least64_t drains[DRAIN_CAUSES];
    atomic_uint_least64_t faults; /* refusals with FRIT_INTERNAL */
    atomic_uint_least64_t bytes_in, bytes_out;
};

/* What a failed command spoiled: everything written at timeline values from..to. */
struct poison {
    uint64_t from, to;
    struct failure *failure;
};

struct frit_device {
    uint64_t id; /* unique in the process */
    struct device_config config;
    struct watch watch; /* read for each op, and rarely written: not beside the counters */
    const struct device_entry *entry;
    const frit_backend *backend;
    const frit_device_info *info;
    void *self; /* the driver's */
    struct memory *memory;
    struct cache cache; /* of what can be made again, with half of store_bytes */
    struct programs *programs;
    struct job_queue *compiler; /* of the host; NULL: programs are compiled where they are needed */
    struct automaton *automaton;
    struct fusers fusers;
    struct plan_saver *saver; /* NULL: plans are not kept */
    struct labels *labels;
    frit_device *fallback; /* runs what this one cannot, NULL: nothing does */
    atomic_uint n_poisons;
    atomic_uint next_ordinal;   /* of streams, in order of their first op */
    atomic_uint_least64_t told; /* failures up to this value are among the poisons */
    struct device_counters count;
    struct poison *poisons; /* these under the lock */
    struct stream *streams;
    void (*note_failure)(frit_device *device, struct failure *failure); /* set by its streams */
    uint32_t poison_capacity;                                           /* at least 1 */
    uint32_t opens;    /* this and the next under the host's lock */
    frit_device *next; /* in the host's list */
    /* Written with each submit, apart from what is only read. */
    _Alignas(64) pthread_mutex_t submit; /* baton: the contract wants one submit at a time */
    atomic_uint_least64_t submits;       /* how many; written under the baton */
    atomic_uint_least64_t last_value;    /* of the timeline, submitted */
    atomic_uint_least64_t reached;       /* a wait for this value has returned */
    pthread_mutex_t lock;
};

frit_status device_create(const struct device_entry *entry, const struct device_config *config,
                          frit_device **out, frit_err *err);
/* Its streams are closed.  No other call on it is under way. */
void device_destroy(frit_device *device);

/* Waits until the timeline reaches `value`.  When it returns, in any thread, device_poison_of knows
 * of every command up to there that failed. */
frit_status device_wait(frit_device *device, uint64_t value, frit_err *err);
/* One call of the driver's submit: hands `cmds` over and gives the timeline value. */
frit_status device_submit(frit_device *device, const frit_cmd *cmds, uint32_t count,
                          uint64_t *value, frit_err *err);
/* The timeline was told to reach `value`. */
void device_reached(frit_device *device, uint64_t value);
/* The failure that spoiled a write, a new reference; NULL if none is known. */
struct failure *device_poison_of(frit_device *device, uint64_t written_at);

#endif
