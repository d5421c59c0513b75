/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the vendor's libraries. */
#ifndef HIP_LOADER_H
#define HIP_LOADER_H

struct instance;

/* Opens the runtime and the run-time compiler, and initializes the runtime.  A machine without them
 * has no adapters; the reason is then in `unavailable_reason` and `unavailable_text`. */
void loader_open(struct instance *instance);

#endif
