/* SPDX-License-Identifier: Apache-2.0 */
/* How entry points report failures.  Internal functions need an error slot that is not NULL and
 * empty at first; the caller's may be NULL or unset.  So an entry point uses a slot of its own and
 * copies it to the caller's at the end.  Pure. */
#ifndef API_REPORT_H
#define API_REPORT_H

#include <frit/status.h>

#include "base/fail.h"
#include "base/process.h"
#include "base/thread.h"

/* Copies a failure to the caller's slot, if there is one; returns `status`. */
static inline frit_status report(frit_err *err, frit_status status, const frit_err *own)
{
    if (status && err)
        *err = *own;
    return status;
}

/* Reports that `call` got NULL for `what`: FRIT_INVALID. */
static inline frit_status report_null(frit_err *err, const char *call, const char *what)
{
    return fail(err, FRIT_INVALID, "%s: %s is NULL", call, what);
}

/* Reports that this is the child of a fork, see base/process.h: FRIT_UNSUPPORTED.  A call that gets
 * to a device without a tensor and without binding_current checks this first. */
static inline frit_status report_barred(frit_err *err, const char *call)
{
    return fail(err, FRIT_UNSUPPORTED, "%s: %s", call, PROCESS_BARRED_TEXT);
}

#endif
