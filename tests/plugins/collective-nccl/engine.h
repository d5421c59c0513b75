/* SPDX-License-Identifier: Apache-2.0 */
/* The fakes below collective-nccl, for its own tests. */
#ifndef COLLECTIVE_NCCL_ENGINE_H
#define COLLECTIVE_NCCL_ENGINE_H

#include "plugins/collective/world.h"

#include "fake/hip/fake.h"
#include "fake/nccl/fake.h"

/* The file in tests/fake that worlds opened from now on use; "": they leave the option empty. */
void engine_use_library(const char *name);
struct fake_nccl *engine_fake(void);
/* Once a world was opened. */
struct fake_gpu *engine_gpu(void);
/* What `device` of the parameters is for this rank: one of its own, or the first one for all. */
void *engine_device(uint32_t rank);
void engine_use_one_device(bool use);
/* The device's runtime as at the start. */
void engine_mend(void);

/* A stream of the rank's device, and a call of `run` on it. */
void *engine_stream(uint32_t rank);
void engine_enqueue(uint32_t rank, void *stream, void (*run)(const void *data), const void *data,
                    uint64_t bytes);
void engine_end_stream(uint32_t rank, void *stream);

#endif
