/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Statuses, the error slot, and why something is not there.
 *
 * A function that can fail returns a frit_status and takes a frit_err as its last argument.  The
 * slot belongs to the caller, may be NULL, and is written only on failure, through the host's
 * `err_set` by plugins.  Nothing crosses the border by exception, longjmp, abort, exit or a
 * thread-local. */
#ifndef FRIT_STATUS_H
#define FRIT_STATUS_H

#include <frit/types.h>

typedef int32_t frit_status;

enum {
#define FRIT_STATUS(value, NAME, name, meaning) FRIT_##NAME = (value),
#include <frit/status.def>
};

/* Why a plugin, driver or device is not there: FRIT_REASON_NO_RUNTIME and so on; FRIT_REASON_NONE
 * is 0. */
enum {
#define FRIT_REASON(value, NAME, name, meaning) FRIT_REASON_##NAME = (value),
#include <frit/reasons.def>
};

typedef struct frit_err {
    uint32_t struct_size;
    frit_status status;
    int64_t native_code; /* the driver's own number, 0 if none */
    char text[496];      /* terminated, UTF-8, what and where and what to do */
} frit_err;

FRIT_STATIC_ASSERT(sizeof(frit_err) == 512, "frozen");

#endif
