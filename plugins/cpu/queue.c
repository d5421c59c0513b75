/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: everything runs inside the call that asks for it, in order. */
#include "cpu.h"

#include "util/kernel.h"

static struct serial *queue_of(void *self)
{
    return &((struct device *)self)->queue;
}

frit_status queue_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                        frit_err *err)
{
    return serial_write(queue_of(self), to, from, value, err);
}

frit_status queue_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                       frit_err *err)
{
    return serial_read(queue_of(self), from, into, value, err);
}

frit_status queue_submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                         const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    return serial_submit(queue_of(self), cmds, count, stride, waits, n_waits, value, err);
}

/* What was handed out is reached: no timeout can pass. */
frit_status queue_wait(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *failure,
                       frit_err *err)
{
    (void)timeout_ns;
    return serial_wait(queue_of(self), value, failure, err);
}

frit_status queue_kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                              void **kernel, frit_err *err)
{
    return kernel_load(queue_of(self)->plug, format, bytes, n_bytes, kernel, err);
}

void queue_kernel_unload(void *self, void *kernel)
{
    kernel_unload(queue_of(self)->plug, kernel);
}
