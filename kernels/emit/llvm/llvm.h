/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code for modules, by LLVM, which is opened at run time.
 *
 * A phase becomes one function that runs a group.  Its lanes are vectors of the machine's width,
 * several per value, instruction after instruction; what is more runs chunk by chunk.  All
 * processors and both levels give the same bits.  The result is a blob without relocations that
 * blob.h maps; it depends on the module, the processor, the level and LLVM's version only. */
#ifndef EMIT_LLVM_LLVM_H
#define EMIT_LLVM_LLVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

#include "ir/kir.h"

/* Sets of instructions, each with all before. */
enum llvm_isa { LLVM_BASE /* x86-64-v2 */, LLVM_AVX2 /* v3 */, LLVM_AVX512 /* v4 */, LLVM_ISAS };

/* A processor, as far as code is made for it. */
struct llvm_cpu {
    enum llvm_isa isa;
    bool slow_div; /* a vector's division takes as long as ten products and more */
    bool dot2;     /* with LLVM_AVX512 it has BF16's */
};

enum llvm_level {
    LLVM_QUICK, /* the least time to compile */
    LLVM_GOOD,  /* about twice of it, for better code */
    LLVM_LEVELS
};

struct llvm;

/* Finds the library; `path` names one, NULL: those with the usual names, newest first.
 * FRIT_UNSUPPORTED with the reason where there is none that is known, or for this processor nothing
 * is made.  Not by several threads at once. */
frit_status llvm_open(const char *path, struct llvm **out, frit_err *err);
void llvm_close(struct llvm *llvm);

/* The library's file name. */
const char *llvm_version(const struct llvm *llvm);
/* The path of the file that it was loaded from; false: unknown, or longer than `size`. */
bool llvm_file(const struct llvm *llvm, char *path, size_t size);
/* The number in that name, such as 19; 0: it has none. */
uint32_t llvm_major(const struct llvm *llvm);

/* This machine's, with its best set; false: it lacks even the least. */
bool llvm_cpu_find(struct llvm_cpu *out);

/* Whether LLVM has reported a fatal error in this process: no compile succeeds any more. */
bool llvm_is_off(frit_err *err);

/* The phases of a verified module as one blob, from malloc.  FRIT_UNSUPPORTED: the set lacks an
 * instruction that the module has, the machine code needs a function, or LLVM is off.  Any number
 * of threads at once. */
frit_status llvm_compile(struct llvm *llvm, const struct kir_module *module,
                         const struct llvm_cpu *cpu, enum llvm_level level, void **out,
                         size_t *out_bytes, frit_err *err);

#endif
