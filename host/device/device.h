/* SPDX-License-Identifier: Apache-2.0 */
/* An open device: the driver's object, its memory, its programs, the streams that feed it, its
 * counters. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/frit.h>

#include "base/versioned.h"
#include "device/cache.h"
#include "device/drain_cause.h"
#include "device/effects.h"
#include "device/fallback_kind.h"
#include "device/queue.h"
#include "device/watch.h"
#include "tune/anchor.h"

struct failure;
struct memory;
struct device_entry;
struct fusers;
struct plan_saver;
struct profile;
struct labels;
struct lineage;
struct programs;
struct registry;
struct retired;
struct staging;
struct tune_store;
struct stream;
struct job_queue;
struct idle_tuner;

/* [tune] */
struct tune_config {
    enum tune_level level;
    bool measures;      /* at first launches, else only what was decided before is used */
    uint64_t budget_ms; /* for a key; and as much more while the device is idle */
    uint64_t idle_ms;
    bool tries; /* also what a process may die of: candidates of other people's plugins */
    const char *artefacts; /* folder, NULL: none; and what it holds at most */
    uint64_t artefact_bytes;
    bool deterministic; /* choices, and results, are the same in each run */
    const char *force;  /* identity of a candidate that runs wherever it is offered, NULL: none */
};

/* What the device layer needs from its host; outlives the device. */
struct device_config {
    frit_host *host; /* for callers above; not used here */
    const struct registry *registry;
    uint64_t id;     /* unique in the process */
    int64_t max_ops; /* queued ops that make a stream run */
    int64_t chunk_bytes;
    int64_t keep_bytes;        /* -1: memory_keep_bytes */
    bool single_stream;        /* one for all threads */
    uint32_t queues;           /* that streams are spread over, 0: by the type of device */
    bool fusion;               /* ops are run together */
    const char *exclude;       /* fusers that are not used, NULL: none */
    uint32_t max_candidates;   /* of a program that may run; 0: no limit */
    bool capture;              /* submits are recorded where the driver can */
    uint32_t max_blocks;       /* of a search */
    uint64_t max_explorations; /* 0: no limit */
    uint64_t store_bytes;      /* of known plans, half; of what `cache` has, half */
    const char *store;         /* file of known plans, NULL: none */
    uint32_t store_wait_ms;    /* see plan/store.h */
    bool store_named;          /* by the user */
    const char *tune_store;    /* file of the tuner's decisions, NULL: none */
    bool tune_store_named;     /* by the user */
    uint32_t threads;          /* that compute; 0: as many as processors */
    bool compile_ahead;        /* blocks of ops do not wait for their programs */
    uint32_t numeric_class;    /* FRIT_NUMERIC_*: the most that candidates may differ */
    struct tune_config tune;
    bool decompose; /* composite ops run as core ops even where claimed */
    bool poison;    /* memory is filled with NaN before each use */
    uint64_t seed;  /* of random rows, until it is set */
    /* Objects of the program for the driver, only read while the device is opened. */
    const frit_native_object *natives;
    uint32_t n_natives; /* 0: the device is shared by name */
    /* Runs what is queued in a stream whose thread has ended. */
    void (*run_orphan)(struct stream *stream);
    /* A command failed that the stream of this ordinal submitted; NULL: there are no streams. */
    void (*note_failure)(frit_device *device, struct failure *failure, uint32_t stream);
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
    atomic_uint_least64_t compiles_joined;    /* requested while an equal one was running */
    atomic_uint_least64_t compiles_cancelled; /* before they began */
    atomic_uint_least64_t fallbacks[FALLBACKS];
    atomic_uint_least64_t drains[DRAIN_CAUSES];
    atomic_uint_least64_t faults; /* refusals with FRIT_INTERNAL */
    atomic_uint_least64_t derived_fills, derived_hits;
    atomic_uint_least64_t bytes_in, bytes_out;
    atomic_uint_least64_t tuned, quarantined; /* keys measured here; bad candidates found here */
    atomic_uint_least64_t in_parts;           /* blocks, see run/parts.h */
    atomic_uint_least64_t bytes_direct;       /* from other devices of the driver */
    atomic_uint_least64_t collectives;        /* operations of ranks that were begun */
    atomic_uint_least64_t bytes_coalesced;    /* operands copied into the result of their op */
};

/* In the place of a stream's ordinal: of a device that works for another one, and where the stream
 * is not known. */
#define DEVICE_NO_STREAM   (UINT32_MAX - 1)
#define DEVICE_ALL_STREAMS UINT32_MAX

struct frit_device {
    uint64_t id; /* unique in the process */
    struct device_config config;
    struct watch watch; /* read for each op, and rarely written: not beside the counters */
    const struct device_entry *entry;
    const char *name; /* of the entry */
    const frit_backend *backend;
    const frit_capture_table *capture; /* NULL: submits are not recorded */
    const frit_device_info *info;
    struct versioned seed; /* of random rows */
    void *self;            /* the driver's */
    struct memory *memory;
    struct cache cache; /* of what can be made again, with half of store_bytes */
    struct programs *programs;
    struct retired *retired;    /* programs that wait to be destroyed */
    struct job_queue *compiler; /* of the host; NULL: programs are compiled where they are needed */
    struct automaton *automaton;
    struct fusers *fusers;
    struct plan_saver *saver; /* NULL: plans are not kept */
    struct tune_store *tune_store;
    _Atomic(struct idle_tuner *) idle; /* run/idle.h; NULL: nothing had to wait for it yet */
    atomic_uint n_measuring;           /* launches whose candidates are measured before they run */
    uint64_t decisions; /* serial of what it decides, atomic: bound plans follow it */
    bool measures;      /* first launches measure candidates of its plugin */
    struct labels *labels;
    struct lineage *lineage;
    struct profile *profile;  /* NULL: the driver has no clock */
    struct staging *staging;  /* NULL: transfers are the driver's */
    frit_device *fallback;    /* runs what this one cannot, NULL: nothing does */
    atomic_uint n_spoiled;    /* buffers with a failure */
    atomic_uint next_ordinal; /* of streams, in order of their first op */
    struct device_counters count;
    atomic_uint n_first;   /* of the first submits, those that returned */
    struct failure *loss;  /* these under the lock: why the device is lost, NULL: it is not */
    struct failure *error; /* the first of streams whose thread is gone, since frit_sync_all */
    struct stream *streams;
    uint32_t opens;    /* this and the next under the host's lock */
    frit_device *next; /* in the host's list */
    pthread_mutex_t lock;
    struct effects effects;
    struct pending_ends *pending;
    uint32_t n_queues; /* constant once it is open */
    struct device_queue queues[QUEUES_MAX];
};

frit_status device_create(const struct device_entry *entry, const struct device_config *config,
                          frit_device **out, frit_err *err);
/* Its streams are closed.  No other call on it is under way. */
void device_destroy(frit_device *device);

/* Keeps the error of a stream whose thread is gone for frit_sync_all; takes the reference over.
 * NULL does nothing. */
void device_keep_error(frit_device *device, struct failure *failure);
/* Takes it out, the caller's reference; NULL if there is none. */
struct failure *device_take_error(frit_device *device);
/* A call of the driver failed with `err`.  The first FRIT_DEVICE_LOST is kept as the reason of the
 * loss, and later ones get that reason; other failures are left as they are. */
void device_explain_loss(frit_device *device, frit_err *err);
/* FRIT_DEVICE_LOST with the reason once the device is lost. */
frit_status device_check_loss(frit_device *device, frit_err *err);
/* Whether launches have to enter the lineage: they may be in flight, or read what is spoiled. */
static inline bool device_needs_lineage(const frit_device *device)
{
    return !(device->info->caps & FRIT_CAP_INLINE_QUEUE) ||
           atomic_load_explicit(&device->n_spoiled, memory_order_relaxed);
}

/* Its store of decisions (tune/store.h); never NULL while the device is open. */
static inline struct tune_store *device_tune_store(frit_device *device)
{
    return device->tune_store;
}

/* The serial of its decisions; another one than before: a launch may choose another candidate. */
static inline uint64_t device_decisions(const frit_device *device)
{
    return __atomic_load_n(&device->decisions, __ATOMIC_ACQUIRE);
}
static inline void device_note_decision(frit_device *device)
{
    __atomic_fetch_add(&device->decisions, 1, __ATOMIC_RELEASE);
}

/* A program was disabled: counts it and says so. */
void device_note_disabled(frit_device *device, const char *label, const char *why);

#endif
