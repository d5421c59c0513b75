/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of all ops of a device; see frit_trace_start. */
#ifndef API_TRACE_H
#define API_TRACE_H

#include <frit/frit.h>
#include <frit/inspect.h>
#include <frit/status.h>

/* Makes the folder; FRIT_BUSY if there is a recording. */
frit_status trace_begin(frit_device *device, const char *folder, frit_err *err);
/* The same in FOLDER/reference-0, both made. */
frit_status trace_begin_in(frit_device *device, const char *folder, frit_err *err);
/* Ends and writes it; FRIT_INVALID if there is none. */
frit_status trace_end(frit_device *device, frit_err *err);

#endif
