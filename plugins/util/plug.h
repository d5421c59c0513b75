/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a plugin keeps of its host, and how it says what is wrong.  Constant once open; threads:
 * any. */
#ifndef UTIL_PLUG_H
#define UTIL_PLUG_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/backend.h>

struct plug {
    const char *name; /* in texts */
    const frit_host_root *host;
    const frit_host_core *core;
    const frit_host_trace *trace; /* NULL: the host records nothing */
};

/* A table of the host, NULL if it is absent or shorter than `needed`. */
const void *plug_table(const frit_host_root *host, frit_str id, uint32_t needed);
/* FRIT_INCOMPATIBLE without the core table. */
frit_status plug_init(struct plug *plug, const char *name, const frit_host_root *host);

/* Writes "NAME: text" to the caller's slot and returns `status`. */
frit_status plug_fail(const struct plug *plug, frit_err *err, frit_status status,
                      const char *format, ...) FRIT_PRINTF(4, 5);
/* Copies the status and the text of `from` to the caller's `err`, which may be NULL. */
void plug_copy_err(const struct plug *plug, frit_err *err, const frit_err *from);

/* Host memory, NULL where there is none. */
void *plug_alloc(const struct plug *plug, uint64_t bytes, uint64_t align);
void plug_free(const struct plug *plug, void *memory); /* NULL does nothing */
/* The same for any type, zeroed. */
void *plug_zalloc(const struct plug *plug, uint64_t bytes);
/* The same with the text "no memory for WHAT" where there is none. */
void *plug_new(const struct plug *plug, uint64_t bytes, const char *what, frit_err *err);

/* The host's monotonic clock in nanoseconds. */
uint64_t plug_now_ns(const struct plug *plug);

/* Spans of the timeline: plug_begin gives 0 where nothing is recorded, and then plug_end is not
 * called. */
uint64_t plug_begin(const struct plug *plug);
void plug_end(const struct plug *plug, uint64_t begun, frit_str name);
void plug_counter(const struct plug *plug, frit_str name, double value);

bool plug_is(frit_str id, frit_str name);

/* A table that the plugin offers. */
struct plug_interface {
    frit_str id;
    const void *table;
};

/* The table of an id, for the slot `get_interface`; NULL: it is not offered. */
const void *plug_find_interface(const struct plug_interface *offered, size_t n, frit_str id);

/* The values of the plugin's options; `needed` as for plug_table.  NULL with a text where the host
 * has no such table. */
const frit_host_options *plug_options(const struct plug *plug, uint32_t needed, frit_err *err);

/* Opens a plugin: allocates its instance, a struct of `bytes` bytes that begins with a struct plug,
 * and calls `read` to set the rest of it, which is zeroed.  On failure nothing is left and `*out`
 * is NULL. */
frit_status plug_open(const frit_host_root *host, const char *name, uint64_t bytes,
                      frit_status (*read)(void *instance, const frit_host_options *options,
                                          frit_err *err),
                      void **out, frit_err *err);

/* Info `i` of those that enumerate fills.  NULL with a text where it is too short for the fields
 * that our drivers set. */
frit_device_info *plug_info_at(const struct plug *plug, frit_device_info *out, uint64_t stride,
                               uint32_t i, frit_err *err);
/* FRIT_INVALID with a text for an index that none of `n` devices has. */
frit_status plug_check_index(const struct plug *plug, uint32_t index, uint32_t n, frit_err *err);
/* For device_open of a driver with `n` devices that uses none of the application's objects.
 * FRIT_INVALID for another index, FRIT_UNSUPPORTED for an object, with a text. */
frit_status plug_check_open(const struct plug *plug, uint32_t index, uint32_t n,
                            const frit_open_params *params, frit_err *err);

#endif
