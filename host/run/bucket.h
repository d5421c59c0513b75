/* SPDX-License-Identifier: Apache-2.0 */
/* The results of all_reduce_coalesced ops in a frame: what makes an operand that ends with the op
 * writes it into its part of the result, so that nothing is copied. */
#ifndef RUN_BUCKET_H
#define RUN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct frame;
struct value;

/* Memory for a value of the frame, after frame_reserve; `out` comes with its type. */
frit_status bucket_claim(struct frame *frame, uint32_t value, bool persistent, struct value *out,
                         frit_err *err);

/* Before the first item: makes the results of a plan's ops that have such operands, and assigns
 * them their parts.  Where memory lacks, operands are copied when the op begins. */
void buckets_place(struct frame *frame);
/* After the last. */
void buckets_end(struct frame *frame);

#endif
