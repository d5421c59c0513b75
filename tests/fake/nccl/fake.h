/* SPDX-License-Identifier: Apache-2.0 */
/* What a test can set and read of a fake NCCL: the exported symbol FAKE_NCCL of the library, which
 * it finds by dlsym.  Settings start as FAKE_NCCL_NAME in the environment says, for the names
 * in brackets. */
#ifndef FAKE_NCCL_FAKE_H
#define FAKE_NCCL_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_NCCL "fake_nccl"

enum { FAKE_NCCL_RANKS = 32 };

struct fake_nccl {
    /* ---- settings ---- */
    _Atomic int version;              /* (VERSION) */
    const char *_Atomic failing_name; /* (FAIL) of the function that fails each time; NULL: none */
    _Atomic int failing_result;       /* (RESULT) */
    _Atomic bool init_hangs;          /* (INIT_HANGS) nobody hears of the other ranks */
    _Atomic bool kernels_hang;        /* (KERNELS_HANG) until they are aborted */
    _Atomic uint32_t abort_ms;        /* (ABORT_MS) how long an abort takes */
    _Atomic bool aborts_hang;         /* until it is false */
    _Atomic int async_error;          /* (ASYNC) of communicators that have launched something */
    /* (POLLS) ncclCommGetAsyncError says "in progress" so often before anything is enqueued */
    _Atomic uint32_t polls;
    _Atomic bool checks_memory; /* (CHECKS_MEMORY) buffers must be memory of the fake device */
    /* ---- counters ---- */
    _Atomic int64_t comms; /* alive */
    _Atomic uint64_t n_aborted, n_destroyed;
    _Atomic uint64_t n_groups;   /* of calls, which enqueued something */
    _Atomic uint32_t most_calls; /* in a group */
    /* ---- functions ---- */
    void (*reset)(void); /* settings and counters as at the start, but `comms` */
};

#endif
