/* SPDX-License-Identifier: Apache-2.0 */
/* What was found for a range of ops, and the order in which it runs. */
#ifndef SEARCH_ORDER_H
#define SEARCH_ORDER_H

#include "search/block.h"

/* Programs with their ops, and single ops. */
struct chunks {
    struct plan_block *items; /* their lists lie in the context's arena */
    uint32_t count, capacity;
};

/* Adds one; `ops` is copied, the program taken over on success. */
frit_status chunks_add(struct search_ctx *ctx, struct chunks *chunks,
                       const struct plan_block *chunk, frit_err *err);

/* Sorts the chunks from number `begin` on, which hold ops first .. end - 1, so that each runs after
 * what it needs, and the one with the earliest op first where there is a choice.  Programs that
 * wait for each other are given up, those that save least first and after a while all, until there
 * is an order. */
frit_status order_chunks(struct search_ctx *ctx, struct chunks *chunks, uint32_t begin,
                         uint32_t first, uint32_t end, frit_err *err);

#endif
