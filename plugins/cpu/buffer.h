/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory; hosted_free takes it. */
#ifndef CPU_BUFFER_H
#define CPU_BUFFER_H

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);

#endif
