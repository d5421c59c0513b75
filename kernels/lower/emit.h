/* SPDX-License-Identifier: Apache-2.0 */
/* What emitting keeps, between expr.c and expr_emit.c. */
#ifndef LOWER_EMIT_H
#define LOWER_EMIT_H

#include "lower/expr.h"

/* Called when planning ends, and by expr_fini. */
void emit_plan(struct expr *e);
void emit_fini(struct expr *e);

#endif
