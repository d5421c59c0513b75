/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of one bucket. */
#ifndef DIST_BUCKET_H
#define DIST_BUCKET_H

#include "dist/reduction.h"

/* Records the reduction of the step's next bucket; `reduced` of its parameters get references. */
frit_status bucket_record(struct reduction *reduction, frit_err *err);

#endif
