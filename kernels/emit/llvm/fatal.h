/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM ends the process when it finds a defect of its own, or no memory.  With its handler
 * installed a compile ends instead.  The handler must not return, and what LLVM holds at that point
 * (locks, a half-built module) cannot be given back; so each compile has a thread of its own, which
 * the handler never lets go on: it sleeps until the process ends.  Every later compile of the
 * process is refused.  Threads: any. */
#ifndef EMIT_LLVM_FATAL_H
#define EMIT_LLVM_FATAL_H

#include <frit/status.h>

#include "emit/llvm/api.h"

/* Installs the handler.  A fatal error on a thread that is not ours ends the process as before. */
void fatal_watch(const struct ll_api *api, void *library);
/* FRIT_UNSUPPORTED with the error's text after there was one. */
frit_status fatal_check(frit_err *err);
/* Calls `run` on a thread of its own and waits.  After a fatal error in it: FRIT_UNSUPPORTED, and
 * what `run` allocated stays allocated. */
frit_status fatal_run(frit_status (*run)(void *ctx, frit_err *err), void *ctx, frit_err *err);

#endif
