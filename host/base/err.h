/* SPDX-License-Identifier: Apache-2.0 */
/* An empty error where ops and launches pass: ERR_INIT (base/fail.h) clears half a kilobyte. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <frit/status.h>

/* Sets what readers look at: the text ends where it begins. */
static inline void err_init(frit_err *err)
{
    err->struct_size = sizeof(*err);
    err->status = FRIT_OK;
    err->native_code = 0;
    err->text[0] = '\0';
}

#endif
