/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files: named dense tensors and texts ("metadata").
 *
 *     8 bytes    length of the header, little-endian
 *     header     {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *                 "__metadata__": {"KEY": "TEXT", ...}}, blanks at the end
 *     elements   row-major, little-endian; the tensors cover them without holes and overlaps
 *
 * Files are not trusted: nothing is read beyond the end, allocations are in proportion to the
 * header, and the header is checked as a whole before any tensor is used.  Thread-safe. */
#ifndef FILE_SAFETENSORS_H
#define FILE_SAFETENSORS_H

#include <frit/frit.h>

#include "graph/op.h"

struct str;

enum {
    SAFETENSORS_LENGTH_BYTES = 8,
    SAFETENSORS_HEADER_MAX = 100000000, /* the format's limit, without the length */
    SAFETENSORS_ALIGN = 64              /* of the elements in the files that we write */
};

struct safetensors_entry {
    const char *name; /* UTF-8 */
    struct op_type type;
    uint64_t begin, end; /* in bytes, from the first element of the file */
};

/* A parsed header, in the order of the file. */
struct safetensors {
    struct safetensors_entry *entries;
    frit_metadata *metadata;
    const struct safetensors_entry **by_name; /* sorted */
    uint32_t n_entries, entries_capacity;
    uint32_t n_metadata, metadata_capacity;
};

/* Parses a header without its length, for elements of `data_bytes` bytes.  `header` is changed, and
 * `out`, which points into it, needs it until safetensors_fini.  On failure `out` is empty.
 * FRIT_INVALID: not a good header; FRIT_UNSUPPORTED: an element type or a rank that Frit does not
 * have. */
frit_status safetensors_parse(char *header, size_t header_bytes, uint64_t data_bytes,
                              struct safetensors *out, frit_err *err);
void safetensors_fini(struct safetensors *file);

/* NULL: there is none of this name. */
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);

/* ---- writing ---- */

/* Checks names and element types of what is to be written, and places the elements: `order`, of one
 * number per entry, gets the entries in the order of their elements, and `begin` and `end` are set.
 * Entries whose size is a multiple of SAFETENSORS_ALIGN come first, the others by falling size of
 * an element, so that the former are aligned to it and the latter to their elements. */
frit_status safetensors_place(struct safetensors_entry *entries, uint32_t n_entries,
                              const frit_metadata *metadata, uint32_t n_metadata, uint32_t *order,
                              frit_err *err);
/* Appends length and header of placed entries; `out` is empty, and then a multiple of
 * SAFETENSORS_ALIGN. */
frit_status safetensors_format(const struct safetensors_entry *entries, uint32_t n_entries,
                               const frit_metadata *metadata, uint32_t n_metadata, struct str *out,
                               frit_err *err);

/* ---- files ---- */

struct safetensors_map;

/* A file whose elements are mapped. */
struct safetensors_file {
    struct safetensors parsed;
    char *header;
    struct safetensors_map *map;
    const char *data; /* the first element; inside the map */
};

/* Opens a regular file.  On failure `out` is empty; error messages begin with the path. */
frit_status safetensors_open_file(const char *path, struct safetensors_file *out, frit_err *err);
void safetensors_close_file(struct safetensors_file *file);
/* The map lives until the last reference is dropped; the open file has one.  Any thread. */
void safetensors_map_keep(struct safetensors_map *map);
void safetensors_map_drop(void *map);

/* Where the elements that are written come from. */
struct safetensors_source {
    /* Writes the elements of these entries to `data`, one after the other. */
    frit_status (*read)(void *ctx, const uint32_t *which, uint32_t count, void *data,
                        frit_err *err);
    void *ctx;
};

/* Writes a file; its header has the order of the entries, whose `begin` and `end` are set.  Calls
 * the source for several entries at a time, so that the file is never in memory as a whole.
 * Atomic: the file has either its old or its complete new contents. */
frit_status safetensors_write_file(const char *path, struct safetensors_entry *entries,
                                   uint32_t n_entries, const frit_metadata *metadata,
                                   uint32_t n_metadata, const struct safetensors_source *source,
                                   frit_err *err);

#endif
