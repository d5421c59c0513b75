/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share: the instance, its adapters (physical devices), the device
 * with its queue, and its buffers. */
#ifndef DRIVER_H
#define DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/profile.h>

#include "emit/spirv/spirv.h"
#include "kernels.h"
#include "util/plug.h"

#include "api.h"
#include "ring.h"

#define VULKAN_VERSION "0.1.0"

enum { VULKAN_ALIGN = 256, VULKAN_GRANULARITY = 1 << 16 };

/* ---- one per host ---- */

struct options {
    frit_str loader;    /* file of the Vulkan loader */
    bool validate;      /* with the validation layers */
    bool force_staging; /* memory is never mapped, even where it could be */
    frit_str dump;      /* folder for the words of kernels, empty: none */
};

struct adapter;

struct instance {
    struct plug plug;
    const frit_host_cache *keep; /* NULL: nothing is kept */
    struct options options;
    void *library; /* the loader; stays loaded */
    char library_path[256];
    char trouble[384]; /* why there are no adapters, "" if there are */
    uint32_t trouble_reason;
    struct global_api global;
    struct instance_api api;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;
    uint32_t n_adapters;
    struct adapter *adapters; /* made by the first enumerate */
};

/* plug_fail for a call of Vulkan that gave `result`, which has a status and is appended in words.
 */
frit_status vulkan_refused(const struct instance *instance, frit_err *err, VkResult result,
                           const char *format, ...) FRIT_PRINTF(4, 5);
/* What happened before, told to a caller. */
void vulkan_retell(const struct instance *instance, frit_err *err, const frit_err *told);
/* Zeroed. */
void *vulkan_alloc(const struct instance *instance, uint64_t bytes);
void vulkan_free(const struct instance *instance, void *memory);

/* Opens the loader and makes a Vulkan instance.  Without one `trouble` says why, and that is
 * FRIT_OK. */
frit_status loader_open(struct instance *instance, frit_err *err);
/* The functions of `handle`; the name of one that is not there, NULL: all are. */
const char *loader_functions(struct instance *instance);
void loader_close(struct instance *instance);

/* ---- adapters ---- */

/* A chain: what an adapter has of what is used, to be enabled. */
struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic;
};

/* Facts of a physical device, read once. */
struct adapter {
    VkPhysicalDevice handle;
    uint32_t reason;     /* FRIT_REASON_*, 0: usable */
    uint32_t type;       /* FRIT_DEVICE_* */
    uint32_t family;     /* of the queue */
    uint32_t stamp_bits; /* of its timestamps, 0: it has none */
    uint32_t version;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + 64];
    char stable_id[40];
    char pci[16];
    char driver[VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE];
    char runtime[16];
    char fingerprint[96];
    uint8_t uuid[VK_UUID_SIZE];
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t heap_index; /* of buffers */
    bool mappable;       /* buffers can be read and written by the host as fast as by copies */
    frit_heap heaps[2];  /* of buffers; pinned */
    VkPhysicalDeviceLimits limits;
    VkPhysicalDeviceVulkan12Properties floats; /* of which only what is said of shaders */
    struct features features;
    bool has_subgroup, has_atomic; /* the last two of `features` */
    bool has_budget;               /* the heap's budget can be queried */
    uint32_t subgroup;             /* size to require, 0: cannot be */
    uint32_t most_subgroups;       /* of a group, then */
    bool has_clock;                /* the device's clock can be read by the host */
    uint32_t n_extensions;
    const char *extensions[5]; /* to be enabled */
};

/* Bytes of the heap of buffers that this process should stay below, 0: not known. */
uint64_t adapter_budget(const struct instance *instance, const struct adapter *adapter);
/* Reads the adapter's facts; `reason` and the end of `name` say what it lacks. */
frit_status adapter_read(const struct instance *instance, VkPhysicalDevice handle,
                         struct adapter *out, frit_err *err);
/* The features in a chain that VkDeviceCreateInfo takes. */
const void *adapter_features(struct adapter *adapter);

/* Memory of buffers, of buffers that the host maps, and of the two rings. */
enum memory_kind { MEMORY_DEVICE, MEMORY_MAPPED, MEMORY_STAGING, MEMORY_PARAMS };

/* The best type among those of the mask, UINT32_MAX if none will do. */
uint32_t adapter_memory_type(const struct adapter *adapter, enum memory_kind kind, uint32_t mask);

/* ---- memory ---- */

/* A piece of memory that is one VkBuffer. */
struct frit_memory {
    VkBuffer handle;
    VkDeviceMemory memory;
    uint64_t bytes;
    uint64_t address;
    char *mapped; /* NULL: not host-visible */
};

struct device;

/* Mapped unless of kind MEMORY_DEVICE. */
frit_status buffer_create(struct device *device, enum memory_kind kind, uint64_t bytes,
                          frit_memory *out, frit_err *err);
void buffer_destroy(struct device *device, frit_memory *buffer);
/* Whether the range lies in the buffer. */
bool buffer_holds(const frit_memory *buffer, uint64_t offset, uint64_t bytes);

/* ---- the device and its queue ---- */

enum {
    QUEUE_BATCHES = 32,
    PARAMS_BYTES = 1 << 22,
    STAGING_BYTES = 1 << 24,
    BATCH_STAMPS = 256,   /* timestamps of one batch at most */
    LAUNCH_WORDS = 4096,  /* arguments and parameters of a space at most */
    SPACES_WORDS = 65536, /* of all spaces of a kernel */
    LAUNCH_ARGS = 16384,  /* of a launch over several */
    MOST_PUSH = 256       /* bytes of push constants, of those that a device has */
};

struct stamps;

/* One recording: in use from the submission until its value is reached. */
struct batch {
    VkCommandPool pool;
    VkCommandBuffer cmds;
    uint64_t value;        /* 0: never submitted */
    struct stamps *stamps; /* NULL: it had none yet */
};

/* Commands that failed after submit had taken them: those of `first` from the launch with the
 * cookie on, or all where it is 0.  A second failure widens the first. */
struct fault {
    uint64_t first, last; /* timeline values, 0: none */
    uint64_t cookie;
    frit_err err;
};

/* Who is to hear of the device's loss, and the thread that tells it, outside of the slots. */
struct loss {
    void (*lost)(void *ctx, const frit_err *why);
    void *ctx;
    frit_err why;
    pthread_t thread;
    bool told; /* there is a thread */
};

/* Everything is under the lock but the semaphore and what it is asked. */
struct queue {
    pthread_mutex_t lock;
    bool is_open;
    VkQueue handle;
    VkSemaphore timeline;
    uint64_t issued;    /* last value handed out */
    uint64_t submitted; /* last value that the device is to signal */
    uint64_t done;      /* reached */
    bool lost;
    struct loss loss;
    struct fault fault;
    uint32_t next; /* batch to be used next: the oldest */
    struct batch batches[QUEUE_BATCHES];
    frit_memory staging, params; /* host memory */
    struct ring staging_ring, params_ring;
    uint64_t *words; /* of the launch that is recorded */
    uint32_t n_words;
};

/* What is known of the application's objects, in the place of the driver's own. */
struct adopted {
    struct instance instance;
    struct adapter adapter;
};

struct device {
    const struct instance *instance;
    const struct adapter *adapter;
    struct adopted *adopted; /* NULL: the Vulkan device is the driver's */
    struct device_api api;
    VkDevice handle;
    struct queue queue;
    struct spirv_target target;
    struct kernels_device kernels;
    pthread_mutex_t code_lock; /* of pipelines that recordings want */
    bool has_code_lock;
    VkPipelineLayout layout;
    VkPipelineCache cache;
    uint64_t kept_bytes; /* of the cache, as it was read */
};

/* ---- kernels ---- */

/* Of a phase: for any arguments, and where the address of each is a multiple of SPIRV_ALIGN. */
struct pipelines {
    VkPipeline any, aligned;
};

/* How code gets its words in recordings: all by address, or the parameters in push constants and
 * the rest by address. */
enum far_kind { FAR_ALL, FAR_ARGS, FAR_KINDS };

/* Words of a phase whose pipelines are made when they are wanted. */
struct far_words {
    struct spirv_code any, aligned;
};

/* Compiled code.  Where small blocks of words stand in push constants, recordings want pipelines
 * that take them by address as well. */
struct code {
    uint32_t n_phases;
    bool inside; /* the block of words stands in push constants, for all phases */
    struct pipelines *near;
    /* With `inside`; of each phase; under the device's lock, NULL until wanted. */
    struct pipelines *far[FAR_KINDS];
    struct far_words *words[FAR_KINDS];
};

/* The pipelines of this kind, aligned or any, where the block is `inside`.  Threads: any. */
frit_status code_make_far(struct device *device, struct code *code, enum far_kind kind,
                          bool aligned, frit_err *err);

/* The entry point "main" of a module's words; `subgroups`: it needs what the target promises. */
frit_status compile_pipeline(struct device *device, const struct spirv_code *code, VkPipeline *out,
                             frit_err *err);
/* Lanes of a kernel's group at most. */
uint32_t compile_lanes(const struct adapter *adapter);
/* The device's part in making kernels: facts, layout, cache. */
frit_status compile_open(struct device *device, frit_err *err);
void compile_close(struct device *device);

/* Takes the application's objects, of which nothing is to be destroyed; on failure too the device
 * is to be closed. */
frit_status device_adopt(struct device *device, const frit_open_params *params, frit_err *err);

/* The whole queue of an opened device. */
frit_status queue_open(struct device *device, frit_err *err);
/* Waits for everything; also after a queue_open that failed, or none. */
void queue_close(struct device *device);

/* For the files of the queue, under its lock. */

/* stamp.c: a timestamp, for 8 bytes at a multiple of 8. */
frit_status stamps_add(struct device *device, struct batch *batch, VkBuffer to, uint64_t offset,
                       frit_err *err);
/* Copies the timestamps recorded so far to where they are wanted; whether there were any. */
bool stamps_copy(struct device *device, struct batch *batch);
void stamps_reset(struct batch *batch); /* when it begins again */
void stamps_destroy(struct device *device, struct batch *batch);

/* A batch to record into, after everything submitted; waits for one. */
frit_status batch_begin(struct device *device, struct batch **out, frit_err *err);
/* Orders what was recorded before what comes after. */
void batch_barrier(struct device *device, struct batch *batch);
/* The same in two steps, for a command buffer of the caller's: begins it, with these flags; ends
 * it; hands it over, any number of times. */
frit_status batch_open(struct device *device, struct batch *batch, VkCommandBufferUsageFlags flags,
                       frit_err *err);
frit_status batch_close(struct device *device, struct batch *batch, frit_err *err);
frit_status batch_submit(struct device *device, struct batch *batch, uint64_t *value,
                         frit_err *err);
/* Submits; open spans of both rings are free when its value is reached.  A batch that is not ended
 * was never begun. */
frit_status batch_end(struct device *device, struct batch *batch, uint64_t *value, frit_err *err);
/* Bytes of one of the two rings.  Waits for what is submitted to end; FRIT_BUSY where only what is
 * recorded holds them. */
frit_status queue_room(struct device *device, struct ring *ring, uint64_t bytes, uint64_t align,
                       void *into, uint64_t *offset, frit_err *err);
/* Waits until `value` is reached, without the lock or with it. */
frit_status queue_await(struct device *device, uint64_t value, uint64_t timeout_ns, frit_err *err);
/* The same under the lock, for room in the queue itself; notes a loss, and what is reached. */
frit_status queue_await_own(struct device *device, uint64_t value, frit_err *err);
/* Takes note of what is reached; reads that are done are copied to where they are wanted. */
void queue_refresh(struct device *device);
/* A value that is reached already; only when everything is. */
uint64_t queue_pass(struct queue *queue);
frit_status queue_lost(struct device *device, frit_err *err);
/* The device was found to be lost.  What is under way will never be told to have ended; it ends
 * here, so that what it uses can be given back.  Reads that have not arrived are wanted no more. */
void queue_lose(struct device *device);
/* FRIT_INVALID with a text for any queue but the first one, NULL. */
frit_status queue_check(const struct device *device, const frit_queue *queue, frit_err *err);
frit_status queue_check_waits(struct device *device, const frit_point *waits, uint32_t n,
                              frit_err *err);
frit_status queue_check_range(struct device *device, const frit_memory *memory, uint64_t offset,
                              uint64_t bytes, frit_err *err);

/* ---- slots of frit.backend/1; contracts there ---- */

frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
void device_close(void *self);
frit_status memory_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void memory_free(void *self, frit_memory *memory);
uint64_t memory_budget(void *self, uint32_t heap);
frit_status transfer_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                           frit_err *err);
frit_status transfer_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                          frit_err *err);
frit_status queue_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                         uint32_t stride, const frit_point *waits, uint32_t n_waits,
                         uint64_t *value, frit_err *err);
frit_status queue_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                       frit_failure *failure, frit_err *err);
frit_status backend_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status backend_op_program(void *self, const frit_op_desc *op, frit_program *out,
                               frit_err *err);

/* ---- the slot of frit.profile/1 ---- */

frit_status device_clock(void *self, frit_clock *out, frit_err *err);

/* Kernels of other plugins' programs: what kernel_load takes, and what it makes of it. */
extern const frit_str foreign_formats[1];
frit_status foreign_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                         frit_kernel **kernel, frit_err *err);
void foreign_unload(void *self, frit_kernel *kernel);

/* ---- slots of frit.capture/1 ---- */

frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err);
frit_status capture_replay(void *self, frit_recording *recording, const void *block,
                           const frit_point *waits, uint32_t n_waits, uint64_t *value,
                           frit_err *err);
void capture_release(void *self, frit_recording *recording);

/* ---- slots of frit.fuser/1 ---- */

frit_status fuser_prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                             uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err);
frit_status fuser_from_state(void *instance, const frit_fuser_device *device, frit_str name,
                             const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                             const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err);

#endif
