/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of other plugins: functions of this process, called where the queue meets them. */
#include <inttypes.h>
#include <string.h>

#include "reference.h"

struct kernel {
    frit_host_fn fn;
};

frit_status kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                        void **kernel, frit_err *err)
{
    const struct instance *instance = ((const struct device *)self)->instance;
    const frit_str known = FRIT_STR(FRIT_FORMAT_HOST_FN);
    struct kernel *made;
    frit_host_fn fn = {0};

    *kernel = NULL;
    if (format.len != known.len || memcmp(format.ptr, known.ptr, known.len) != 0)
        return ref_fail(instance, err, FRIT_UNSUPPORTED,
                        "reference: kernels of format '%.*s'; it takes " FRIT_FORMAT_HOST_FN,
                        (int)(format.len < 32 ? format.len : 32), format.ptr ? format.ptr : "");
    if (bytes)
        memcpy(&fn, bytes, n_bytes < sizeof fn ? n_bytes : sizeof fn);
    if (n_bytes < fn.struct_size || !FRIT_HAS(&fn, frit_host_fn, ctx) || !fn.run)
        return ref_fail(instance, err, FRIT_INVALID,
                        "reference: a " FRIT_FORMAT_HOST_FN " of %" PRIu64
                        " bytes that says %u, of %zu, or without a function",
                        n_bytes, fn.struct_size, sizeof fn);
    made = instance->core->mem_alloc(instance->host->self, sizeof *made, _Alignof(struct kernel));
    if (!made)
        return ref_fail(instance, err, FRIT_NO_HOST_MEMORY, "no memory for a kernel");
    made->fn = fn;
    *kernel = made;
    return FRIT_OK;
}

void kernel_unload(void *self, void *kernel)
{
    const struct instance *instance = ((const struct device *)self)->instance;

    instance->core->mem_free(instance->host->self, kernel);
}

frit_status kernel_check(const struct instance *instance, const frit_cmd *cmd, frit_err *err)
{
    if (!FRIT_HAS(cmd, frit_cmd, group) || !cmd->kernel || !cmd->launch)
        return ref_fail(instance, err, FRIT_INVALID,
                        "reference: a DISPATCH of %u bytes without its kernel or launch",
                        cmd->struct_size);
    return launch_check(instance, "a kernel", cmd->launch, err);
}

frit_status kernel_run(const frit_cmd *cmd, frit_err *err)
{
    const struct kernel *kernel = cmd->kernel;

    return kernel->fn.run(kernel->fn.ctx, cmd->launch, err);
}
