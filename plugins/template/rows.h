/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the driver computes.  All of it on f32; the host sees to the rest. */
#ifndef ROWS_H
#define ROWS_H

#include "kit/kit.h"

/* One elementwise op, or a block of them. */
frit_status run_maps(const struct kit_call *call, frit_err *err);
frit_status run_sum(const struct kit_call *call, frit_err *err);
frit_status run_matmul(const struct kit_call *call, frit_err *err);

#endif
