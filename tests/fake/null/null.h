/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the plugin `null` share: the instance with its options and counters, the
 * device with its queue, buffers, programs. */
#ifndef NULL_H
#define NULL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/extmem.h>
#include <frit/fuser.h>
#include <frit/plugin.h>
#include <frit/profile.h>

#define NULL_VERSION "1.0"

enum { NULL_MAX_FUSERS = 8, NULL_MAX_OUTPUTS = 16, NULL_ALIGN = 64, NULL_MAX_FAILURES = 64 };

/* Calls first, then the other counts. */
enum null_counter {
#define NULL_CALL(name) NULL_CALL_##name,
#include "calls.def"
    NULL_N_CALLS,
    NULL_COUNTS = NULL_N_CALLS - 1,
#define NULL_COUNT(name, meaning) NULL_COUNT_##name,
#include "counts.def"
    NULL_N_COUNTERS
};

enum {
#define NULL_OPTION(name, TYPE, standard, low, high, words, meaning) NULL_OPTION_##name,
#include "options.def"
    NULL_N_OPTIONS
};

/* The `nth` of something fails with `status`; nth 0: none does. */
struct fault {
    uint32_t call; /* NULL_CALL_*, of fail_call */
    frit_status status;
    uint64_t nth; /* from 1 on */
};

/* How the counter of TIMESTAMPs goes. */
enum null_clock { CLOCK_STEADY, CLOCK_BACKWARDS, CLOCK_NONE };

struct options {
    bool has_memory; /* no: buffers have no bytes, and reads give 0 */
    bool is_mapped;  /* the host gets pointers */
    bool pinned;     /* there is a heap with pointers beside the first */
    bool opaque;
    bool no_suballoc;
    bool static_shapes;
    bool inline_queue;
    bool permute;
    bool check;
    uint64_t seed;
    uint64_t latency_ns, transfer_ns;
    uint64_t hold; /* 0: the thread runs what comes */
    uint64_t heap; /* bytes */
    bool compiles; /* programs have a compile step */
    bool gate;     /* which ends when `gate_left` of the instance lets it */
    int64_t compile_ms;
    uint32_t max_fused_ops;
    uint32_t n_fusers;
    enum null_clock clock;
    bool derive;     /* programs derive memory from their first input */
    frit_str refuse; /* the host's, as long as the instance */
    struct fault call;
    struct fault launch, copy;
    frit_str fail_ops; /* the host's, as long as the instance */
};

/* One per host. */
struct instance {
    const frit_host_root *host;
    const frit_host_core *core;
    struct options options;
    frit_heap heaps[2];              /* the second is pinned, where options want it */
    atomic_uint_least64_t gate_left; /* compiles that may end; UINT64_MAX: all */
    atomic_uint_least64_t counters[NULL_N_COUNTERS];
};

/* Reads the plugin's options; a text in `err` for what has no meaning. */
frit_status options_read(struct instance *instance, frit_err *err);
extern const frit_option null_options[NULL_N_OPTIONS];

/* Writes the caller's slot and returns `status`. */
frit_status null_fail(const struct instance *instance, frit_err *err, frit_status status,
                      const char *format, ...) FRIT_PRINTF(4, 5);
/* Counts a call; the status of the fault that the options plant in it, else FRIT_OK. */
frit_status null_count_call(struct instance *instance, uint32_t call, frit_err *err);
void null_count(struct instance *instance, enum null_counter counter, uint64_t n);
void null_uncount(struct instance *instance, enum null_counter counter, uint64_t n);
/* What option.fail_ops says of the op: FRIT_OK if it does not name it. */
frit_status null_op_fault(const struct instance *instance, const frit_op_desc *op);
/* Whether `name` is among the names in `list`, which have spaces between.  `suffix` (NULL: names
 * have none) gets what follows a colon after the name, "" if nothing. */
bool null_listed(frit_str list, const char *name, frit_str *suffix);
/* The counter of this name, NULL_N_COUNTERS if there is none. */
uint32_t null_counter_find(frit_str name);

void *null_alloc(const struct instance *instance, uint64_t bytes);
void null_free(const struct instance *instance, void *ptr);

/* ---- device and memory ---- */

/* The header of a block of memory; the bytes follow, aligned as requested. */
struct frit_memory {
    char *data; /* NULL if out of memory */
    uint64_t bytes;
    bool is_imported; /* the application's */
};

struct node;

/* A command that fails, and the values from its own to that of the last one which it stands for. */
struct failing {
    frit_status status;
    uint32_t command; /* FRIT_ALL_COMMANDS: it stands for others, too */
    uint64_t first, last;
    uint64_t cookie;
    uint64_t nth; /* of the device's launches */
};

struct queue {
    pthread_t thread;       /* of a queue that is not inline */
    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t work;    /* the thread has something to run, or to end */
    pthread_cond_t reached; /* `done` has grown */
    struct node *first;
    struct node *last;
    uint64_t n_nodes;
    uint64_t issued; /* last value handed out */
    uint64_t done;   /* last value reached */
    uint64_t wanted; /* the largest value that somebody waited for */
    bool running;    /* the thread runs more than it must: see option.hold */
    bool stop;
    /* In order of values and commands, also of what has not run yet. */
    struct failing failures[NULL_MAX_FAILURES];
    uint32_t n_failures;
};

/* What is derived from operands, see derived.c. */
struct derivations {
    pthread_mutex_t lock;
    struct record *list;
    uint64_t n, capacity;
};

struct device {
    struct instance *instance;
    struct derivations derivations;
    struct queue queue;
    uint64_t n_launches, n_copies; /* taken; only submit uses them */
    uint64_t *submits; /* the application's "null.submits", counted up by submit; or NULL */
};

/* Slots of frit.backend/1; contracts there. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
void device_close(void *self);
frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void buffer_free(void *self, frit_memory *memory);
/* Foreign kernels are kept and counted; a DISPATCH runs nothing. */
frit_status kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                        frit_kernel **kernel, frit_err *err);
void kernel_unload(void *self, frit_kernel *kernel);
/* "host.ptr" of memory that has one. */
void *native_get(void *self, frit_memory *memory, frit_str name);
void extmem_where(void *self, frit_extmem_where *out);
uint64_t extmem_address(void *self, frit_memory *memory);
frit_status extmem_import(void *self, const frit_extmem_desc *desc, frit_allocation *out,
                          frit_err *err);
/* Whether the range lies in the buffer. */
bool buffer_holds(const frit_memory *buffer, uint64_t offset, uint64_t bytes);

/* ---- the clock ---- */

/* Ticks of TIMESTAMPs now. */
uint64_t null_ticks(const struct device *device);
frit_status device_clock(void *self, frit_clock *out, frit_err *err);

/* ---- the queue ---- */

frit_status queue_open(struct queue *queue, struct device *device, frit_err *err);
/* Runs what is queued and ends the thread. */
void queue_close(struct queue *queue, struct device *device);

frit_status queue_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                        frit_err *err);
frit_status queue_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                       frit_err *err);
frit_status queue_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                         uint32_t stride, const frit_point *waits, uint32_t n_waits,
                         uint64_t *value, frit_err *err);
frit_status queue_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err);

const frit_cmd *cmd_at(const frit_cmd *cmds, uint32_t stride, uint32_t i);
/* Refuses commands of which two between BARRIERs touch common bytes that one of them writes, or
 * that leave their buffers, or that are no launches of ours.  option.check */
frit_status check_commands(struct device *device, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, frit_err *err);

/* ---- what is derived from operands; option.derive ---- */

void derived_open(struct derivations *all);
void derived_close(struct derivations *all);
/* FRIT_INVALID for a launch that is to find what nobody derived. */
frit_status derived_check(struct device *device, const frit_launch *launch, frit_err *err);
/* These bytes change, or are gone. */
void derived_written(struct device *device, const frit_memory *memory, uint64_t first,
                     uint64_t bytes);

/* ---- programs and fusers ---- */

/* What a program knows of the ops that it covers. */
struct cover {
    uint32_t n_ops;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_scalars;
    uint32_t n_bounds;
};

/* What a spec points to lies after it. */
struct spec_memory {
    struct spec_memory *next;
    uint64_t reserved;
};

struct program {
    struct instance *instance;
    frit_candidate candidate;
    struct cover cover;
    bool fused;
    frit_status fails; /* each launch; FRIT_OK: none */
    atomic_bool compiled;
    _Atomic(struct spec_memory *) specs; /* of all specs, freed with the program */
    uint32_t dtypes[];                   /* inputs, then outputs; 0 for what is not a tensor */
};

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_for_op(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
/* A program with room for n_in + n_out types, which the caller fills. */
frit_status program_create(struct instance *instance, const struct cover *cover, bool fused,
                           frit_program *out, struct program **made, frit_err *err);
/* FRIT_INVALID with a text for a launch that does not fit its program. */
frit_status program_check(struct instance *instance, const frit_launch *launch, frit_err *err);
/* Whether the bytes are what to_state of the program gives. */
bool program_state_is(const struct program *program, const void *bytes, uint64_t n_bytes);
void program_destroy(void *self);

/* Launch scalars and bounds that the host adds for the op. */
void op_extras(const frit_op_desc *op, uint32_t *n_scalars, uint32_t *n_bounds);
/* Whether this plugin knows the op in this meaning. */
bool op_known(const frit_op_desc *op);

frit_status fuser_prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                             uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err);
frit_status fuser_clone(const void *self, void **out, frit_err *err);
void fuser_destroy(void *self);
void fuser_reset(void *self);
void fuser_push(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride);
void fuser_state(const void *self, frit_fuser_state *out);
frit_status fuser_finish(void *self, frit_program *out, frit_err *err);
frit_status fuser_from_state(void *instance, const frit_fuser_device *device, frit_str name,
                             const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                             const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err);

#endif
