/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other libraries of the process use too (frit.extmem/1). */
#ifndef HIP_EXTMEM_H
#define HIP_EXTMEM_H

#include <frit/extmem.h>

void extmem_where(void *self, frit_extmem_where *out);
uint64_t extmem_address(void *self, frit_memory *memory);
frit_status extmem_import(void *self, const frit_extmem_desc *desc, frit_allocation *out,
                          frit_err *err);

#endif
