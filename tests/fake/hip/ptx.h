/* SPDX-License-Identifier: Apache-2.0 */
/* PTX as C for the host, as far as the tests write PTX: one kernel without calls, loops, barriers
 * and shared memory. */
#ifndef FAKE_HIP_PTX_H
#define FAKE_HIP_PTX_H

#include <stdbool.h>

#include "base/str.h"

bool ptx_is(const char *text);
/* Appends the kernel as a function that runs a block (text.h).  False: the text has something that
 * is not known; *out is of no use then. */
bool ptx_add(struct str *out, const char *text);

#endif
