/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU by CUDA's driver API. */
#ifndef DIST_DEVICE_H
#define DIST_DEVICE_H

#include <stddef.h>
#include <stdint.h>

struct device {
    void *context, *stream;
    int processors;
    char name[64];
};

/* Each ends the process with a message where the driver fails. */
uint32_t device_count(void);
/* Makes it the calling thread's. */
void device_open(struct device *device, uint32_t number);
uint64_t device_alloc(size_t bytes);
void device_free(uint64_t at);
void device_write(const struct device *device, uint64_t at, const void *from, size_t bytes);
void device_read(const struct device *device, void *to, uint64_t at, size_t bytes);
void *device_new_stream(void);
void device_synchronize(void *stream);

/* A kernel that computes for a time that `rounds` sets, on each processor, with a quarter of its
 * threads. */
void *device_spin_kernel(void);
void device_spin(const struct device *device, void *kernel, void *stream, uint64_t memory,
                 uint32_t rounds);

#endif
