/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers a block and a signature to the kernels of a launch. */
#ifndef FUSE_PREPARED_H
#define FUSE_PREPARED_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

struct prepared;
struct program;

/* Lowers a program's block for a signature, whose arguments are in the order of the block.  The
 * result has references to the code of every kernel. */
frit_status prepared_create(const struct program *program, uint32_t candidate,
                            const frit_signature *sig, struct prepared **out, frit_err *err);
void prepared_destroy(void *prepared); /* NULL does nothing */
/* Whether both, of one program, run the same kernels. */
bool prepared_equals(const struct prepared *a, const struct prepared *b);

#endif
