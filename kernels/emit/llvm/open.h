/* SPDX-License-Identifier: Apache-2.0 */
/* The opened library, for the files of this folder. */
#ifndef EMIT_LLVM_OPEN_H
#define EMIT_LLVM_OPEN_H

#include <stdatomic.h>

#include "emit/llvm/api.h"
#include "emit/llvm/llvm.h"

struct llvm {
    void *library;
    char *own;        /* the path given to llvm_open */
    const char *name; /* that was found */
    struct ll_api api;
    /* One that no compile has at the time, or NULL: what it knows of its processor took it longer
     * to find out than a small module takes. */
    _Atomic(ll_machine) idle[LLVM_ISAS][LLVM_LEVELS];
};

#endif
