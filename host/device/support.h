/* SPDX-License-Identifier: Apache-2.0 */
/* How a device would run ops, without running them: FRIT_SUPPORT_* of frit.h.  Threads: any. */
#ifndef DEVICE_SUPPORT_H
#define DEVICE_SUPPORT_H

#include <frit/frit.h>
#include <frit/op_table.h>

struct graph;

/* For f32, or the row's first type; whether the core ops of a composite one have programs is not
 * looked at. */
uint32_t support_of_row(frit_device *device, const frit_op_info *row);
/* The least direct way in which one of the ops would run; HOST: there are only views. */
uint32_t support_of_graph(frit_device *device, const struct graph *graph);

#endif
