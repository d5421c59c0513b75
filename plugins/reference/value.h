/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type as numbers to compute with.
 *
 * A value is held in one of three kinds: float types as double, signed integers as int64_t,
 * unsigned ones and bool as uint64_t.  Storing rounds floats once, to nearest even, and keeps the
 * low bits of integers, so that 64-bit integer arithmetic gives the wrapped result of every width.
 */
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>

#include <frit/types.h>

union value {
    double real;
    int64_t sint;
    uint64_t uint;
};

enum value_kind { VALUE_REAL, VALUE_SINT, VALUE_UINT };
enum { VALUE_KINDS = 3 };

/* Elements that rows load and store at once. */
enum { VALUE_LANES = 256 };

/* Whether there is arithmetic for this element type: all but the packed ones. */
bool value_has(uint32_t dtype);
/* The kind of an element type that value_has. */
enum value_kind value_kind(uint32_t dtype);
/* Bytes of one element. */
int64_t value_size(uint32_t dtype);

/* `n` elements at `from`, `step` bytes apart (any sign; 0 repeats the first). */
void value_load(uint32_t dtype, const char *from, int64_t step, int64_t n, union value *out);
void value_store(uint32_t dtype, char *to, int64_t step, int64_t n, const union value *in);
union value value_get(uint32_t dtype, const char *from);
void value_put(uint32_t dtype, char *to, union value value);

/* What storing and loading again gives. */
union value value_round(uint32_t dtype, union value value);

/* `n` elements of `size` bytes copied as they are. */
void value_move(int64_t size, char *to, int64_t to_step, const char *from, int64_t from_step,
                int64_t n);

#endif
