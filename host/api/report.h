/* SPDX-License-Identifier: Apache-2.0 */
/* How entry points report failures.  Inside, an error slot is always there and empty at first,
 * which a caller's need not be: so entry points use one of their own and copy it at the end.  Pure.
 */
#ifndef API_REPORT_H
#define API_REPORT_H

#include <frit/status.h>

#include "base/fail.h"

/* Copies a failure to the caller's slot, if there is one; returns `status`. */
static inline frit_status report(frit_err *err, frit_status status, const frit_err *own)
{
    if (status && err)
        *err = *own;
    return status;
}

/* FRIT_INVALID: `call` got NULL where it needs `what`. */
static inline frit_status report_null(frit_err *err, const char *call, const char *what)
{
    return fail(err, FRIT_INVALID, "%s: %s is NULL", call, what);
}

#endif
