/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that nodes depend on, and which of them an output may overwrite. */
#ifndef EXPR_EXPR_ALIAS_H
#define EXPR_EXPR_ALIAS_H

struct expr;

/* Sets `inputs` of all nodes. */
void emit_inputs(struct expr *e);

#endif
