/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle: decisions and compiled code for machines of one kind, as one file.
 *     frit bundle 1
 *     ...                    lines of the kind (device/space.h)
 *                            an empty line
 *     decision 1 ... end     any number of records (record.h)
 *     artefact 1234          any number: the bytes follow, and an end of line
 *     end of bundle
 */
#ifndef TUNE_BUNDLE_H
#define TUNE_BUNDLE_H

#include "tune/record.h"

struct str;

/* Appends the front; records follow by tune_record_print, then artefacts. */
void bundle_begin(const char *kind, struct str *out);
void bundle_add_artefact(const void *bytes, size_t n_bytes, struct str *out);
void bundle_end(struct str *out);

/* Who gets the contents, each borrowed for the call. */
struct bundle_visitor {
    frit_status (*record)(void *ctx, const struct tune_record *record, frit_err *err);
    frit_status (*artefact)(void *ctx, const void *bytes, size_t n_bytes, frit_err *err);
    void *ctx;
};

/* Reads a bundle, which may be any bytes.  FRIT_INCOMPATIBLE if it is of another kind, FRIT_INVALID
 * if it is none, both before the visitor is called; the first failure of the visitor ends it. */
frit_status bundle_read(const char *bytes, size_t n_bytes, const char *kind,
                        const struct bundle_visitor *visitor, frit_err *err);

#endif
