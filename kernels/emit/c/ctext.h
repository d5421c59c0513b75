/* SPDX-License-Identifier: Apache-2.0 */
/* C-like text of a module in the grouped form: a group is threads that each do some neighbouring
 * lanes, and wait for each other at barriers.
 *
 * The text of a phase is written once, in terms of a few words that the text's head defines:
 * FOR_THREADS, FOR_LANES, HELD, MINE, BARRIER, EXCHANGE.  Here they make C for a thread that does a
 * whole group: every region between two of the group's ops becomes a loop over threads and lanes
 * (loop fission), and values that live longer are arrays.  On a device the same words are the
 * device's threads and registers.  Pure; any thread. */
#ifndef EMIT_C_CTEXT_H
#define EMIT_C_CTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

#include "base/str.h"

#include "ir/kir.h"

/* Appends the text of a verified module, which needs no headers.  It has a function per phase,
 *
 *     void NAME_0(const u64 *words, void *const *args, const u32 *group, void *scratch)
 *
 * that runs one group; `name` is an identifier, `threads` of a group a power of two, at most as
 * many as there are lanes.  FRIT_NO_HOST_MEMORY: *out has some of it. */
frit_status ctext_emit(const struct kir_module *module, const char *name, uint32_t threads,
                       struct str *out, frit_err *err);

/* Bytes of the group's tiles, which `scratch` has, aligned to 8. */
size_t ctext_scratch(const struct kir_module *module, uint32_t phase);

#endif
