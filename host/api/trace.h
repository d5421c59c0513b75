/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of a device; see frit_trace_start. */
#ifndef API_TRACE_H
#define API_TRACE_H

#include <frit/frit.h>
#include <frit/inspect.h>
#include <frit/status.h>

/* Starts a trace and makes its folder; FRIT_BUSY if one is running. */
frit_status trace_begin(frit_device *device, const char *folder, frit_err *err);
/* trace_begin in FOLDER/reference-0 (the name of the device); makes both folders. */
frit_status trace_begin_in(frit_device *device, const char *folder, frit_err *err);
/* Stops the trace and writes it; FRIT_INVALID if none is running. */
frit_status trace_end(frit_device *device, frit_err *err);

#endif
