/* SPDX-License-Identifier: Apache-2.0 */
/* The instance, its tables, and its devices. */
#ifndef KIT_DRIVER_H
#define KIT_DRIVER_H

struct kit_device;

/* The generation of some code of the device has grown.  Threads: any. */
void kit_improved(const struct kit_device *device);

#endif
