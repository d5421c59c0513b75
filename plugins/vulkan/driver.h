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

/* Memory of buffers, of buffers that the host maps, and of the two rings. */
enum memory_kind { MEMORY_DEVICE, MEMORY_MAPPED, MEMORY_STAGING, MEMORY_PARAMS };

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

/* For the files of the queue, under its lock. */

/* ---- the slot of frit.profile/1 ---- */

/* Kernels of other plugins' programs: what kernel_load takes, and what it makes of it. */
extern const frit_str foreign_formats[1];

/* ---- slots of frit.capture/1 ---- */

frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err);
void capture_release(void *self, frit_recording *recording);

#endif
