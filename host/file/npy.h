/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy files: format versions 1 to 3, C and Fortran order, every element type that has a NumPy
 * name (bf16 as `V2`).  Big-endian, object, structured, text, complex and time types are refused by
 * name.
 *
 * Nothing in a file is trusted: nothing is read beyond it, and no allocation is larger than what
 * the file holds. Threads: any. */
#ifndef FILE_NPY_H
#define FILE_NPY_H

#include "graph/op.h"

enum { NPY_HEAD_MAX = 65536 }; /* longest header that is read, with what stands before it */

/* What a header says. */
struct npy {
    struct op_type type;
    bool fortran;    /* the first dim varies fastest */
    uint64_t offset; /* of the elements in the file */
    uint64_t bytes;  /* of the elements */
};

/* Reads the header from the first `count` bytes of a file of `file_bytes`; `count` is all of it, or
 * at least NPY_HEAD_MAX.  FRIT_INVALID for what is no such file or is cut short, FRIT_UNSUPPORTED
 * for what Frit does not hold. */
frit_status npy_parse(const void *head, size_t count, uint64_t file_bytes, struct npy *out,
                      frit_err *err);

/* Reads type and dense row-major elements of a regular file; `*data` is malloc'd for the caller,
 * not NULL also for no elements, and NULL on failure.  The text of a failure begins with the path.
 */
frit_status npy_read_file(const char *path, struct op_type *type, void **data, frit_err *err);

/* Reads only the type; the file must be as whole as for npy_read_file. */
frit_status npy_read_type(const char *path, struct op_type *type, frit_err *err);

/* Writes dense row-major elements as version 1.  The file appears whole under its name or not at
 * all; what had the name before stays until then. */
frit_status npy_write_file(const char *path, const struct op_type *type, const void *data,
                           frit_err *err);

/* The header of npy_write_file into `head` (room for NPY_HEAD_OUT); its length, a multiple of 64,
 * or 0 for a type that NumPy has no name for. */
enum { NPY_HEAD_OUT = 256 };
size_t npy_format(const struct op_type *type, char head[NPY_HEAD_OUT]);

#endif
