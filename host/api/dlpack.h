/* SPDX-License-Identifier: Apache-2.0 */
/* What imports and exports by DLPack share: element types, and the two structs as one. */
#ifndef API_DLPACK_H
#define API_DLPACK_H

#include <stdbool.h>

#include <frit/dlpack.h>

/* The type of DLPack; false: it has none. */
bool dlpack_type(uint32_t dtype, frit_dl_type *out);
/* The type of Frit; FRIT_NO_DTYPE: it has none. */
uint32_t dlpack_dtype(const frit_dl_type *type);

/* Where the memory of a device is, for other libraries: the host's where they do not know it. */
frit_dl_device dlpack_place(const frit_device *device);

#endif
