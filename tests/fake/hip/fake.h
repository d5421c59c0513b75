/* SPDX-License-Identifier: Apache-2.0 */
/* What a test can set and read of a fake runtime: the exported symbol FAKE_GPU of the library,
 * which it finds by dlsym. */
#ifndef FAKE_HIP_FAKE_H
#define FAKE_HIP_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_GPU "fake_gpu"

enum { FAKE_MAX_DEVICES = 8, FAKE_DEVICES = 2 /* unless a setting says otherwise */ };
/* rocBLAS: a result that is not a failure of the product. */
enum { FAKE_PRODUCT_SLOW = 7 };

/* Objects that are counted. */
enum fake_kind {
    FAKE_MEMORY,
    FAKE_PINNED,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_GRAPH,
    FAKE_GRAPH_EXEC,
    FAKE_PROGRAM,
    FAKE_CONTEXT, /* retentions of primary contexts */
    FAKE_PRODUCT, /* handles, descriptions, layouts and preferences of the library for products */
    FAKE_KINDS
};

/* Products of matrices that were enqueued or captured, which are counted by what they have. */
enum fake_product_kind {
    FAKE_PRODUCT_ANY,
    FAKE_PRODUCT_BATCHES,
    FAKE_PRODUCT_BIAS,
    FAKE_PRODUCT_TRANSPOSED,
    FAKE_PRODUCT_WORKSPACE,
    FAKE_PRODUCT_TF32,
    FAKE_PRODUCT_KINDS
};

/* Each library has one: the runtime, the compiler and the library for products; what it has not is
 * 0.  Settings start as FRIT_FAKE_GPU_NAME in the environment says, for the names in brackets. */
struct fake_gpu {
    /* ---- settings ---- */
    _Atomic uint32_t n_devices; /* (DEVICES) */
    _Atomic uint64_t seed;      /* (SEED) of the order in which streams run */
    _Atomic uint64_t late_ns;   /* (LATE_NS) longest delay of an operation that nobody waits for */
    _Atomic uint64_t device_bytes; /* (BYTES) memory of a device */
    _Atomic int init_result;       /* of Init; 0: it succeeds */
    _Atomic int compute_mode;      /* of device 0 */
    _Atomic uint64_t failing_call; /* number of the call that fails; 0: none */
    _Atomic int failing_result;    /* its result */
    _Atomic uint64_t
        failing_operation; /* number of the operation that fails when it runs; 0: none */
    _Atomic int failing_operation_result;
    _Atomic bool yields;       /* each call of the library for products yields to other threads */
    _Atomic bool has_no_peers; /* no device can access another one's memory */
    _Atomic bool has_no_algorithm; /* for any product */
    /* Of each algorithm; not 0: it cannot be used.  rocBLAS: the result of each product that runs.
     */
    _Atomic int algorithm_state;
    _Atomic bool has_no_tf32;    /* no algorithm for products of reduced f32 */
    _Atomic int patch;           /* last number of the version of the library for products */
    _Atomic bool holds_compiles; /* while set, no compile ends */
    /* ---- counters ---- */
    _Atomic uint64_t calls;        /* of the library, as the numbers above count them */
    _Atomic uint64_t n_operations; /* operations that have run */
    _Atomic uint32_t compiling;    /* compiles that have begun and not ended */
    _Atomic uint64_t compiles;     /* that have begun */
    _Atomic uint64_t products[FAKE_PRODUCT_KINDS];
    _Atomic uint64_t enabled_peers;  /* times that access to another device's memory was enabled */
    _Atomic uint64_t peer_copies;    /* enqueued */
    _Atomic uint64_t staged_copies;  /* those of them without such access */
    const char *_Atomic failed_name; /* of the call that was made to fail */
    _Atomic int64_t alive[FAKE_KINDS];
    /* ---- functions ---- */
    /* For the library for products: enqueues a call of `run` with a copy of the data; whether
     * memory of the device has this range. */
    int (*enqueue)(void *stream, void (*run)(const void *data), const void *data, uint64_t bytes);
    /* The same for a call that may wait for what other streams run, as collectives do. */
    int (*enqueue_waiting)(void *stream, void (*run)(const void *data), const void *data,
                           uint64_t bytes);
    bool (*has_memory)(uint64_t address, uint64_t bytes);
    void (*hold)(bool held); /* while held, streams do not run */
    void *(*current)(void);  /* the calling thread's: CUDA: context; HIP: device + 1 */
    uint32_t (*depth)(void); /* CUDA: contexts on the calling thread's stack */
    /* A context of an application, pushed to the calling thread (CUDA); sets the device (HIP). */
    void *(*use_device)(int device);
    void (*unuse_device)(void); /* pops it (CUDA) */
    void (*reset)(void);        /* settings and errors as at the start; devices are well again */
};

#endif
