/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that rows need besides their arguments, known when a launch is prepared. */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include <frit/program.h>

/* What a row with these needs (ROW_*) takes for a launch. */
uint64_t workspace_bytes(uint32_t needs, const frit_signature *sig);
/* Bytes of an output in doubles; 0 where its own type is as good, or it is not wanted. */
uint64_t workspace_wide(uint32_t dtype, uint32_t rank, const int64_t *dims);

#endif
