/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: their enumeration, opening and closing. */
#ifndef VULKAN_DEVICE_H
#define VULKAN_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

#include "emit/spirv/spirv.h"
#include "kernels.h"

#include "api.h"
#include "queue.h"

struct adapter;
struct adopted;
struct instance;

/* An open device.  Constant while it is open, except the queue and what `pipelines_lock`
 * protects. */
struct device {
    struct kernels_device kernels;   /* the first member: see gpu/program.h */
    const struct instance *instance; /* the plugin's, or that of `adopted` */
    const struct adapter *adapter;   /* of `instance` */
    struct adopted *adopted;         /* the VkDevice is the application's; NULL: the driver's own */
    struct device_api api;
    VkDevice handle;
    struct queue queue;
    struct spirv_target target;
    pthread_mutex_t pipelines_lock; /* of the pipelines for captures, see struct kernel_code */
    bool has_pipelines_lock;        /* it is initialized */
    VkPipelineLayout pipeline_layout;
    VkPipelineCache pipeline_cache;
    uint64_t cached_bytes; /* size of the pipeline cache in the host's disk cache; 0: none */
};

/* Slots `enumerate`, `device_open`, `compute_info` and `device_close` of frit.backend/1. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
frit_status device_compute_info(void *instance, uint32_t index, frit_compute_info *out,
                                frit_err *err);
void device_close(void *self);

#endif
