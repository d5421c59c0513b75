/* SPDX-License-Identifier: Apache-2.0 */
/* Why queued ops are run; counted per device. */
#ifndef DEVICE_DRAIN_CAUSE_H
#define DEVICE_DRAIN_CAUSE_H

enum drain_cause { DRAIN_READ, DRAIN_SYNC, DRAIN_SHARE, DRAIN_FULL, DRAIN_SCOPE, DRAIN_CAUSES };

#endif
