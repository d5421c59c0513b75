/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/kernel.h"

#include <inttypes.h>
#include <string.h>

struct frit_kernel {
    frit_host_fn fn;
};

const frit_str kernel_formats[1] = {{FRIT_FORMAT_HOST_FN, sizeof FRIT_FORMAT_HOST_FN - 1}};

frit_status kernel_load(const struct plug *plug, frit_str format, const void *bytes,
                        uint64_t n_bytes, frit_kernel **kernel, frit_err *err)
{
    frit_kernel *made;
    frit_host_fn fn = {0};

    *kernel = NULL;
    if (!plug_is(format, kernel_formats[0]))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "kernels of format '%.*s'; it takes " FRIT_FORMAT_HOST_FN,
                         (int)(format.len < 32 ? format.len : 32), format.ptr ? format.ptr : "");
    if (bytes)
        memcpy(&fn, bytes, n_bytes < sizeof fn ? n_bytes : sizeof fn);
    if (n_bytes < fn.struct_size || !FRIT_HAS(&fn, frit_host_fn, ctx) || !fn.run)
        return plug_fail(plug, err, FRIT_INVALID,
                         "a " FRIT_FORMAT_HOST_FN " of %" PRIu64
                         " bytes that says %u, of %zu, or without a function",
                         n_bytes, fn.struct_size, sizeof fn);
    made = plug_alloc(plug, sizeof *made, _Alignof(frit_kernel));
    if (!made)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a kernel");
    made->fn = fn;
    *kernel = made;
    return FRIT_OK;
}

void kernel_unload(const struct plug *plug, frit_kernel *kernel)
{
    plug_free(plug, kernel);
}

frit_status kernel_check(const struct plug *plug, const frit_cmd *cmd, frit_err *err)
{
    if (FRIT_HAS(cmd, frit_cmd, group) && cmd->kernel && cmd->launch)
        return FRIT_OK;
    return plug_fail(plug, err, FRIT_INVALID, "a DISPATCH of %u bytes without its kernel or launch",
                     cmd->struct_size);
}

frit_status kernel_run(const frit_cmd *cmd, frit_err *err)
{
    const frit_host_fn *fn = &cmd->kernel->fn;

    return fn->run(fn->ctx, cmd->launch, err);
}
