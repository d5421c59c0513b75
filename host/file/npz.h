/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy archives: zip files of `.npy` files, stored or deflated.  Other entries are passed over.
 *
 * Files are not trusted: an entry that promises more bytes than its packed ones can hold is refused
 * before memory for them is allocated, and what is read is compared with its checksum.  Threads:
 * any number may read one open archive. */
#ifndef FILE_NPZ_H
#define FILE_NPZ_H

#include "file/npy.h"
#include "file/zip.h"

struct npz_entry {
    char *name; /* without .npy */
    struct zip_entry zip;
    struct npy npy;
};

struct npz_file {
    int fd;
    uint64_t bytes;
    uint32_t n_entries;
    struct npz_entry *entries; /* in the order of the directory; names differ */
};

/* Opens an archive and reads all headers.  Error messages begin with the path. */
frit_status npz_open(const char *path, struct npz_file *out, frit_err *err);
void npz_close(struct npz_file *file);

/* Reads the elements, dense and row-major; the caller frees `*data`. */
frit_status npz_read(const struct npz_file *file, const struct npz_entry *entry, void **data,
                     frit_err *err);

/* In a path "ARCHIVE.npz:NAME" the name; NULL: it is the path of a file. */
const char *npz_member(const char *path);
/* npy_read_file of a tensor in an archive, by such a path and npz_member of it; `data` NULL: only
 * its type. */
frit_status npz_read_member(const char *path, const char *member, struct op_type *type, void **data,
                            frit_err *err);

/* An archive in the making; the file has either its old or its complete new contents. */
struct npz_draft;
frit_status npz_begin(const char *path, struct npz_draft **out, frit_err *err);
/* Adds dense row-major elements, stored. */
frit_status npz_add(struct npz_draft *draft, const char *name, const struct op_type *type,
                    const void *data, frit_err *err);
/* Ends the draft in any case; without `keep` the file stays as it was. */
frit_status npz_end(struct npz_draft *draft, bool keep, frit_err *err);

#endif
