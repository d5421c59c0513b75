/* SPDX-License-Identifier: Apache-2.0 */
/* The fake Vulkan loader in a test's process. */
#ifndef TEST_VULKAN_FAKE_OPEN_H
#define TEST_VULKAN_FAKE_OPEN_H

#include "fake_loader.h"

extern struct fake_loader *fake; /* once it is open */
extern char fake_path[512];      /* of the library, for the driver's option `loader` */

/* A group's setup: opens it, or fails the test. */
int fake_open(void **state);

#endif
