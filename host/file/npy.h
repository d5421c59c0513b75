/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy files: format versions 1 to 3, C and Fortran order, every dtype with a NumPy name (bf16 as
 * `V2`).  Big-endian, object, structured, text, complex and time types are rejected by name.
 *
 * Files are not trusted: nothing is read beyond the end, and allocations are not larger than the
 * file.  Thread-safe. */
#ifndef FILE_NPY_H
#define FILE_NPY_H

#include "graph/op.h"

enum {
    NPY_HEAD_MAX = 65536
}; /* largest header that is read, including magic, version and length */

/* The contents of a header. */
struct npy {
    struct op_type type;
    bool fortran;    /* elements are in column-major order */
    uint64_t offset; /* of the elements in the file */
    uint64_t bytes;  /* of the elements */
};

/* Parses the header from the first `count` bytes of a file of `file_bytes` bytes; `count` must be
 * file_bytes or at least NPY_HEAD_MAX.  FRIT_INVALID: not a NumPy file, or truncated;
 * FRIT_UNSUPPORTED: a type or version that Frit does not support. */
frit_status npy_parse(const void *head, size_t count, uint64_t file_bytes, struct npy *out,
                      frit_err *err);

/* Reads the type and the elements, dense and row-major, of a regular file, or of a tensor in an
 * archive by a path "ARCHIVE.npz:NAME".  The caller frees
 * `*data`, which is not NULL even without elements; NULL on failure.  Error messages begin with the
 * path. */
frit_status npy_read_file(const char *path, struct op_type *type, void **data, frit_err *err);

/* Makes elements as they lie in a file dense and row-major, bools 0 or 1; may replace `*data`,
 * which stays the caller's also on failure. */
frit_status npy_arrange(const struct npy *npy, void **data, frit_err *err);

/* Reads only the type; the file must be complete nevertheless. */
frit_status npy_read_type(const char *path, struct op_type *type, frit_err *err);

/* Writes dense row-major elements as version 1.  Atomic: the file has either its old or its
 * complete new contents. */
frit_status npy_write_file(const char *path, const struct op_type *type, const void *data,
                           frit_err *err);

/* Formats the header of npy_write_file; returns its length, a multiple of 64, or 0 if NumPy has no
 * name for the type. */
enum { NPY_HEAD_OUT = 256 };
size_t npy_format(const struct op_type *type, char head[NPY_HEAD_OUT]);

#endif
