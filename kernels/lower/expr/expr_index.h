/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the distinct index expressions of nodes, stores, leaves and checks, and decides whether
 * 64-bit indices are needed. */
#ifndef EXPR_EXPR_INDEX_H
#define EXPR_EXPR_INDEX_H

struct expr;

/* Called by expr_settle. */
void emit_plan(struct expr *e);
/* Called by expr_fini. */
void emit_fini(struct expr *e);

#endif
