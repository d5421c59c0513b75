/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries of a vendor, opened when they are first needed.  They stay in the process: their
 * own threads do not survive an unload. */
#ifndef NCCL_LIBRARY_H
#define NCCL_LIBRARY_H

#include "nccl.h"
#include "vendor.h"

#include "util/plug.h"

enum { LIBRARY_PATH = 256 };

struct library {
    const struct vendor *vendor;
    bool is_loaded; /* what follows is there, and constant */
    struct nccl nccl;
    struct gpu gpu;
    char path[LIBRARY_PATH]; /* of the copy that is in the process */
    char version[32];
};

/* What the user has chosen; "" for the system's. */
struct library_options {
    frit_str library, runtime;
};

/* With a lock of the caller.  FRIT_UNSUPPORTED with what is missing; the next call tries again. */
frit_status library_load(struct library *library, const struct plug *plug,
                         const struct library_options *options, frit_err *err);

/* The device of the calling thread, which is the application's: entered before the first call of
 * the vendor's libraries, left before return.  The result of the runtime. */
int library_enter(const struct library *library, void *device, struct scope *scope);
void library_leave(const struct library *library, const struct scope *scope);

/* What the library says of a result: "unhandled system error (2), details". */
void library_result_text(const struct library *library, int result, nccl_comm comm, char *text,
                         size_t bytes);
/* What a result means for the group. */
frit_status library_status(int result);
/* The same for one of the runtime. */
frit_status library_gpu_status(int result);

#endif
