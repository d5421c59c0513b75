/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A driver: devices, memory, one queue per device, and programs for single ops.
 *
 * Required slots: enumerate device_open device_close alloc free write read submit wait supports
 * op_program. `self` of the first two is the plugin instance, of all others the device that
 * device_open returned. */
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
#define FRIT_CAP_NO_SUBALLOC   0x001u /* one buffer = one alloc */
#define FRIT_CAP_OPAQUE_MEMORY 0x002u /* no address, no host pointer */
#define FRIT_CAP_STATIC_SHAPES 0x004u /* a variant holds exact sizes */
#define FRIT_CAP_INLINE_QUEUE  0x008u /* work may run inside submit */
#define FRIT_CAP_HOST_VISIBLE  0x010u /* alloc gives host pointers */
#define FRIT_CAP_F64           0x020u /* kernels compute with f64 */
#define FRIT_CAP_I64           0x040u /* and with 64-bit integers, whatever rows do */

/* What a device does with an element type. */
#define FRIT_DTYPE_STORAGE     0x1u
#define FRIT_DTYPE_ARITHMETIC  0x2u
#define FRIT_DTYPE_ACCELERATED 0x4u

typedef struct frit_heap {
    uint32_t kind; /* 0: the device's ordinary memory */
    uint32_t reserved;
    uint64_t bytes;       /* 0 = unknown */
    uint64_t budget;      /* bytes this process should stay below, 0 = bytes */
    uint64_t max_block;   /* largest single alloc, 0 = no limit but the heap */
    uint64_t granularity; /* alloc rounds up to this, 0 = 1 */
} frit_heap;

/* One device, filled by enumerate into the host's zeroed struct.  Texts live as long as the
 * instance. */
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
    uint64_t max_binding;  /* bytes one argument may span, 0 = no limit */
    uint64_t group_memory; /* bytes of fast memory per group, 0 = none */
    uint32_t max_bindings; /* arguments of one launch, 0 = no limit */
    uint32_t max_group;    /* lanes of one group, 0 = 1 */
    uint32_t max_grid[3];  /* groups per axis, 0 = 2^31 - 1 */
    uint32_t n_formats;    /* kernel formats that kernel_load will take */
    const frit_str *formats;
    frit_heap heap;
    uint8_t dtype_use[FRIT_DTYPE_LIMIT]; /* by element type: FRIT_DTYPE_STORAGE and so on */
} frit_device_info;

/* What enumerate says about the whole driver. */
typedef struct frit_driver_info {
    uint32_t struct_size;
    uint32_t reason; /* FRIT_REASON_*: why there are no devices, 0 if there are */
    frit_str detail; /* in words, e.g. the loader's message; lives as long as the instance */
} frit_driver_info;

/* ---- memory and transfers ---- */

typedef struct frit_alloc_desc {
    uint32_t struct_size;
    uint32_t heap;  /* 0 */
    uint64_t bytes; /* >= 1, at most max_block */
    uint64_t align; /* a power of two, at least align_bytes */
} frit_alloc_desc;

typedef struct frit_allocation {
    uint32_t struct_size;
    uint32_t reserved;
    void *memory;       /* the driver's name for it, not NULL */
    uint64_t address;   /* as the device sees it, 0 = none */
    void *host_pointer; /* NULL = not host-visible */
} frit_allocation;

/* A point on a queue's timeline. */
typedef struct frit_point {
    uint64_t queue; /* 0: the device's one queue */
    uint64_t value;
} frit_point;

typedef struct frit_transfer {
    uint32_t struct_size;
    uint32_t n_waits;
    void *memory; /* the device side */
    uint64_t offset;
    uint64_t bytes; /* >= 1 */
    const frit_point *waits;
} frit_transfer;

enum {
    FRIT_CMD_NONE = 0,
    FRIT_CMD_COPY = 1,
    FRIT_CMD_FILL = 2,
    FRIT_CMD_LAUNCH = 3,
    FRIT_CMD_BARRIER = 4,
    FRIT_CMD_DISPATCH = 5
};

/* One command; ranges have at least one byte, and those of a COPY do not overlap.  Commands between
 * two BARRIERs touch no common bytes that one of them writes; BARRIERs and the borders of submit
 * order execution and memory. */
typedef struct frit_cmd {
    uint32_t struct_size;
    uint32_t kind; /* FRIT_CMD_* */
    uint64_t flags;
    const frit_launch *launch; /* LAUNCH; DISPATCH: its args, scalars, bounds, workspace, cookie */
    void *dst;                 /* COPY, FILL: memory */
    uint64_t dst_offset;
    const void *src; /* COPY: memory */
    uint64_t src_offset;
    uint64_t bytes;         /* COPY, FILL */
    uint64_t pattern;       /* FILL: the low pattern_bytes bytes, repeated */
    uint32_t pattern_bytes; /* FILL: 1, 2, 4 or 8; divides dst_offset and bytes */
    uint32_t reserved;
    void *kernel;      /* DISPATCH: from kernel_load */
    uint32_t grid[3];  /* DISPATCH: groups per axis */
    uint32_t group[3]; /* DISPATCH: lanes of a group per axis */
} frit_cmd;

/* What wait reports beside its status: the first command that failed, of those with a timeline
 * value above `value` as the caller gave it, up to the value waited for.  Every call that asks for
 * a failure is told it; once a call gave its value or a larger one, a driver may forget it.  A
 * driver without room for more failures may merge one into the last that it keeps: it then tells
 * that one's status and cookie for all values from the first to the last merged, the smallest that
 * was asked for. */
typedef struct frit_failure {
    uint32_t struct_size;
    frit_status status; /* of the command; FRIT_OK: none failed, and `value` is as it was given */
    uint64_t value;     /* in: the caller knows of failures up to it; out: what the command was to
                         * reach */
    uint64_t cookie;    /* of the launch, 0 if not a launch */
} frit_failure;

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

/* ---- the table ---- */

#define FRIT_BACKEND "frit.backend/1"

typedef struct frit_backend {
    uint32_t struct_size;
    uint32_t reserved;
    frit_str driver_name; /* [a-z][a-z0-9-]*, the part of a device name before the colon */

    /* [init] +mayblock  required.  Writes up to `capacity` infos at `stride` bytes and the true
     * count. No runtime or no hardware is FRIT_OK with zero devices and a reason in `driver`. */
    frit_status (*enumerate)(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
    /* [init] +mayblock  required. */
    frit_status (*device_open)(void *instance, uint32_t index, void **out, frit_err *err);
    /* [init] +mayblock  required; everything made on it is gone; also for a lost device. */
    void (*device_close)(void *self);

    /* [any] +mayblock  required.  FRIT_NO_DEVICE_MEMORY leaves everything as it was. */
    frit_status (*alloc)(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
    /* [any] +mayblock  required; no command that uses it is pending.  NULL does nothing. */
    void (*free)(void *self, void *memory);
    /* [any] +mayblock  required.  In the queue's order, and after `to->waits`; `from` may be reused
     * on return. */
    frit_status (*write)(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err);
    /* [any] +mayblock  required.  In the queue's order, and after `from->waits`; `into` is filled
     * when a wait for *value, or for a later value, has returned. */
    frit_status (*read)(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err);

    /* [device] +nonblock (INLINE_QUEUE: +mayblock)  required.  May wait for room in
     * its own queue.  Negative: nothing was enqueued; what fails later is told by wait. */
    frit_status (*submit)(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value,
                          frit_err *err);
    /* [any] +mayblock  required.  FRIT_TIMEOUT after `timeout_ns` (0: only asks, UINT64_MAX: no
     * limit), FRIT_DEVICE_LOST for a value that will never be reached; a failed command does not
     * stop the timeline, it is told in `failure`, in words in `err`. */
    frit_status (*wait)(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *failure,
                        frit_err *err);

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
                               void **kernel, frit_err *err);
    /* [any] +mayblock  Required with kernel_load; no DISPATCH of it is pending.  NULL does nothing.
     */
    void (*kernel_unload)(void *self, void *kernel);
} frit_backend;

FRIT_STATIC_ASSERT(sizeof(frit_device_info) == 288, "0.1");
FRIT_STATIC_ASSERT(sizeof(frit_cmd) == 112, "0.1");
FRIT_STATIC_ASSERT(sizeof(frit_failure) == 24, "0.1");
FRIT_STATIC_ASSERT(sizeof(frit_host_fn) == 24, "0.1");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_backend, kernel_unload) == 136, "0.1");

#endif
