/* SPDX-License-Identifier: Apache-2.0 */
/* From an object file of LLVM's to a blob. */
#ifndef EMIT_LLVM_ELF_H
#define EMIT_LLVM_ELF_H

#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

#include "emit/llvm/blob.h"

/* Functions "p0", "p1".. are the phases, of which all but the entries is given; *out is from
 * malloc.  FRIT_UNSUPPORTED: the code calls for something that is not in the file. */
frit_status elf_link(const void *file, size_t n, const struct blob_phase *phases, uint32_t n_phases,
                     void **out, size_t *out_bytes, frit_err *err);

#endif
