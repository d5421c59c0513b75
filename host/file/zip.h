/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a zip file, from and to bytes: stored and deflated entries, with the fields of
 * 64 bits of large files.  Encrypted entries, other methods and archives in several files are
 * refused.
 *
 * Files are not trusted: nothing is read outside the given bytes, and what is accepted lies in the
 * file.  Pure. */
#ifndef FILE_ZIP_H
#define FILE_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

enum {
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8,
    ZIP_TAIL_MAX = 65535 + 22 + 20 + 56, /* where the end of a directory is looked for */
    ZIP_LOCAL = 30,                      /* bytes of a local header without its texts */
    ZIP_FORMAT_MAX = 96                  /* of a formatted header without the name */
};

/* Where the directory lies in the file. */
struct zip_directory {
    uint64_t offset, bytes, count;
};

struct zip_entry {
    const char *name; /* in the directory's bytes, not terminated */
    uint16_t name_length;
    uint16_t method;
    uint32_t crc;
    uint64_t packed, bytes; /* in the file, and unpacked */
    uint64_t local;         /* of its local header in the file */
};

/* Finds the directory from the last `count` bytes of a file of `file_bytes` bytes; `count` must be
 * file_bytes or at least ZIP_TAIL_MAX.  FRIT_INVALID: not a zip file, or damaged. */
frit_status zip_find(const void *tail, size_t count, uint64_t file_bytes, struct zip_directory *out,
                     frit_err *err);
/* Parses the entry at *at of a directory's bytes, and moves *at behind it. */
frit_status zip_next(const void *bytes, uint64_t count, uint64_t file_bytes, uint64_t *at,
                     struct zip_entry *out, frit_err *err);
/* Where the bytes of an entry begin, from its local header; they lie in the file. */
frit_status zip_data(const struct zip_entry *entry, const unsigned char local[ZIP_LOCAL],
                     uint64_t file_bytes, uint64_t *out, frit_err *err);

/* Format the headers of a stored entry and the end of a directory; they return their length.  The
 * name follows a header's first part, whose length is *head. */
size_t zip_format_local(const struct zip_entry *entry, unsigned char out[ZIP_FORMAT_MAX],
                        size_t *head);
size_t zip_format_entry(const struct zip_entry *entry, unsigned char out[ZIP_FORMAT_MAX],
                        size_t *head);
size_t zip_format_end(const struct zip_directory *directory, unsigned char out[2 * ZIP_FORMAT_MAX]);

#endif
