/* SPDX-License-Identifier: Apache-2.0 */
/* Frit: tensors on any device that a plugin offers, written op by op, run as if fused by hand.
 *
 * Recording.  A call records its op in the stream of the calling thread.  Recorded ops run together
 * where a plugin can fuse them: when no further op can join, and at the latest at frit_read,
 * frit_sync, frit_flush, the end of a scope, or when the stream is long.
 *
 * Errors.  A function that makes a tensor always returns one.  If it fails, the tensor carries the
 * error, ops on it return the same error, and frit_tensor_status and frit_tensor_error report it.
 * Every other function that can fail returns a status and has a frit_err as its last argument: the
 * caller's, which may be NULL and is written only on failure.  Functions that end in `_at` and
 * describe one of several have none: their only failure is an index beyond the last.
 *
 * Ownership.  A new tensor belongs to the calling thread's open scope on its device; without an
 * open scope it belongs to the caller, who releases it with frit_release.  Releasing a handle
 * twice, or using it afterwards, is a reported error, not a crash.
 *
 * Threads.  Any function may be called, and any tensor used, from any thread; a scope belongs to
 * the thread that opened it.  While frit_host_close or frit_device_close runs, no other call may
 * use the object that it closes; closing it a second time does nothing but log an error.  A
 * request to cancel a thread (pthread_cancel) takes effect after the call that the thread is in.
 * Threads of the library leave signals to the program's.
 *
 * Forks.  Devices do not survive a fork: in a child that was forked while a host was open every
 * call fails with FRIT_UNSUPPORTED, or does nothing where it cannot fail, and returns at once.  A
 * child that was forked before frit_host_open, or after the last frit_host_close, is like any
 * process.
 *
 * Sizes are in bytes, dims in elements.  A text returned as `const char *` lives as long as the
 * object it comes from; a text returned as `char *` is the caller's, who frees it with frit_free.
 *
 * Descriptions (structs that begin with `struct_size`).  The caller sets struct_size to the sizeof
 * that it was compiled with; the library reads and writes no more than that. */
#ifndef FRIT_FRIT_H
#define FRIT_FRIT_H

#include <frit/op.h>
#include <frit/status.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* until the end, ops.h included */
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define FRIT_VERSION "0.1.0"

typedef struct frit_host frit_host;
typedef struct frit_device frit_device;
typedef struct frit_stream frit_stream;
typedef struct frit_tensor frit_tensor;
typedef struct frit_graph frit_graph;
typedef struct frit_safetensors frit_safetensors;
typedef struct frit_npz frit_npz;

/* Version of the library at run time, such as "0.1.0"; FRIT_VERSION is that of this header. */
const char *frit_version(void);
/* The name of a status, such as "invalid". */
const char *frit_status_name(frit_status status);
/* Frees a text that a function of Frit returned as `char *`.  NULL does nothing. */
void frit_free(char *text);
/* The name of an element type, such as "f32". */
const char *frit_dtype_name(uint32_t dtype);
/* The element type of that name; FRIT_NO_DTYPE if there is none. */
uint32_t frit_dtype_of_name(const char *name);

/* ---- list arguments: FRIT_SHAPE(500, 64), FRIT_AXES(1), FRIT_SLICES({0, 4, 1}, {0}) ---- */

#ifndef __cplusplus
#define FRIT_COUNT_OF(type, ...) ((int64_t)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))
#define FRIT_SHAPE(...)          ((frit_dims){FRIT_COUNT_OF(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define FRIT_AXES(...)           ((frit_axes){FRIT_COUNT_OF(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define FRIT_SLICES(...)         ((frit_slices){FRIT_COUNT_OF(frit_range, __VA_ARGS__), {__VA_ARGS__}})
#define FRIT_RANK0               ((frit_dims){0, {0}})
#else
} /* extern "C" */
template <typename... T> inline frit_dims frit_shape_of(T... dims)
{
    static_assert(sizeof...(dims) <= FRIT_MAX_RANK, "at most 8 dims");
    return frit_dims{static_cast<int64_t>(sizeof...(dims)), {static_cast<int64_t>(dims)...}};
}
template <typename... T> inline frit_axes frit_axes_of(T... axes)
{
    static_assert(sizeof...(axes) <= FRIT_MAX_RANK, "at most 8 axes");
    return frit_axes{static_cast<int64_t>(sizeof...(axes)), {static_cast<int64_t>(axes)...}};
}
template <int64_t N> inline frit_slices frit_slices_of(const frit_range (&ranges)[N])
{
    static_assert(N <= FRIT_MAX_RANK, "at most 8 dims");
    frit_slices slices{N, {}};
    for (int64_t i = 0; i < N; i++)
        slices.dim[i] = ranges[i];
    return slices;
}
#define FRIT_SHAPE(...)  frit_shape_of(__VA_ARGS__)
#define FRIT_AXES(...)   frit_axes_of(__VA_ARGS__)
#define FRIT_SLICES(...) frit_slices_of({__VA_ARGS__})
#define FRIT_RANK0       frit_shape_of()
extern "C" {
#endif

/* ---- hosts and devices ---- */

/* A configuration value set by the program; it overrides the environment and files. */
typedef struct frit_setting {
    const char *section; /* "frit", "memory", "plugin.reference" ... as in the file */
    const char *key;
    const char *value;
} frit_setting;

typedef struct frit_host_params {
    uint64_t struct_size; /* sizeof(frit_host_params) */
    const frit_setting *settings;
    uint64_t n_settings;
    /* Receives log lines, from any thread; NULL: they go to standard error.  There is one per
     * process.  `level`: FRIT_LOG_* of <frit/host.h>. */
    void (*log)(void *ctx, uint32_t level, const char *topic, const char *text);
    void *log_ctx;
} frit_host_params;

/* Reads the configuration and finds plugins.  `params` NULL: all defaults.  A plugin that cannot be
 * loaded makes the call fail only if its section has `critical = yes`. */
FRIT_NODISCARD frit_status frit_host_open(const frit_host_params *params, frit_host **out,
                                          frit_err *err);
/* Closes the host and its open devices; their tensors are stale afterwards.  NULL does nothing. */
void frit_host_close(frit_host *host);

/* Opens the first usable device of a list such as "vulkan:0, cpu"; `name` NULL: the list of the
 * option [frit] device.  Opening a device twice returns the same one; each open needs a close. */
FRIT_NODISCARD frit_status frit_device_open(frit_host *host, const char *name, frit_device **out,
                                            frit_err *err);
/* An object of the program that a driver uses instead of creating one. */
typedef struct frit_native {
    const char *name; /* from the README of the driver, such as "vk.device" */
    void *object;     /* stays valid until the device is closed */
} frit_native;

typedef struct frit_device_options {
    uint64_t struct_size; /* sizeof(frit_device_options) */
    const frit_native *natives;
    uint64_t n_natives;
} frit_device_options;

/* frit_device_open with options (NULL: none).  A device with natives is never shared: no other open
 * returns it.  FRIT_UNSUPPORTED if the driver does not support one of the natives. */
FRIT_NODISCARD frit_status frit_device_open_with(frit_host *host, const char *name,
                                                 const frit_device_options *options,
                                                 frit_device **out, frit_err *err);
/* The close of the last open ends the device; its tensors are stale afterwards.  NULL does nothing.
 */
void frit_device_close(frit_device *device);
/* Such as "reference:0". */
const char *frit_device_name(const frit_device *device);
/* How the device supports an element type: FRIT_DTYPE_* of <frit/backend.h> (STORAGE: it holds
 * tensors of it; ARITHMETIC: ops compute with it; ACCELERATED: faster than with f32).  0: not at
 * all, or there is no such type or device. */
uint32_t frit_device_dtype_use(const frit_device *device, uint32_t dtype);

/* A device, usable or not. */
typedef struct frit_device_desc {
    uint64_t struct_size;
    const char *name;   /* "reference:0" */
    const char *label;  /* the device's full name */
    const char *plugin; /* id of its plugin */
    const char *type;   /* "discrete" "accelerator" "integrated" "processor" "software" "unknown" */
    const char *stable_id;
    const char *driver_version;
    const char *runtime_path;
    const char *pci;
    uint64_t memory_bytes;     /* 0: unknown */
    uint64_t caps;             /* FRIT_CAP_* of <frit/backend.h> */
    uint32_t reason;           /* FRIT_REASON_* why it is not usable; 0: it is usable */
    uint32_t is_default;       /* 1: frit_device_open with a NULL name opens it */
    uint64_t cache_bytes;      /* of the last level of cache; 0: unknown */
    uint64_t link_bytes_per_s; /* between host and device memory, each way; 0: as fast as memory */
    uint64_t link_latency_ns;  /* of a small transfer, beside that */
} frit_device_desc;

/* The device at `index` in the order of preference; FRIT_INVALID beyond the last. */
frit_status frit_device_info_at(frit_host *host, uint64_t index, frit_device_desc *out);

/* What runs the kernels of a device. */
typedef struct frit_compute_desc {
    uint64_t struct_size;
    const char *text; /* "LLVM 19", "interpreter: no libLLVM"; "": the driver does not say */
    uint32_t is_slow; /* 1: something that `text` names would make it several times as fast */
    uint32_t reserved;
} frit_compute_desc;

/* For the device at `index` of frit_device_info_at.  The driver may open libraries to find out.
 * FRIT_INVALID beyond the last. */
FRIT_NODISCARD frit_status frit_device_compute(frit_host *host, uint64_t index,
                                               frit_compute_desc *out, frit_err *err);

/* A plugin file that was found, loaded or not. */
typedef struct frit_plugin_desc {
    uint64_t struct_size;
    const char *id; /* "" if unknown */
    const char *path;
    const char *version;
    const char *origin; /* where it was found: search directory, file:line, environment */
    uint32_t reason;    /* FRIT_REASON_* why it was not loaded; 0: it is loaded */
    uint32_t n_devices;
    const char *reason_name; /* "abi-mismatch" */
    const char *detail;      /* the reason in words; may be "" */
    /* Whether it was tried in a process of its own before it was loaded: "trusted" (built with this
     * library, not tried), "now", "earlier" (the result was kept), "no" */
    const char *probe;
} frit_plugin_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_plugin_at(frit_host *host, uint64_t index, frit_plugin_desc *out);

/* Explains why `name` (a device, driver or plugin) is usable or not, one line per finding.  `*text`
 * is the caller's: frit_free. */
FRIT_NODISCARD frit_status frit_why(frit_host *host, const char *name, char **text, frit_err *err);

/* A plugin that two processes died in is not loaded (FRIT_REASON_DIED).  Forgets these deaths of
 * every plugin of this id or file name; hosts that are opened later load it again.  FRIT_INVALID:
 * there is no such plugin, or no process died in it. */
FRIT_NODISCARD frit_status frit_forgive(frit_host *host, const char *name, frit_err *err);

/* One effective configuration value and where it came from. */
typedef struct frit_config_desc {
    uint64_t struct_size;
    const char *section;
    const char *key;
    const char *value;
    /* "built in", "environment FRIT_DEVICE", "/etc/frit/frit.ini:12" or "program" */
    const char *origin;
} frit_config_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_config_at(frit_host *host, uint64_t index, frit_config_desc *out);

/* How a device runs an op. */
enum {
    FRIT_SUPPORT_NONE = 0,
    FRIT_SUPPORT_NATIVE = 1,
    FRIT_SUPPORT_DECOMPOSED = 2, /* as the core ops it consists of */
    FRIT_SUPPORT_HOST = 3,       /* views and collectives: the host does it */
    FRIT_SUPPORT_FALLBACK = 4    /* on another device, in whole or in part */
};
/* FRIT_SUPPORT_* for operands of f32 (or the first type that the op takes) and rank 2.  DECOMPOSED
 * does not say how the core ops run; frit_graph_support does. */
uint32_t frit_op_support(frit_device *device, uint32_t op);

/* Runs the recorded ops of the calling thread's stream and waits for them.  Returns the first error
 * of the stream since the last frit_sync, and clears it. */
frit_status frit_sync(frit_device *device, frit_err *err);
/* frit_sync for all streams of the device. */
frit_status frit_sync_all(frit_device *device, frit_err *err);
/* Runs the recorded ops of the calling thread's stream without waiting for them. */
frit_status frit_flush(frit_device *device, frit_err *err);
/* Seeds the random ops of all devices of the host, open now or later; the default is the option
 * [frit] seed.  Every stream starts its random sequence anew. */
void frit_seed(frit_host *host, uint64_t seed);
/* frit_seed for one device.  Two devices with the same seed draw the same numbers. */
void frit_device_seed(frit_device *device, uint64_t seed);

/* ---- streams ---- */

/* Each thread has a stream of its own on each device; a program can open further ones.  Ops of one
 * stream run in order, streams run independently; a tensor can be used in any stream.  Ops with
 * effects (FRIT_OP_ORDERED) of a device run one after the other, in the order in which their
 * streams submit them.  With the
 * option [stream] single = yes all threads share one stream and none can be opened. */

/* Opens a stream; no thread records into it yet. */
FRIT_NODISCARD frit_status frit_stream_open(frit_device *device, frit_stream **out, frit_err *err);
/* From now on the calling thread records into `stream` (NULL: its own stream) on the device.  Runs
 * nothing.  `before` (may be NULL) receives the stream that the thread recorded into, NULL for its
 * own.  FRIT_BUSY while another thread records into `stream`. */
frit_status frit_stream_enter(frit_device *device, frit_stream *stream, frit_stream **before,
                              frit_err *err);
/* Runs the recorded ops without waiting, and closes the stream; its tensors stay valid.  FRIT_BUSY
 * while a thread records into it.  NULL does nothing.  frit_device_close closes all streams. */
frit_status frit_stream_close(frit_stream *stream, frit_err *err);

/* ---- groups ---- */

/* A group is a set of ranks whose values all_reduce combines.  A rank is a stream, in this process
 * or in another one, on the same device or on different ones; ranks communicate through an engine,
 * a plugin with frit.collective/1.  All ranks record the same all_reduce ops in the same order;
 * each runs once, at its place in the stream, even if its result is not used.
 *
 * An all_reduce runs beside its stream: what needs its result waits, all else goes on.  If one
 * thread runs two ranks, it flushes both before it reads from either, else the op fails with
 * FRIT_TIMEOUT.
 *
 * The first failure ends the group on all ranks: FRIT_PEER_LOST, FRIT_MISMATCH (the ranks recorded
 * different ops), FRIT_ABORTED or FRIT_TIMEOUT.  The op's result carries the error; later ops of
 * the group fail at once.  If an op cannot be recorded or run on one rank, because its operand has
 * failed or memory is short, the group is aborted.  After a failure leave the group and join a new
 * one. */
typedef struct frit_rank frit_rank;

typedef struct frit_group_config {
    uint64_t struct_size;    /* sizeof(frit_group_config) */
    const char *engine;      /* id of the plugin; NULL: the first one that has an engine */
    const char *name;        /* for error texts, at most 47 bytes; NULL: "group" */
    const frit_group_id *id; /* the same on all ranks; NULL: size is 1, or the ranks are the
                              * processes of the job, which join such groups in the same order */
    uint64_t number;         /* attribute `group` of the ops; unique in the stream */
    uint32_t rank, size;     /* rank 0..size-1, each used once; size is the same on all ranks */
    uint64_t join_ns;        /* time limit of frit_group_join; 0: 30 s */
    uint64_t op_ns;          /* time limit of an op; 0: 60 s, UINT64_MAX: none */
} frit_group_config;

/* This process among those that a launcher started together: [dist] rank, size and store of the
 * configuration, which mpirun, srun, torchrun and `frit launch` set by variables of theirs.
 *
 * If there is a store, the first group without an id makes the process a member of the job:
 * frit_group_join waits until all ranks have come, and fails with FRIT_TIMEOUT (the text lists the
 * missing ones), FRIT_MISMATCH (they run different programs) or FRIT_INVALID (the token is wrong).
 * From then on the loss of a rank ends such groups on all others with FRIT_PEER_LOST; the text
 * names the rank, its host and process, and what it was doing.  The next frit_group_join waits
 * until all ranks that are left have called it.  If ranks were lost it fails with FRIT_PEER_LOST
 * once, and frit_job_info gives the new rank and size, with which it can be called again. */
typedef struct frit_job_desc {
    uint64_t struct_size;
    uint32_t rank, size; /* 0 of 1: it was started by itself */
    const char *store;   /* "tcp://HOST:PORT"; NULL: none.  Lives as long as the host */
} frit_job_desc;

/* FRIT_INVALID for a rank that is not below the size. */
frit_status frit_job_info(frit_host *host, frit_job_desc *out, frit_err *err);

/* Makes a unique id.  The program makes it once and passes it to all ranks. */
frit_status frit_group_id_create(frit_host *host, const char *engine, frit_group_id *out,
                                 frit_err *err);
/* Makes the calling thread's stream a rank.  Returns when all ranks have called it; the text of
 * FRIT_TIMEOUT names the missing ranks. */
FRIT_NODISCARD frit_status frit_group_join(frit_device *device, const frit_group_config *config,
                                           frit_rank **out, frit_err *err);
/* Runs the recorded ops of the rank's stream and leaves the group; `rank` is invalid afterwards
 * unless the call fails.  Ops of other ranks that still need this one fail with FRIT_PEER_LOST.
 * frit_device_close aborts the groups of ranks that have not left.  NULL does nothing. */
frit_status frit_group_leave(frit_rank *rank, frit_err *err);
/* Runs the recorded ops of the rank's stream, and returns when all ranks have called it and their
 * operations before it have ended.  FRIT_TIMEOUT after the group's op_ns. */
FRIT_NODISCARD frit_status frit_group_barrier(frit_rank *rank, frit_err *err);
/* Ends the group on all ranks with FRIT_ABORTED and this text, and wakes those that wait.  May be
 * called from any thread, but not during frit_group_leave of the same rank. */
frit_status frit_group_abort(frit_rank *rank, const char *why);

/* ---- tensors from and to the program ---- */

/* A tensor with a copy of `data`; `bytes` must be the size of the dense tensor.  In a bool's byte
 * any value but 0 is true, here and wherever elements come from the program; a tensor has 1. */
frit_tensor *frit_from_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes);
/* Packed values (types.h, dtypes.def), for frit_dequantize, are made of bytes too.  Their tensors
 * are dense: element i, in row-major order over all dims, has the bits from i * bits on, and byte b
 * holds the bits from 8 * b on, low bits first, so that elements of 4 bits are the low half of
 * their byte, then the high half.  Rows do not begin at bytes of their own: q4 [3, 5] has 15
 * elements in 8 bytes.  Bits beyond the last element have no meaning, and are read back as they
 * were.  q8, q4 and q2 are two's complement (q4: -8..7); float types have the sign in their highest
 * bit.  Bytes hold no scales: these are a tensor of their own, row-major with an element for each
 * block, ceil(extent / block extent) along each dim; the values of block (i, j, ..) of `block`
 * [a, b, ..] are those at coordinates i * a .. i * a + a - 1, j * b .., cut off at the end. */

/* The bytes of a tensor with elements of 8 bits as packed values of this type, in the same memory
 * if the tensor is dense; its number of bytes must be theirs.  Waits for the value.  So are packed
 * values loaded from NumPy and safetensors files, where they are u8. */
frit_tensor *frit_as_packed(frit_tensor *bytes, uint32_t dtype, frit_dims dims);
/* A tensor in the program's own memory where the device can read it, else with a copy.  The program
 * must not change the memory until `release(ctx)` is called: exactly once, also on failure, from
 * any thread.  `release` must not call Frit; NULL: the memory stays unchanged until
 * frit_device_close.
 *
 * A device that computes in host memory uses `data` in place if it is aligned (64 bytes are enough
 * for the drivers of Frit).  `release` is then called when no tensor, view or pending op uses the
 * memory any more; Frit notices this in a later call on the device, at the latest in frit_sync_all
 * or frit_device_close.  Otherwise the elements are copied, and `release` is called before the
 * function returns.  The counter bytes_adopted (inspect.h) counts the bytes used in place.  Frit
 * never writes to the program's memory: frit_write moves the tensor to other memory. */
frit_tensor *frit_wrap_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes, void (*release)(void *ctx), void *ctx);
/* Reads a NumPy file: versions 1 to 3 of the format, C or Fortran order, little endian; with a path
 * "ARCHIVE.npz:NAME" a tensor of an archive. */
frit_tensor *frit_load_npy(frit_device *device, const char *path);
/* NumPy has no packed types: their bytes are saved, as u8 of rank 1, for frit_as_packed. */
FRIT_NODISCARD frit_status frit_save_npy(frit_tensor *tensor, const char *path, frit_err *err);

/* Opens a safetensors file: tensors with names, and texts with keys ("metadata").  The header is
 * checked as a whole, also against the size of the file; FRIT_INVALID: it is damaged;
 * FRIT_UNSUPPORTED: an element type or a rank that Frit does not have.
 *
 * The elements are mapped, not read: until the file is closed and no tensor of it uses the map any
 * more, nobody may change or truncate it in place; that another file takes its name, as
 * frit_save_safetensors does it, is no harm. */
FRIT_NODISCARD frit_status frit_load_safetensors(const char *path, frit_safetensors **out,
                                                 frit_err *err);
/* Closes the file; its tensors stay valid.  NULL does nothing. */
void frit_safetensors_free(frit_safetensors *file);

typedef struct frit_safetensor_desc {
    uint64_t struct_size; /* sizeof(frit_safetensor_desc) */
    const char *name;
    uint64_t bytes; /* of its elements */
    uint32_t dtype;
    uint32_t reserved;
    frit_dims dims;
} frit_safetensor_desc;

typedef struct frit_metadata {
    const char *key;
    const char *value;
} frit_metadata;

uint64_t frit_safetensors_count(const frit_safetensors *file);
/* Tensors and metadata in the order of the file's header; FRIT_INVALID beyond the last. */
frit_status frit_safetensors_at(const frit_safetensors *file, uint64_t index,
                                frit_safetensor_desc *out);
frit_status frit_safetensors_metadata_at(const frit_safetensors *file, uint64_t index,
                                         frit_metadata *out);
/* The text of a key; NULL if there is none. */
const char *frit_safetensors_metadata(const frit_safetensors *file, const char *key);
/* A tensor of the file, in the mapped memory where the device can read it, else with a copy: as
 * frit_wrap_host does it.  Tensors of floats of 8 bits are packed values, for frit_dequantize. */
frit_tensor *frit_safetensors_tensor(const frit_safetensors *file, frit_device *device,
                                     const char *name);

typedef struct frit_named_tensor {
    frit_tensor *tensor;
    const char *name; /* UTF-8 */
} frit_named_tensor;

/* Writes a safetensors file, in which tensors and metadata have the order of the arrays; names
 * differ, and so do keys.  The file has either its old or its complete new contents.  Packed values
 * of types that the format does not have (all but floats of 8 bits) are saved as their bytes, U8
 * of rank 1, for frit_as_packed. */
FRIT_NODISCARD frit_status frit_save_safetensors(const frit_named_tensor *tensors, uint64_t count,
                                                 const frit_metadata *metadata, uint64_t n_metadata,
                                                 const char *path, frit_err *err);

/* Opens a NumPy archive (.npz): tensors with names, stored or deflated.  Other entries than `.npy`
 * are passed over.  The headers of all tensors are checked, also against the size of the file;
 * FRIT_INVALID: it is damaged; FRIT_UNSUPPORTED: encrypted, or an element type or a rank that Frit
 * does not have. */
FRIT_NODISCARD frit_status frit_load_npz(const char *path, frit_npz **out, frit_err *err);
/* Closes the file; its tensors stay valid.  NULL does nothing. */
void frit_npz_free(frit_npz *npz);

typedef struct frit_npz_desc {
    uint64_t struct_size; /* sizeof(frit_npz_desc) */
    const char *name;     /* without .npy */
    uint64_t bytes;       /* of its elements */
    uint32_t dtype;
    uint32_t reserved;
    frit_dims dims;
} frit_npz_desc;

uint64_t frit_npz_count(const frit_npz *npz);
/* In the order of the file; FRIT_INVALID beyond the last. */
frit_status frit_npz_at(const frit_npz *npz, uint64_t index, frit_npz_desc *out);
/* Reads a tensor of the file, and compares it with its checksum. */
frit_tensor *frit_npz_tensor(const frit_npz *npz, frit_device *device, const char *name);
/* Writes a NumPy archive, stored; names differ.  The file has either its old or its complete new
 * contents.  Packed values are saved as by frit_save_npy. */
FRIT_NODISCARD frit_status frit_save_npz(const frit_named_tensor *tensors, uint64_t count,
                                         const char *path, frit_err *err);

/* Waits for the value and copies its elements, dense and row-major; `bytes` must be their size.  If
 * the value itself has failed, frit_tensor_error has the text too. */
FRIT_NODISCARD frit_status frit_read(frit_tensor *tensor, void *data, uint64_t bytes,
                                     frit_err *err);

typedef struct frit_read_item {
    frit_tensor *tensor;
    void *data;
    uint64_t bytes;
    frit_status status; /* result of this item */
    uint32_t reserved;
} frit_read_item;

/* Several reads with one wait.  Returns the first failure; each item has its own status. */
FRIT_NODISCARD frit_status frit_read_many(frit_read_item *items, uint64_t count, frit_err *err);
/* Replaces the elements.  Views of the tensor and ops recorded earlier keep the old ones. */
FRIT_NODISCARD frit_status frit_write(frit_tensor *tensor, const void *data, uint64_t bytes,
                                      frit_err *err);

typedef struct frit_write_item {
    frit_tensor *tensor;
    const void *data;
    uint64_t bytes;
    frit_status status; /* result of this item */
    uint32_t reserved;
} frit_write_item;

/* Several writes in order, in as few submits as the device allows.  Returns the first failure; each
 * item has its own status, and a tensor whose write failed keeps its elements. */
FRIT_NODISCARD frit_status frit_write_many(frit_write_item *items, uint64_t count, frit_err *err);
/* A copy of the tensor on `device`, which may be its own. */
frit_tensor *frit_to_device(frit_tensor *tensor, frit_device *device);

/* ---- lifetime ---- */

/* A scope of one thread on one device; scopes nest. */
typedef struct frit_scope {
    frit_device *device;
    uint64_t depth;
} frit_scope;

/* From now on new tensors of the calling thread on the device belong to the scope. */
frit_scope frit_scope_begin(frit_device *device);
/* Releases the scope's tensors except those kept, and runs the recorded ops without waiting.  Ends
 * inner scopes that are still open.  End the scope before you read: a tensor that is still owned
 * has to be stored in memory, which fusion otherwise avoids. */
void frit_scope_end(frit_scope scope);
/* Moves the tensor to the enclosing scope, or to the caller if there is none; returns it. */
frit_tensor *frit_keep(frit_tensor *tensor);

/* Drops one reference; dropping the last one ends the handle.  NULL does nothing. */
void frit_release(frit_tensor *tensor);
/* Adds a reference, to be released as well; returns the same handle. */
frit_tensor *frit_ref(frit_tensor *tensor);
/* Marks an operand to be released by the call that takes it: `f(frit_take(a))` is f(a) followed by
 * frit_release(a), even if f fails.  An operand that occurs twice is released once. */
frit_tensor *frit_take(frit_tensor *tensor);

/* Between these calls the thread's new tensors on the device get allocations of exactly their size,
 * which pools neither split nor free until the device is closed: for weights.  Calls nest. */
void frit_persistent_begin(frit_device *device);
void frit_persistent_end(frit_device *device);

/* Between these calls the ops that the thread records, on any device, are computed by candidates of
 * this class (FRIT_NUMERIC_*) or a stricter one: kernels that differ more from a program's first
 * one are not used, however fast they are.  Calls nest; the strictest class of those that are open
 * and of option [fusion] numeric holds.  Ops that run together are computed within the strictest
 * class of any of them.  FRIT_INVALID, and nothing is opened: there is no such class. */
FRIT_NODISCARD frit_status frit_numeric_begin(uint32_t numeric_class, frit_err *err);
/* FRIT_INVALID: the thread has opened none that is still open. */
frit_status frit_numeric_end(frit_err *err);

/* Frees the device memory that pools hold but nothing uses. */
void frit_trim(frit_device *device);

/* ---- properties of tensors ---- */

/* The tensor's error; FRIT_OK if none is known yet.  Does not wait. */
frit_status frit_tensor_status(frit_tensor *tensor);
/* Its text, "" if there is none; lives as long as the tensor. */
const char *frit_tensor_error(frit_tensor *tensor);
uint32_t frit_tensor_dtype(frit_tensor *tensor); /* FRIT_NO_DTYPE on an error tensor */
frit_dims frit_tensor_dims(frit_tensor *tensor);
/* Strides in elements as stored; runs the ops that make the tensor. */
FRIT_NODISCARD frit_status frit_tensor_strides(frit_tensor *tensor, frit_dims *out, frit_err *err);
frit_device *frit_tensor_device(frit_tensor *tensor); /* NULL on an error tensor without a device */
uint64_t frit_tensor_bytes(frit_tensor *tensor);      /* size of the dense tensor, for frit_read */

/* ---- ops ---- */

/* An operand of frit_op: a tensor; or a scalar, if `tensor` is NULL and `scalar.kind` is set; or
 * absent, if both are zero. */
typedef struct frit_input {
    frit_tensor *tensor;
    frit_scalar scalar;
} frit_input;

typedef struct frit_call {
    uint64_t struct_size;
    uint32_t op; /* FRIT_OP_*, or the number of a custom op */
    uint32_t n_in;
    const frit_input *in;
    const void *attrs; /* frit_attrs_<record> with struct_size set; NULL: all defaults */
} frit_call;

/* Runs any op by its number.  Writes `n_outputs` tensors, also on failure; optional outputs (XOUT)
 * are computed only if `n_outputs` includes them.  `device` may be NULL if an operand is a tensor.
 */
void frit_op(frit_device *device, const frit_call *call, frit_tensor **outputs, uint64_t n_outputs);

/* An attribute by name: a number (FLAG: 0 or 1, DTYPE: FRIT_F32 and so on), or if `list` is not
 * NULL the numbers of AXES, DIMS or VEC, or of SLICES as {start, stop, step} per dim. */
typedef struct frit_attr {
    const char *name;
    frit_scalar value;
    const int64_t *list;
    uint64_t n_list;
} frit_attr;

typedef struct frit_named_call {
    uint64_t struct_size;
    const char *name; /* an op ("add") or a custom op of a plugin ("org.example.op/1") */
    const frit_input *in;
    uint64_t n_in;
    const frit_attr *attrs;
    uint64_t n_attrs;
} frit_named_call;

/* Runs an op by name, with its attributes by name; this is how custom ops are called.  frit_sync
 * reports the failure of an op without results. */
void frit_op_named(frit_device *device, const frit_named_call *call, frit_tensor **outputs,
                   uint64_t n_outputs);

/* A custom op of a plugin of the host. */
typedef struct frit_custom_desc {
    uint64_t struct_size;
    const char *name;
    const char *plugin; /* id of its plugin */
    const char *meaning;
    uint32_t op; /* its number for frit_call, valid in this process only */
    uint32_t rev;
    uint32_t traits; /* FRIT_OP_ORDERED and so on, see <frit/op.h> */
    uint32_t n_in, n_out, n_attrs;
    uint32_t decomposes; /* 1: has a form in built-in ops, used where no driver implements it */
    uint32_t reserved;
} frit_custom_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_custom_at(frit_host *host, uint64_t index, frit_custom_desc *out);

/* Operands, results and attributes of a custom op; <frit/op.h> explains the codes. */
typedef struct frit_custom_slot_desc {
    uint64_t struct_size;
    const char *name;
    uint32_t role;   /* FRIT_ROLE_* */
    uint32_t letter; /* FRIT_LETTER_* */
} frit_custom_slot_desc;

typedef struct frit_custom_attr_desc {
    uint64_t struct_size;
    const char *name;
    const char *meaning;
    uint32_t type;  /* FRIT_ATTR_* */
    uint32_t place; /* FRIT_PLACE_* */
} frit_custom_attr_desc;

/* Of the op with this number: operands, then results.  FRIT_INVALID beyond the last. */
frit_status frit_custom_slot_at(uint32_t op, uint64_t index, frit_custom_slot_desc *out);
frit_status frit_custom_attr_at(uint32_t op, uint64_t index, frit_custom_attr_desc *out);

frit_scalar frit_scalar_f(double value);
frit_scalar frit_scalar_i(int64_t value);
frit_scalar frit_scalar_u(uint64_t value);

/* ---- text programs and models ---- */

/* Reads a program: an ONNX model where the name ends with .onnx, else a text program.  The text of
 * an error begins with file:line:column, or with the file and names the node. */
FRIT_NODISCARD frit_status frit_graph_load(const char *path, frit_graph **out, frit_err *err);
FRIT_NODISCARD frit_status frit_graph_parse(const char *name, const char *text, uint64_t length,
                                            frit_graph **out, frit_err *err);
void frit_graph_free(frit_graph *graph);

typedef struct frit_port {
    uint64_t struct_size;
    const char *name;
    const char *file; /* inputs: path of the default file, relative ones resolved; or NULL, and then
                       * the elements of a constant are in the program: frit_graph_default */
    uint32_t dtype;   /* FRIT_NO_DTYPE: any, or not bound yet */
    uint32_t is_const;
    frit_dims dims;   /* -1: not bound yet */
    const void *data; /* inputs of models, for frit_graph_bind: dense elements where they are known,
                       * else NULL.  Those of short lists are used where a shape depends on them,
                       * and the graph must then run with the same */
} frit_port;

/* Inputs and constants in the order of the program; FRIT_INVALID beyond the last. */
frit_status frit_graph_input_at(const frit_graph *graph, uint64_t index, frit_port *out);
/* The value that the program itself gives to an input or constant: that of its file, or the
 * elements that stand in the text.  A tensor with an error where there is none. */
frit_tensor *frit_graph_default(const frit_graph *graph, uint64_t index, frit_device *device);
/* Outputs, after frit_graph_bind; FRIT_INVALID beyond the last. */
frit_status frit_graph_output_at(const frit_graph *graph, uint64_t index, frit_port *out);
uint64_t frit_graph_op_count(const frit_graph *graph);

/* Binds dtype and dims of the inputs, one port per input, and checks every op.  Where a port has
 * dtype FRIT_NO_DTYPE, an input without a declared type takes the type of its file, and unbound
 * dims become 2.  May be called again. */
FRIT_NODISCARD frit_status frit_graph_bind(frit_graph *graph, const frit_port *ports,
                                           uint64_t count, frit_err *err);
/* All that kept a model from being bound the last time, a line for each node; the caller's:
 * frit_free.  NULL: no more than the error said. */
char *frit_graph_problems(const frit_graph *graph);
/* Records all ops in one scope.  The first run puts a model's weights, and what ops make of them
 * alone, on the device, until the graph is bound again or freed, which comes before the device is
 * closed. `inputs`: one tensor per input, with dims as bound.  Writes one tensor per output, owned
 * by the caller; failures of ops are in the outputs. */
FRIT_NODISCARD frit_status frit_graph_run(const frit_graph *graph, frit_device *device,
                                          frit_tensor *const *inputs, uint64_t n_inputs,
                                          frit_tensor **outputs, uint64_t n_outputs, frit_err *err);
/* How the device would run the bound graph: FRIT_SUPPORT_* of its least supported op.  Runs and
 * compiles nothing. */
uint32_t frit_graph_support(const frit_graph *graph, frit_device *device);
/* The bound graph as text, the caller's: frit_free.  NULL if memory is short. */
char *frit_graph_print(const frit_graph *graph);
/* Writes a bound model as a text program, FOLDER/NAME.frit, with its constants beside it in NumPy
 * files; makes the folder where it is not there.  The program has the dims that the model is bound
 * to. */
FRIT_NODISCARD frit_status frit_graph_save(const frit_graph *graph, const char *folder,
                                           frit_err *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include <frit/ops.h>

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
