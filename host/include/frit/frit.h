/* SPDX-License-Identifier: Apache-2.0 */
/* Frit: tensors on whatever device a plugin offers, written op by op, run as if fused by hand.
 *
 * Calls are recorded and run together where a plugin can: once no further op could join, and at the
 * latest at frit_read, frit_sync, frit_flush, at the end of a scope, or when a queue is long. Every
 * function that makes a tensor returns one, also when it fails: then the tensor carries the error,
 * further ops on it return it unchanged, and frit_tensor_status tells.
 *
 * Ownership.  A new tensor belongs to the open scope of the calling thread on its device, or
 * without one to the caller, who ends it with frit_release.  Ending a handle twice, or using it
 * afterwards, is an error that is reported, not a crash.
 *
 * Threads.  Any function may be called from any thread and a tensor used from any thread; scopes
 * belong to the thread that opened them.  Only frit_host_close and frit_device_close want to be
 * alone with what they close.
 *
 * Errors.  A function that can fail otherwise returns a status and takes a frit_err as its last
 * argument: the caller's, which may be NULL and is written only on failure.
 *
 * Sizes are in bytes, dims in elements.  Texts that are returned as `const char *` live as long as
 * the object they come from; those returned as `char *` are the caller's, who ends them with
 * frit_free. */
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

/* "0.1.0": of the library that runs, where FRIT_VERSION is of the header that was compiled. */
const char *frit_version(void);
/* "invalid" and so on. */
const char *frit_status_name(frit_status status);
/* Ends a text that a function of Frit returned as `char *`.  NULL does nothing. */
void frit_free(char *text);
/* "f32" and so on; FRIT_NO_DTYPE for a name that is none. */
const char *frit_dtype_name(uint32_t dtype);
uint32_t frit_dtype_of_name(const char *name);

/* ---- lists in the calling style: FRIT_SHAPE(500, 64), FRIT_SLICES({0, 4, 1}, {0}) ---- */

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

/* One configuration value given by the program; beats environment and files. */
typedef struct frit_setting {
    const char *section; /* "frit", "memory", "plugin.reference" ... as in the file */
    const char *key;
    const char *value;
} frit_setting;

typedef struct frit_host_params {
    uint64_t struct_size; /* sizeof(frit_host_params) */
    const frit_setting *settings;
    uint64_t n_settings;
    /* Where log lines go; NULL: standard error.  Per process, any thread.  Levels are FRIT_LOG_* of
     * host.h. */
    void (*log)(void *ctx, uint32_t level, const char *topic, const char *text);
    void *log_ctx;
} frit_host_params;

/* Reads the configuration and finds plugins.  NULL params: all defaults.  A plugin that fails is
 * not a failure here unless its section says `critical = yes`. */
FRIT_NODISCARD frit_status frit_host_open(const frit_host_params *params, frit_host **out,
                                          frit_err *err);
/* Closes devices still open; all their tensors are stale afterwards.  Neither the host nor a device
 * of it is used any more.  NULL does nothing. */
void frit_host_close(frit_host *host);

/* `name`: a list as in the configuration ("vulkan:0, cpu"; first usable wins), NULL: what the
 * configuration says.  Opening a device twice gives the same one; each open wants its close. */
FRIT_NODISCARD frit_status frit_device_open(frit_host *host, const char *name, frit_device **out,
                                            frit_err *err);
/* An object of the program that a driver is to use in place of one of its own. */
typedef struct frit_native {
    const char *name; /* that the driver's README gives, such as "vk.device" */
    void *object;     /* lives until the device is closed */
} frit_native;

typedef struct frit_device_options {
    uint64_t struct_size; /* sizeof(frit_device_options) */
    const frit_native *natives;
    uint64_t n_natives;
} frit_device_options;

/* The same with options; NULL: none.  A device with natives is one of its own, which no other open
 * gives, and ends with its close.  FRIT_UNSUPPORTED where its driver does not know one of them. */
FRIT_NODISCARD frit_status frit_device_open_with(frit_host *host, const char *name,
                                                 const frit_device_options *options,
                                                 frit_device **out, frit_err *err);
/* The last close ends the device, which is not used any more; its tensors are stale afterwards.
 * NULL does nothing. */
void frit_device_close(frit_device *device);
/* "reference:0". */
const char *frit_device_name(const frit_device *device);
/* What the device does with an element type: FRIT_DTYPE_* of backend.h (STORAGE: tensors of it;
 * ARITHMETIC: rows compute with it; ACCELERATED: faster than with f32).  0: nothing, or there is no
 * such type or device. */
uint32_t frit_device_dtype_use(const frit_device *device, uint32_t dtype);

/* A device that was found, usable or not. */
typedef struct frit_device_desc {
    uint64_t struct_size;
    const char *name;   /* "reference:0" */
    const char *label;  /* for people */
    const char *plugin; /* id */
    const char *type;   /* "discrete" "accelerator" "integrated" "processor" "software" "unknown" */
    const char *stable_id;
    const char *driver_version;
    const char *runtime_path;
    const char *pci;
    uint64_t memory_bytes; /* 0 = unknown */
    uint64_t caps;         /* FRIT_CAP_* of backend.h */
    uint32_t reason;       /* FRIT_REASON_*; 0 = usable */
    uint32_t is_default;   /* what a NULL name opens */
} frit_device_desc;

/* In the order of preference; FRIT_INVALID beyond the last. */
frit_status frit_device_info_at(frit_host *host, uint64_t index, frit_device_desc *out);

/* A plugin file that was looked at. */
typedef struct frit_plugin_desc {
    uint64_t struct_size;
    const char *id; /* "" while unknown */
    const char *path;
    const char *version;
    const char *origin; /* why it was looked at: search directory, file:line, environment */
    uint32_t reason;    /* FRIT_REASON_*; 0 = loaded */
    uint32_t n_devices;
    const char *reason_name; /* "abi-mismatch" */
    const char *detail;      /* in words, "" if there is nothing to add */
} frit_plugin_desc;

frit_status frit_plugin_at(frit_host *host, uint64_t index, frit_plugin_desc *out);

/* Says in words why `name` (a device, driver or plugin) is usable or not, a line per finding; the
 * text is ended by frit_free. */
FRIT_NODISCARD frit_status frit_why(frit_host *host, const char *name, char **text, frit_err *err);

/* One effective configuration value and where it came from. */
typedef struct frit_config_desc {
    uint64_t struct_size;
    const char *section;
    const char *key;
    const char *value;
    /* "built in", "environment FRIT_DEVICE", "/etc/frit/frit.ini:12" or "program" */
    const char *origin;
} frit_config_desc;

frit_status frit_config_at(frit_host *host, uint64_t index, frit_config_desc *out);

/* How a device runs a row. */
enum {
    FRIT_SUPPORT_NONE = 0,
    FRIT_SUPPORT_NATIVE = 1,
    FRIT_SUPPORT_DECOMPOSED = 2,
    FRIT_SUPPORT_HOST = 3,
    FRIT_SUPPORT_FALLBACK = 4 /* on another device, in whole or in part */
};
/* For f32 (or the row's first type) and rank 2 where it matters; HOST: a view or a collective.
 * DECOMPOSED says nothing of what the op consists of; frit_graph_support does. */
uint32_t frit_op_support(frit_device *device, uint32_t op);

/* Runs what the calling thread queued on the device and waits.  Returns the first error of the
 * thread's calls on it since the last frit_sync, and forgets it. */
frit_status frit_sync(frit_device *device, frit_err *err);
/* The same for all threads' queues. */
frit_status frit_sync_all(frit_device *device, frit_err *err);
/* Runs what the calling thread queued, without waiting. */
frit_status frit_flush(frit_device *device, frit_err *err);
/* Seeds the random rows of all devices of the host, those that are open and those to come; the
 * default is the option [frit] seed.  Each stream's draws begin anew. */
void frit_seed(frit_host *host, uint64_t seed);
/* The same for one device.  Two devices with one seed draw the same numbers. */
void frit_device_seed(frit_device *device, uint64_t seed);

/* ---- streams ---- */

/* Each thread records into a stream of its own per device; a program may have more of them.  Ops
 * of one stream run in order, streams run apart; tensors may be used across streams.  With the
 * option [stream] single = yes there is one stream for all threads, and none can be opened. */

/* A new stream, which no thread has entered. */
FRIT_NODISCARD frit_status frit_stream_open(frit_device *device, frit_stream **out, frit_err *err);
/* From here on the calling thread's new tensors and ops on the device go to `stream`; NULL: to the
 * thread's own.  Nothing is run.  `before` (NULL: not wanted) gets the stream that it was in, to be
 * entered again, NULL for its own.  FRIT_BUSY while another thread is in the stream. */
frit_status frit_stream_enter(frit_device *device, frit_stream *stream, frit_stream **before,
                              frit_err *err);
/* Runs what is queued, without waiting; tensors made in it live on.  FRIT_BUSY while a thread is in
 * it.  NULL does nothing; frit_device_close closes what is still open. */
frit_status frit_stream_close(frit_stream *stream, frit_err *err);

/* ---- groups ---- */

/* What all_reduce combines: the values of a group's ranks, which meet by an engine, a plugin with
 * frit.collective/1.  A rank is a stream: of a thread of this process or of another one, on the
 * same device or on different ones.  Its all_reduce ops run at their places in the stream, each
 * once, also if nobody reads the result; all ranks record the same ones in the same order.
 *
 * An all_reduce waits for the other ranks when its stream runs, so each rank records and runs in a
 * thread of its own: ops that only one thread runs for two ranks, by frit_sync_all or by reading
 * the tensors of both, end with FRIT_TIMEOUT.  A tensor that another rank's stream has not computed
 * yet comes when that stream has run, its all_reduce ops included.
 *
 * The first failure of a group ends it on all ranks: FRIT_PEER_LOST, FRIT_MISMATCH (the ranks
 * recorded different ops), FRIT_ABORTED, FRIT_TIMEOUT.  The op's result carries it, and so does
 * what is made from that; later ops of the group fail at once.  An op that cannot be recorded
 * or run on one rank, since its operand has failed or for lack of memory, aborts the group.  To go
 * on, leave and join anew. */
typedef struct frit_rank frit_rank;

typedef struct frit_group_config {
    uint64_t struct_size;    /* sizeof(frit_group_config) */
    const char *engine;      /* id of its plugin; NULL: the first that offers one */
    const char *name;        /* for texts, up to 47 bytes; NULL: "group" */
    const frit_group_id *id; /* the same on all ranks; NULL where size is 1 */
    uint64_t number;         /* attribute `group` of the ops; one of each per stream */
    uint32_t rank, size;     /* 0..size-1, each once; size is the same on all ranks */
    uint64_t join_ns;        /* until all ranks have come; 0: 30 s */
    uint64_t op_ns;          /* until an op is done on all ranks; 0: 60 s, UINT64_MAX: no limit */
} frit_group_config;

/* An id that no other group has: made once and brought to all ranks by the program. */
frit_status frit_group_id_create(frit_host *host, const char *engine, frit_group_id *out,
                                 frit_err *err);
/* Makes the calling thread's stream on the device a rank.  Each rank calls it; it returns when all
 * have come.  FRIT_TIMEOUT names the missing ones. */
FRIT_NODISCARD frit_status frit_group_join(frit_device *device, const frit_group_config *config,
                                           frit_rank **out, frit_err *err);
/* Runs what is queued in the rank's stream, and leaves.  Other ranks' ops that still need this one
 * fail with FRIT_PEER_LOST.  `rank` is no more, unless the call fails.  NULL does nothing.  Before
 * frit_device_close, which aborts the groups of the ranks that have not left. */
frit_status frit_group_leave(frit_rank *rank, frit_err *err);
/* Ends the group for all its ranks with FRIT_ABORTED and the text, also where they wait.  From any
 * thread, not beside frit_group_leave of the same rank. */
frit_status frit_group_abort(frit_rank *rank, const char *why);

/* ---- tensors from and to the program ---- */

/* Copies `bytes` from `data`; they must be exactly those of the dense tensor. */
frit_tensor *frit_from_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes);
/* Lends memory, which the program leaves as it is until `release(ctx)` is called: once, also on
 * failure, from any thread.  `release` must not call Frit.
 *
 * Where the device computes in the host's memory and `data` is aligned as it wants it (64 bytes are
 * enough for all of ours), the tensor lies in the memory itself, and `release` is called when
 * nothing reads it any more: the last tensor and view in it is gone, and so are the ops that use
 * them, whose end is noticed at a later call of Frit on the device, frit_sync_all or
 * frit_device_close at the latest.  With `release` NULL it is lent until frit_device_close.
 * Elsewhere the elements are copied and `release` is called before the function returns.
 * `bytes_adopted` of frit_stats (inspect.h) counts what lies in program memory.  Nothing that is
 * done with the tensor writes into the program's memory: frit_write gives it other memory. */
frit_tensor *frit_wrap_host(frit_device *device, uint32_t dtype, frit_dims dims, const void *data,
                            uint64_t bytes, void (*release)(void *ctx), void *ctx);
/* Reads a NumPy file: versions 1 to 3 of the format, C or Fortran order, little endian. */
frit_tensor *frit_load_npy(frit_device *device, const char *path);
FRIT_NODISCARD frit_status frit_save_npy(frit_tensor *tensor, const char *path, frit_err *err);

/* Copies the dense row-major elements; `bytes` must be exactly theirs.  Waits for the value.  Where
 * the value itself has failed, frit_tensor_error has the text too. */
FRIT_NODISCARD frit_status frit_read(frit_tensor *tensor, void *data, uint64_t bytes,
                                     frit_err *err);

typedef struct frit_read_item {
    frit_tensor *tensor;
    void *data;
    uint64_t bytes;
    frit_status status; /* written: of this item */
    uint32_t reserved;
} frit_read_item;

/* Several reads with one wait; the first failure is returned, each item has its own. */
FRIT_NODISCARD frit_status frit_read_many(frit_read_item *items, uint64_t count, frit_err *err);
/* Replaces the elements.  Views, and ops recorded before, keep the old ones. */
FRIT_NODISCARD frit_status frit_write(frit_tensor *tensor, const void *data, uint64_t bytes,
                                      frit_err *err);

typedef struct frit_write_item {
    frit_tensor *tensor;
    const void *data;
    uint64_t bytes;
    frit_status status; /* written: of this item */
    uint32_t reserved;
} frit_write_item;

/* Several writes, in order, as if one by one, in as few submits as the device allows; the first
 * failure is returned, each item has its own, and what failed keeps its elements. */
FRIT_NODISCARD frit_status frit_write_many(frit_write_item *items, uint64_t count, frit_err *err);
/* The same values on another device; also where it is the same device. */
frit_tensor *frit_to_device(frit_tensor *tensor, frit_device *device);

/* ---- lifetime ---- */

/* Of one thread on one device; scopes nest. */
typedef struct frit_scope {
    frit_device *device;
    uint64_t depth;
} frit_scope;

/* From here on new tensors of this thread on this device belong to the scope. */
frit_scope frit_scope_begin(frit_device *device);
/* Releases them but for the kept ones and runs what is queued, without waiting.  End the scope
 * before you read: what is still alive must be stored.  Inner scopes still open are ended too. */
void frit_scope_end(frit_scope scope);
/* Moves the tensor to the enclosing scope, or to the caller; returns it. */
frit_tensor *frit_keep(frit_tensor *tensor);

/* Gives back one owner; the last one ends the handle for all threads.  NULL does nothing. */
void frit_release(frit_tensor *tensor);
/* Adds an owner, who must release too; returns the same handle. */
frit_tensor *frit_ref(frit_tensor *tensor);
/* As an operand: the call releases it.  `f(frit_take(a))` is f(a) followed by frit_release(a), also
 * if f fails; an operand that stands twice is released once. */
frit_tensor *frit_take(frit_tensor *tensor);

/* Tensors made in between get device blocks of their own size that pools never split or give back
 * before the device closes, such as weights.  Of the calling thread on one device; nests. */
void frit_persistent_begin(frit_device *device);
void frit_persistent_end(frit_device *device);

/* Frees driver memory that is not in use. */
void frit_trim(frit_device *device);

/* ---- properties of tensors ---- */

/* FRIT_OK while no failure is known; does not wait. */
frit_status frit_tensor_status(frit_tensor *tensor);
/* "" if there is none; lives as long as the tensor. */
const char *frit_tensor_error(frit_tensor *tensor);
uint32_t frit_tensor_dtype(frit_tensor *tensor); /* FRIT_NO_DTYPE on an error tensor */
frit_dims frit_tensor_dims(frit_tensor *tensor);
/* Strides in elements as stored; runs what is queued for it. */
FRIT_NODISCARD frit_status frit_tensor_strides(frit_tensor *tensor, frit_dims *out, frit_err *err);
frit_device *frit_tensor_device(frit_tensor *tensor); /* NULL on an error tensor without a device */
uint64_t frit_tensor_bytes(frit_tensor *tensor); /* of the dense tensor, what frit_read wants */

/* ---- ops ---- */

/* One operand of frit_op: a tensor, or where `tensor` is NULL and the kind is set, a scalar; both
 * empty: absent. */
typedef struct frit_input {
    frit_tensor *tensor;
    frit_scalar scalar;
} frit_input;

typedef struct frit_call {
    uint64_t struct_size;
    uint32_t op; /* FRIT_OP_<row>, or a custom op's number */
    uint32_t n_in;
    const frit_input *in;
    const void *attrs; /* frit_attrs_<record> with struct_size set; NULL: all defaults */
} frit_call;

/* Any row by its number.  `outputs` has room for `n_outputs`; NULL-able rows (XOUT) are computed if
 * there is room.  Each gets a tensor, also on failure.  `device` may be NULL where an operand is a
 * tensor. */
void frit_op(frit_device *device, const frit_call *call, frit_tensor **outputs, uint64_t n_outputs);

/* An attribute by its name: a number, or where `list` is not NULL the numbers of AXES, DIMS, VEC,
 * or of SLICES {start, stop, step} per dim.  A FLAG is 0 or 1, a DTYPE FRIT_F32 and so on. */
typedef struct frit_attr {
    const char *name;
    frit_scalar value;
    const int64_t *list;
    uint64_t n_list;
} frit_attr;

typedef struct frit_named_call {
    uint64_t struct_size;
    const char *name; /* of a row ("add") or of a plugin's custom op ("org.example.op/1") */
    const frit_input *in;
    uint64_t n_in;
    const frit_attr *attrs;
    uint64_t n_attrs;
} frit_named_call;

/* frit_op for an op by its name, with its attributes by theirs: how custom ops are called.  An op
 * without results tells its failure at frit_sync. */
void frit_op_named(frit_device *device, const frit_named_call *call, frit_tensor **outputs,
                   uint64_t n_outputs);

/* A custom op that a plugin of the host offers. */
typedef struct frit_custom_desc {
    uint64_t struct_size;
    const char *name;
    const char *plugin; /* id */
    const char *meaning;
    uint32_t op; /* its number, for frit_call, in this process */
    uint32_t rev;
    uint32_t traits; /* FRIT_OP_ORDERED and so on of op.h */
    uint32_t n_in, n_out, n_attrs;
    uint32_t decomposes; /* 1: runs as rows of the table where no driver claims it */
    uint32_t reserved;
} frit_custom_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_custom_at(frit_host *host, uint64_t index, frit_custom_desc *out);

/* An operand or a result of a custom op, and an attribute of it.  What the codes mean stands in
 * op.h. */
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

/* By the op's number; operands first, then results.  FRIT_INVALID beyond the last. */
frit_status frit_custom_slot_at(uint32_t op, uint64_t index, frit_custom_slot_desc *out);
frit_status frit_custom_attr_at(uint32_t op, uint64_t index, frit_custom_attr_desc *out);

frit_scalar frit_scalar_f(double value);
frit_scalar frit_scalar_i(int64_t value);
frit_scalar frit_scalar_u(uint64_t value);

/* ---- text programs ---- */

/* A text program with known dims.  `err` may be NULL; its text begins with file:line:column. */
FRIT_NODISCARD frit_status frit_graph_load(const char *path, frit_graph **out, frit_err *err);
FRIT_NODISCARD frit_status frit_graph_parse(const char *name, const char *text, uint64_t length,
                                            frit_graph **out, frit_err *err);
void frit_graph_free(frit_graph *graph);

typedef struct frit_port {
    uint64_t struct_size;
    const char *name;
    const char *file; /* inputs: the default file's path, resolved against the program, or NULL */
    uint32_t dtype;   /* FRIT_NO_DTYPE: any, or not bound yet */
    uint32_t is_const;
    frit_dims dims; /* -1: not bound yet */
} frit_port;

/* Inputs and constants in the order of the text; FRIT_INVALID beyond the last. */
frit_status frit_graph_input_at(const frit_graph *graph, uint64_t index, frit_port *out);
/* After binding. */
frit_status frit_graph_output_at(const frit_graph *graph, uint64_t index, frit_port *out);
uint64_t frit_graph_op_count(const frit_graph *graph);

/* Fixes the dims and checks every op: one port per input, of which dtype and dims are used (dtype
 * FRIT_NO_DTYPE: not known: an input without a declared type takes that of its file, unbound dims
 * become 2).  May be called again. */
FRIT_NODISCARD frit_status frit_graph_bind(frit_graph *graph, const frit_port *ports,
                                           uint64_t count, frit_err *err);
/* Records all ops, in one scope: `inputs` as many as declared, dims as bound; `outputs` gets a
 * tensor per output that the caller owns.  Op failures are in the outputs. */
FRIT_NODISCARD frit_status frit_graph_run(const frit_graph *graph, frit_device *device,
                                          frit_tensor *const *inputs, uint64_t n_inputs,
                                          frit_tensor **outputs, uint64_t n_outputs, frit_err *err);
/* How the device would run the bound graph: the least direct way of its ops, FRIT_SUPPORT_*.
 * Nothing runs and nothing is compiled. */
uint32_t frit_graph_support(const frit_graph *graph, frit_device *device);
/* The text form of the bound graph, to be ended by frit_free; NULL without memory. */
char *frit_graph_print(const frit_graph *graph);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include <frit/ops.h>

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
