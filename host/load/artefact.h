/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins keep between processes: compiled code, pipeline caches.  A file each in one folder,
 * named by a digest over the name, which is checked in full when it is read.  What was damaged, is
 * not the user's own, or could be written by others is as if it were not there.  The folder is kept
 * below a limit: what was not read for longest goes first.  Threads and processes: any. */
#ifndef LOAD_ARTEFACT_H
#define LOAD_ARTEFACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

struct artefact_name {
    const char *space; /* whose it is, and of which build */
    frit_str subspace; /* said by the plugin */
    const void *key;
    uint64_t n_key;
};

/* malloc'd bytes; NULL and FRIT_OK: there is none. */
frit_status artefact_get(const char *folder, const struct artefact_name *name, void **bytes,
                         uint64_t *n_bytes, frit_err *err);
/* The same of a record of `n_bytes`, into `out`.  False: there is none of this size. */
bool artefact_get_record(const char *folder, const struct artefact_name *name, void *out,
                         uint64_t n_bytes);
/* Makes the folder.  An older one of the name is replaced whole.  `limit`: bytes of the folder. */
frit_status artefact_put(const char *folder, uint64_t limit, const struct artefact_name *name,
                         const void *bytes, uint64_t n_bytes, frit_err *err);

/* ---- whole files, for other machines ---- */

typedef frit_status artefact_visit(void *ctx, const void *file, size_t n_bytes, frit_err *err);

/* Calls `visit` for the file of each artefact of the space, in the order of their names; the first
 * failure ends it. */
frit_status artefact_each(const char *folder, const char *space, artefact_visit *visit, void *ctx,
                          frit_err *err);
/* Puts such a file.  FRIT_INVALID if it is not as it was written, or not of the space. */
frit_status artefact_put_file(const char *folder, uint64_t limit, const char *space,
                              const void *file, size_t n_bytes, frit_err *err);

#endif
