/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A driver: devices, memory, queues, and programs for single ops.
 *
 * Required slots: enumerate device_open device_close alloc free write read submit wait supports
 * op_program. `self` of the first two and of compute_info is the plugin instance, of all others the
 * device that device_open returned.
 *
 * Queues.  A device has one from the start, whose handle is NULL, and as many more as queue_create
 * makes.  Each runs what it is given in order and counts a timeline of its own: submit, write and
 * read give the value that is reached when they are done.  Between queues nothing is ordered but by
 * points to wait for.  A queue or a value that was never made is FRIT_INVALID, and nothing was
 * done.
 *
 * After FRIT_TIMEOUT everything goes on as before.  After FRIT_DEVICE_LOST a driver touches no
 * memory of the caller any more (none that `read` was to fill, none imported), every wait for a
 * value that was not reached returns FRIT_DEVICE_LOST at once, free and destroy still work, and the
 * device can only be closed; opening it again, which may find it repaired, is the reset. */
#ifndef FRIT_BACKEND_H
#define FRIT_BACKEND_H

#include <frit/program.h>

/* ---- devices ---- */

/* In the order in which `auto` looks. */
enum {
    FRIT_DEVICE_UNKNOWN = 0,
    FRIT_DEVICE_DISCRETE,
    FRIT_DEVICE_ACCELERATOR,
    FRIT_DEVICE_INTEGRATED,
    FRIT_DEVICE_PROCESSOR,
    FRIT_DEVICE_SOFTWARE
};

/* Capability words; 0 is the cautious answer. */
#define FRIT_CAP_NO_SUBALLOC  0x01u /* one buffer = one alloc */
#define FRIT_CAP_INLINE_QUEUE 0x02u /* work may run inside submit */
#define FRIT_CAP_HOST_VISIBLE 0x04u /* alloc gives host pointers */
#define FRIT_CAP_F64          0x08u /* kernels compute with f64 */
#define FRIT_CAP_I64          0x10u /* and with 64-bit integers, whatever rows do */

/* What a device does with an element type. */
#define FRIT_DTYPE_STORAGE     0x1u
#define FRIT_DTYPE_ARITHMETIC  0x2u
#define FRIT_DTYPE_ACCELERATED 0x4u

enum {
    FRIT_HEAP_DEVICE = 0, /* what kernels compute in */
    FRIT_HEAP_PINNED = 1  /* of the host, with host pointers, that the device copies from and to at
                           * the speed of the link: commands find there what the program wrote
                           * before submit, and it finds what they wrote when wait returns */
};

typedef struct frit_heap {
    uint32_t struct_size;
    uint32_t kind;        /* FRIT_HEAP_* */
    uint64_t bytes;       /* 0 = unknown */
    uint64_t budget;      /* bytes this process should stay below, 0 = bytes */
    uint64_t max_block;   /* largest single alloc, 0 = no limit but the heap */
    uint64_t granularity; /* alloc rounds up to this, 0 = 1 */
} frit_heap;

/* One device, filled by enumerate into the host's zeroed struct.  Texts and arrays live as long as
 * the instance. */
typedef struct frit_device_info {
    uint32_t struct_size;
    uint32_t type;   /* FRIT_DEVICE_* */
    uint32_t index;  /* the number in names such as cpu:0, 0.. without gaps */
    uint32_t reason; /* FRIT_REASON_*: not 0 if this device can be seen but not used */
    /* Which of the driver's devices it is, whatever their order, over restarts: a UUID, serial
     * number or PCI address as text.  Not empty, no two alike.  Users name the device by it or its
     * beginning (DRIVER:uuid=ID), and what is saved of a device's plans is read for no other. */
    frit_str stable_id;
    frit_str name;    /* for people */
    frit_str pci;     /* "0000:03:00.0" or empty */
    uint8_t uuid[16]; /* zeros if none */
    frit_str driver_version;
    frit_str runtime_version;
    frit_str runtime_path; /* of the vendor runtime that was really loaded, empty if none */
    frit_str fingerprint;  /* changes whenever compiled artefacts must */
    uint64_t caps;         /* FRIT_CAP_* */
    uint64_t align_bytes;  /* alignment of every buffer, a power of two, 0 = 64 */
    uint64_t tail_bytes;   /* promise the device likes past the end of a range */
    /* Limits of one launch: the host makes none beyond them, whatever a launch spec says. */
    uint64_t max_binding;  /* bytes one argument may span, 0 = no limit */
    uint64_t group_memory; /* bytes of fast memory per group, 0 = none */
    uint32_t max_bindings; /* arguments, 0 = no limit */
    uint32_t max_group;    /* lanes of one group, 0 = 1 */
    uint32_t max_grid[3];  /* groups per axis, 0 = 2^31 - 1 */
    uint32_t n_formats;    /* kernel formats that kernel_load will take */
    const frit_str *formats;
    uint64_t cache_bytes;      /* of the last level of cache, 0 = unknown; for programs, the host
                                * decides nothing by it */
    uint64_t link_bytes_per_s; /* between the host's memory and the device's, each way; 0 = as
                                * fast as memory.  By this and the next the host weighs whether an
                                * op runs on the fallback device beside its neighbours there */
    uint32_t link_latency_ns;  /* of a transfer of a few bytes, beside that */
    uint32_t n_heaps;          /* >= 1, the first one of kind DEVICE */
    uint32_t heap_stride;
    uint32_t reserved;
    const frit_heap *heaps;
    uint8_t dtype_use[FRIT_DTYPE_LIMIT]; /* by element type: FRIT_DTYPE_STORAGE and so on */
} frit_device_info;

/* What enumerate says about the whole driver. */
typedef struct frit_driver_info {
    uint32_t struct_size;
    uint32_t reason; /* FRIT_REASON_*: why there are no devices, 0 if there are */
    frit_str detail; /* in words, e.g. the loader's message; lives as long as the instance */
} frit_driver_info;

/* What runs the kernels of a device. */
typedef struct frit_compute_info {
    uint32_t struct_size;
    uint32_t is_slow; /* 1: another way, which this machine or its user may have, is several times
                       * as fast; `text` says what is missing */
    frit_str text;    /* for people: "LLVM 19", "interpreter: no libLLVM"; lives as long as the
                       * instance */
} frit_compute_info;

/* ---- memory and transfers ---- */

typedef struct frit_alloc_desc {
    uint32_t struct_size;
    uint32_t heap;  /* index */
    uint64_t bytes; /* >= 1, at most max_block */
    uint64_t align; /* a power of two, at least align_bytes */
} frit_alloc_desc;

typedef struct frit_allocation {
    uint32_t struct_size;
    uint32_t reserved;
    frit_memory *memory; /* not NULL */
    uint64_t address;    /* as the device sees it, 0 = none */
    void *host_pointer;  /* NULL = not host-visible */
} frit_allocation;

/* Memory of the application that the device is to read in place.  It is the application's, which
 * leaves it as it is until `free`; nobody writes it: no command has it as its destination and no
 * launch as an output, workspace or derived memory.  Nothing past its last byte may be read: its
 * arguments have no tail. */
typedef struct frit_import_desc {
    uint32_t struct_size;
    uint32_t reserved;
    const void *data; /* a multiple of align_bytes */
    uint64_t bytes;   /* >= 1 */
} frit_import_desc;

/* A point on a queue's timeline. */
typedef struct frit_point {
    frit_queue *queue; /* NULL: the device's first one */
    uint64_t value;
} frit_point;

typedef struct frit_transfer {
    uint32_t struct_size;
    uint32_t n_waits;
    frit_queue *queue;
    frit_memory *memory; /* the device side */
    uint64_t offset;
    uint64_t bytes;          /* >= 1 */
    const frit_point *waits; /* of this device */
} frit_transfer;

/* Bytes of another open device of the same plugin instance, as many as the transfer says. */
typedef struct frit_peer_source {
    uint32_t struct_size;
    uint32_t reserved;
    void *device; /* that device_open returned; never the one that copies */
    frit_memory *memory;
    uint64_t offset;
} frit_peer_source;

enum { FRIT_QUEUE_COMPUTE = 0, FRIT_QUEUE_TRANSFER = 1 };

typedef struct frit_queue_desc {
    uint32_t struct_size;
    uint32_t kind; /* FRIT_QUEUE_*: TRANSFER gets writes, reads and COPY, FILL and BARRIER commands
                    * only */
} frit_queue_desc;

enum {
    FRIT_CMD_NONE = 0,
    FRIT_CMD_COPY = 1,
    FRIT_CMD_FILL = 2,
    FRIT_CMD_LAUNCH = 3,
    FRIT_CMD_BARRIER = 4,
    FRIT_CMD_DISPATCH = 5,
    FRIT_CMD_TIMESTAMP = 6 /* only where the plugin offers frit.profile/1 (profile.h) */
};

/* One command; ranges have at least one byte, and those of a COPY do not overlap.  Commands between
 * two BARRIERs touch no common bytes that one of them writes; BARRIERs and the borders of submit
 * order execution and memory. */
typedef struct frit_cmd {
    uint32_t struct_size;
    uint32_t kind;             /* FRIT_CMD_* */
    const frit_launch *launch; /* LAUNCH; DISPATCH: its args, scalars, bounds, workspace, cookie */
    frit_memory *dst;          /* COPY, FILL; TIMESTAMP: gets 8 bytes at a multiple of 8, the ticks
                                * when all commands before it had ended */
    uint64_t dst_offset;
    frit_memory *src; /* COPY */
    uint64_t src_offset;
    uint64_t bytes;         /* COPY, FILL */
    uint64_t pattern;       /* FILL: the low pattern_bytes bytes, repeated */
    uint32_t pattern_bytes; /* FILL: 1, 2, 4 or 8; divides dst_offset and bytes */
    uint32_t reserved;
    frit_kernel *kernel; /* DISPATCH: from kernel_load */
    uint32_t grid[3];    /* DISPATCH: groups per axis */
    uint32_t group[3];   /* DISPATCH: lanes of a group per axis */
} frit_cmd;

/* What wait reports beside its status, FRIT_TIMEOUT included: the first command that failed after
 * the place {value, command} that the caller gives, up to the value waited for.
 *
 * Failures are in the order of values and, in a submit, of commands; the driver reports one only
 * when no earlier one can occur any more.  It reports the same failure to every call that gives an
 * earlier place, and may forget it once a call gave its place or a later one.
 *
 * A driver without room for more failures may merge one into the last that it keeps.  This one then
 * stands for all values from the first to the last merged: wait reports its status and cookie,
 * FRIT_ALL_COMMANDS, and the smallest of these values that is after the caller's place, so that the
 * next call gets the next value. */
typedef struct frit_failure {
    uint32_t struct_size;
    frit_status status; /* of the command; FRIT_OK: none failed, the rest is as it was given */
    uint64_t value;     /* in: the caller knows of failures before it; out: what the command was to
                         * reach */
    uint64_t cookie;    /* of the launch, 0 if not a launch */
    uint32_t command;   /* number of the command in its submit, from 1.  In: of `value` those up to
                         * it are known, with 0 or FRIT_ALL_COMMANDS all.  FRIT_ALL_COMMANDS out:
                         * the driver does not know more, and each command of `value` after the
                         * cookie's may have failed, too */
    uint32_t reserved;
} frit_failure;

#define FRIT_ALL_COMMANDS UINT32_MAX

/* ---- foreign kernels ---- */

/* Format of kernel_load: a function of this process, for devices that can give "host.ptr" of their
 * memory (native.h).  The bytes are a frit_host_fn, copied by kernel_load; `ctx` lives until
 * kernel_unload.  A DISPATCH calls it once, whatever grid and group say. */
#define FRIT_FORMAT_HOST_FN "host-fn/1"

typedef struct frit_host_fn {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  A negative status is the command's failure; `err` as everywhere. */
    frit_status (*run)(void *ctx, const frit_launch *launch, frit_err *err);
    void *ctx;
} frit_host_fn;

/* Format of kernel_load: a compute shader, for devices of Vulkan 1.2.  The bytes are the words of a
 * SPIR-V module of version 1.0 to 1.5 in this machine's byte order, copied by kernel_load.  It has
 * one entry point, GLCompute "main"; LocalSize, which each DISPATCH gives as its group, not the
 * built-in WorkgroupSize; the addressing model PhysicalStorageBuffer64; no descriptors; and only
 * capabilities of the device.  Of those Shader, Int64 and PhysicalStorageBufferAddresses are
 * everywhere, as are groups of 128 lanes along x or y.  FRIT_UNSUPPORTED: not on this device;
 * FRIT_INVALID: on none.  What else a module does is its author's to get right.
 *
 * Its push constants are a frit_spirv_push.  At the address `words` are, in this order, of 64 bits
 * each and to be read only:
 *
 *    driver[0..3]  of the launch spec
 *    workspace     its address, 0 without one
 *    args          for each its address of element 0, 0 for one without memory
 *    layouts       for each argument its dims, then its strides: 2 * rank words
 *    derived       for each its address, then `fill`
 *    scalars       their bits
 *    bounds */
#define FRIT_FORMAT_SPIRV "spirv/1"

typedef struct frit_spirv_push {
    uint32_t base[3]; /* to add to WorkgroupId: the device runs a large grid in parts */
    uint32_t reserved;
    uint64_t words; /* device address, a multiple of 16 */
} frit_spirv_push;

/* Formats of kernel_load: code objects of CUDA and HIP, as cuModuleLoadData and hipModuleLoadData
 * take them: of "ptx/1" the text, without a 0 at its end.  The bytes are copied by kernel_load.
 * FRIT_UNSUPPORTED: not for this device's architecture.  The kernel is FRIT_KERNEL_NAME, with C
 * linkage and static shared memory alone; it has one parameter, a frit_kernel_params by value, at
 * whose address `words` are the same words as for a SPIR-V module. */
#define FRIT_FORMAT_CUBIN "cubin/1"
#define FRIT_FORMAT_PTX   "ptx/1"
#define FRIT_FORMAT_HSACO "hsaco/1"
#define FRIT_KERNEL_NAME  "frit_kernel"

typedef struct frit_kernel_params {
    uint32_t base[2]; /* to add to blockIdx.y and .z: the device runs a large grid in parts */
    uint64_t words;   /* device address, a multiple of 16, to be read only */
} frit_kernel_params;

/* ---- opening ---- */

/* An object of the application that a device is to use in place of one of its own, under a name of
 * native.h, such as "vk.device". */
typedef struct frit_native_object {
    frit_str name;
    void *object; /* the application's; outlives the device */
} frit_native_object;

typedef struct frit_open_params {
    uint32_t struct_size;
    uint32_t n_natives; /* a name that the driver does not know is FRIT_UNSUPPORTED, named in the
                         * text; device_close leaves them all as they are */
    const frit_native_object *natives;
    /* [any] +nonblock  To be called by the driver, from any thread but inside of a slot, when it
     * learns that the device is lost; `why` is borrowed.  Not once device_close, or a device_open
     * that failed, has returned: these wait for a call under way.  NULL: nobody listens. */
    void (*lost)(void *ctx, const frit_err *why);
    void *ctx;
} frit_open_params;

/* ---- the table ---- */

#define FRIT_BACKEND "frit.backend/1"

typedef struct frit_backend {
    uint32_t struct_size;
    uint32_t reserved;
    frit_str driver_name; /* [a-z][a-z0-9-]*, the part of a device name before the colon */

    /* [init] +mayblock  required.  Writes up to `capacity` infos at `stride` bytes and the true
     * count. No runtime or no hardware is FRIT_OK with zero devices and a reason in `driver`.  A
     * second at most, five where a runtime has to be started; what takes longer belongs into
     * device_open. */
    frit_status (*enumerate)(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
    /* [init] +mayblock  required. */
    frit_status (*device_open)(void *instance, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err);
    /* [init] +mayblock  required; everything made on it is gone; also for a lost device. */
    void (*device_close)(void *self);

    /* [any] +mayblock  required.  FRIT_NO_DEVICE_MEMORY leaves everything as it was.  A device to
     * which each question is a round trip may answer at once and fail what uses the memory. */
    frit_status (*alloc)(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
    /* [any] +mayblock  required; no command that uses it is pending.  NULL does nothing. */
    void (*free)(void *self, frit_memory *memory);
    /* [queue] +mayblock  required.  In the order of its queue, and after `to->waits`; `from` may be
     * reused on return. */
    frit_status (*write)(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err);
    /* [queue] +mayblock  required.  In the order of its queue, and after `from->waits`; `into` is
     * filled when a wait for *value, or for a later value, has returned. */
    frit_status (*read)(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err);

    /* [queue] +nonblock (INLINE_QUEUE: +mayblock)  required.  The commands run after those that the
     * queue has, and after `waits`.  May wait for room in its own queue.  Negative: nothing was
     * enqueued.  Later failures are reported by wait. */
    frit_status (*submit)(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err);
    /* [any] +mayblock  required.  FRIT_TIMEOUT after `timeout_ns` (0: does not wait, UINT64_MAX:
     * no limit), FRIT_DEVICE_LOST for a value that will never be reached.  A failed command does
     * not stop the timeline; it is reported in `failure`, and its text in `err`. */
    frit_status (*wait)(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err);

    /* [any] +nonblock  required.  Bit i of `bits` (64 per word): ops[i] can become a program. */
    frit_status (*supports)(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err);
    /* [any] +mayblock  required.  FRIT_UNSUPPORTED for an op that supports refuses. */
    frit_status (*op_program)(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);

    /* [any] +mayblock  NULL: the driver keeps no memory of its own.  Gives unused memory back. */
    void (*memory_cleanup)(void *self);

    /* [any] +mayblock  NULL: takes no kernels, and frit_device_info has no formats.  A kernel for
     * DISPATCH from bytes in one of the device's formats; FRIT_UNSUPPORTED for another format. */
    frit_status (*kernel_load)(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err);
    /* [any] +mayblock  Required with kernel_load; no DISPATCH of it is pending.  NULL does nothing.
     */
    void (*kernel_unload)(void *self, frit_kernel *kernel);

    /* [any] +mayblock  NULL: the device has its first queue only.  FRIT_UNSUPPORTED: no more of
     * this kind. */
    frit_status (*queue_create)(void *self, const frit_queue_desc *desc, frit_queue **out,
                                frit_err *err);
    /* [any] +mayblock  Required with queue_create; nothing is pending on it, and no point of it is
     * waited for. */
    void (*queue_destroy)(void *self, frit_queue *queue);
    /* [any] +nonblock  NULL: the heap's `budget` holds always.  Bytes of the heap that this process
     * should stay below now. */
    uint64_t (*heap_budget)(void *self, uint32_t heap);
    /* [any] +mayblock  NULL: the device adopts no memory, and the host copies.  Memory whose bytes
     * are those of the application, from here until `free`, which leaves them alone.  It takes
     * nothing of a heap.  FRIT_UNSUPPORTED: not these bytes; the host copies them. */
    frit_status (*import_host)(void *self, const frit_import_desc *desc, frit_allocation *out,
                               frit_err *err);
    /* [any] +mayblock  NULL: nothing to say.  Describes what device `index` of enumerate computes
     * with; may open libraries to find out, which is why enumerate does not.  `instance` is the
     * plugin's. */
    frit_status (*compute_info)(void *instance, uint32_t index, frit_compute_info *out,
                                frit_err *err);
    /* [queue] +mayblock  NULL: devices of the driver do not copy from each other.  In the order of
     * the queue of `to`, and after `to->waits`.  The host has waited for all that the bytes of
     * `from` need; until *value is reached they stay as they are, and their device open.
     * Negative: nothing was enqueued.  FRIT_UNSUPPORTED: not between these two, or the other one
     * is lost; the host copies through its memory, where that shows. */
    frit_status (*copy_from)(void *self, const frit_transfer *to, const frit_peer_source *from,
                             uint64_t *value, frit_err *err);
} frit_backend;

FRIT_STATIC_ASSERT(sizeof(frit_heap) == 40, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_device_info) == 320, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_cmd) == 104, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_failure) == 32, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_host_fn) == 24, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_spirv_push) == 24 && sizeof(frit_kernel_params) == 16, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_open_params, ctx) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_backend, kernel_unload) == 136, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_import_desc) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_backend, heap_budget) == 160, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_backend, import_host) == 168, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_compute_info) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_backend, compute_info) == 176, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_peer_source) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_backend, copy_from) == 184, "0.2");

#endif
