/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* For engines: one operation as a rank began it. */
#ifndef UTIL_OPERATION_H
#define UTIL_OPERATION_H

#include <stdbool.h>

#include <frit/collective.h>

#include "util/plug.h"

struct operation {
    uint32_t kind, combine, root;
    char note[FRIT_COLLECTIVE_NOTE];
    uint32_t n_buffers, capacity; /* of `buffers`, which is kept for later operations */
    frit_collective_buffer *buffers;
};

/* What an operation is checked against. */
struct operation_limits {
    uint32_t rank, size;                 /* of the group */
    bool (*can_combine)(uint32_t dtype); /* elements of which types the engine can combine */
};

/* FRIT_INVALID or FRIT_UNSUPPORTED, as it depends on the operation and the limits alone. */
frit_status operation_check(const struct plug *plug, const frit_collective_op *op,
                            const struct operation_limits *limits, frit_err *err);
/* Whether operations of this kind combine elements. */
bool operation_combines(uint32_t kind);
/* Copies the operation, which was checked.  Allocates only for more buffers than ever before. */
frit_status operation_copy(const struct plug *plug, const frit_collective_op *op,
                           struct operation *out, frit_err *err);
void operation_free(const struct plug *plug, struct operation *operation);

/* Whether both are the same but for addresses; else `*buffer` is the first that differs. */
bool operation_equal(const struct operation *a, const struct operation *b, uint32_t *buffer);
/* "all_reduce(sum, 6 f32)", with its note if `with_note`; of several buffers it shows this one. */
void operation_print(const struct operation *operation, uint32_t buffer, bool with_note, char *text,
                     size_t size);

#endif
