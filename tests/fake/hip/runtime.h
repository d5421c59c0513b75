/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the runtime share.  Its functions have the vendor's names as symbols, taken
 * from plugins/hip/syms.def: FAKE_PICK picks the one of the vendor for which this is built. */
#ifndef FAKE_HIP_RUNTIME_H
#define FAKE_HIP_RUNTIME_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hip/api.h"

#include "fake.h"

#ifdef FAKE_HIP
#define FAKE_PICK(hip, cuda) hip
#else
#define FAKE_PICK(hip, cuda) cuda
#endif

#define FAKE_ABSENT "absent" /* the symbol of what is declared, and never defined */
#define DECLARE(member, name, ...) \
    gpu_result fake_##member(__VA_ARGS__) __asm__(name) __attribute__((visibility("default")));
#define RUNTIME(member, hip, cuda, ...)  DECLARE(member, FAKE_PICK(hip, cuda), __VA_ARGS__)
#define OPTIONAL(member, hip, cuda, ...) DECLARE(member, FAKE_PICK(hip, cuda), __VA_ARGS__)
#define COMPILER(member, hip, cuda, ...) DECLARE(member, FAKE_PICK(hip, cuda), __VA_ARGS__)
#define ABSENT                           FAKE_ABSENT
#include "hip/syms.def"

/* Results that the fake returns, beside those of api.h. */
enum {
    FAKE_INVALID_VALUE = 1,
    FAKE_NOT_INITIALIZED = 3,
    FAKE_INVALID_DEVICE = 101,
    FAKE_INVALID_IMAGE = 200,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_NO_BINARY = 209,
    FAKE_NO_PEER = 217,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_PEER_ENABLED = 704,
    FAKE_NOT_SUPPORTED = 801,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901
};

/* Limits of the devices. */
enum {
    FAKE_THREADS = 1024,          /* of a block */
    FAKE_SHARED = 64 << 10,       /* bytes of shared memory of a block */
    FAKE_PLAIN_SHARED = 48 << 10, /* CUDA: without FuncSetAttribute */
    FAKE_WARP = 64,
    FAKE_PROCESSORS = 2,
    FAKE_PARAMETERS = 4096 /* bytes of a kernel's parameters */
};

extern struct fake_gpu fake_gpu;

/* ---- call.c ---- */

/* Begins a call: counts it and returns the error it is made to fail with, or GPU_SUCCESS. */
gpu_result call_begin(const char *name);
/* The same for a call that needs a current context, which it sets; also returns the context's
 * fatal error. */
gpu_result call_begin_on(const char *name, gpu_context *context);
/* Ends the process with a message: a call whose effect the vendor leaves undefined. */
_Noreturn void abort_wrong_call(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether the error is one after which the context cannot be used. */
bool result_is_fatal(gpu_result result);
/* Memory that is never NULL. */
void *must_alloc(size_t bytes);
uint64_t now_ns(void);

/* ---- context_hip.c, context_cuda.c ---- */

struct gpu_context_object {
    int device;
    uint32_t n_retained;
    _Atomic gpu_result fatal;
    bool is_failing;        /* is about to have a fatal error: starts no operation (stream.c) */
    _Atomic uint32_t peers; /* a bit for each device whose memory it may access */
};

/* The primary contexts, by device. */
extern struct gpu_context_object contexts[FAKE_MAX_DEVICES];

/* The calling thread's current context; NULL: none. */
gpu_context context_current(void);
void context_setup(struct fake_gpu *control);

/* ---- memory.c ---- */

/* Whether the range lies in one allocation of device or pinned memory. */
bool memory_is_device(uint64_t address, uint64_t bytes);
bool memory_is_pinned(const void *from, uint64_t bytes);
/* Whether it lies in one that the device may access without further ado: its own or a pinned one.
 */
bool memory_is_on(int device, uint64_t address, uint64_t bytes);

/* ---- peer.c ---- */

/* Of a context that is destroyed: it and those that may access its memory do so no more. */
void peer_forget(gpu_context context);

/* ---- module.c ---- */

struct gpu_function_object {
    gpu_module module;
    void (*run)(const uint64_t *params, const uint32_t *group, void *shared);
    uint32_t *dims;        /* NULL, or where the block's and the grid's extents go */
    uint32_t threads;      /* of a block, as compiled; 0: any */
    uint32_t n_words;      /* of parameters; 0: any */
    uint32_t shared_bytes; /* most that a launch may have */
};

/* Frees the module with its last reference. */
void module_ref(gpu_module module);
void module_unref(gpu_module module);
void module_lock(gpu_module module);
void module_unlock(gpu_module module);

#endif
