/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that the program hands over: their type, their size, and what bytes mean. */
#ifndef API_SOURCE_H
#define API_SOURCE_H

#include <stdint.h>

#include <frit/frit.h>

struct op_type;

/* A type from the program.  FRIT_INVALID unless tensors can be made of it; the product of its dims
 * must not overflow, even if one of them is 0. */
frit_status source_type(uint32_t dtype, const frit_dims *dims, struct op_type *out, frit_err *err);

/* Turns a type into that of its bytes, in files that have no such element type: u8 of rank 1. */
void source_bytes_type(struct op_type *type);

/* In a bool's byte the program may have any value but 0 for true; tensors have 1. */
struct source {
    const void *data; /* the program's, or `own` */
    uint64_t bytes;
    void *own; /* a copy with other bytes than the program's; NULL: there is none */
};

/* Checks that `bytes` is the size of a dense tensor of the type, and takes the elements.
 * source_end must follow when they were copied, on failure too. */
frit_status source_begin(struct source *source, const struct op_type *type, const void *data,
                         uint64_t bytes, frit_err *err);
void source_end(struct source *source);

#endif
