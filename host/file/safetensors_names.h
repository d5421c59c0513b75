/* SPDX-License-Identifier: Apache-2.0 */
/* Names in safetensors files: of element types, of tensors, of metadata; for the parser and for the
 * writer. */
#ifndef FILE_SAFETENSORS_NAMES_H
#define FILE_SAFETENSORS_NAMES_H

#include "file/safetensors.h"

#define SAFETENSORS_METADATA "__metadata__" /* the key that names no tensor */

/* The format's name of an element type, NULL if it has none; and the type of a name, FRIT_NO_DTYPE
 * if Frit has none. */
const char *safetensors_dtype_name(uint32_t dtype);
uint32_t safetensors_dtype(const char *name);

typedef const struct safetensors_entry *entry_ref;

/* Sorts entries by name and checks that names differ; the same for the keys of metadata, which stay
 * as they are. */
frit_status safetensors_check_names(entry_ref *by_name, uint32_t n, frit_err *err);
frit_status safetensors_check_keys(const frit_metadata *metadata, uint32_t n, frit_err *err);

/* A name as messages show it. */
enum { SAFETENSORS_SHOWN = 80 };
const char *safetensors_shown(const char *name, char out[SAFETENSORS_SHOWN]);

#endif
