/* SPDX-License-Identifier: Apache-2.0 */
/* The results for a range of ops, and their execution order. */
#ifndef SEARCH_ORDER_H
#define SEARCH_ORDER_H

#include "search/block.h"

/* A list of programs with their ops, and of single ops. */
struct chunks {
    struct plan_block *items; /* their lists are in the context's arena */
    uint32_t count, capacity;
};

/* Adds a chunk; copies `ops`, and takes the program on success. */
frit_status chunks_add(struct search_ctx *ctx, struct chunks *chunks,
                       const struct plan_block *chunk, frit_err *err);

/* Sorts programs and single ops that cover the ops first .. end - 1 topologically; of ready ones
 * the one with the earliest op is first.  *is_sorted: false, and nothing changed, if there are
 * cycles.
 */
frit_status order_items(struct search_ctx *ctx, struct plan_block *items, uint32_t count,
                        uint32_t first, uint32_t end, bool *is_sorted, frit_err *err);
/* Sorts the chunks from number `begin` on, which contain the ops first .. end - 1, topologically;
 * of ready chunks the one with the earliest op is first.  To break cycles, programs are replaced by
 * single ops: one at a time, starting with the lowest score, after some attempts all that are in
 * cycles. */
frit_status order_chunks(struct search_ctx *ctx, struct chunks *chunks, uint32_t begin,
                         uint32_t first, uint32_t end, frit_err *err);

#endif
