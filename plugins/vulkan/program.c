/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops. */
#include <string.h>

#include "driver.h"

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    (void)self;
    (void)ops;
    (void)stride;
    (void)err;
    memset(bits, 0, (count + 63) / 64 * sizeof *bits);
    return FRIT_OK;
}

frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    struct device *device = self;

    (void)out;
    return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED, "no program for op %u",
                     op->id);
}
