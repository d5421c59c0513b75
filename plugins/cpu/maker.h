/* SPDX-License-Identifier: Apache-2.0 */
/* Which LLVM code is made by, as a word of the key of cached code.  It is kept beside the code, so
 * that the code is found without opening the library: the file of before says by its size and time
 * whether it is still the same.  Pure but for the file system. */
#ifndef CPU_MAKER_H
#define CPU_MAKER_H

#include <stdbool.h>

struct llvm;

enum { MAKER_PATH = 1024, MAKER_TEXT = 128 };

/* All texts terminated, the rest of them zero: it is kept as bytes. */
struct maker {
    char option[MAKER_PATH]; /* the option `llvm` by which it was found */
    char path[MAKER_PATH];   /* of its file */
    char text[MAKER_TEXT];   /* the file's name, size and time; "": unknown */
};

/* Of an opened library. */
void maker_of(const struct llvm *llvm, const char *option, struct maker *out);
/* Whether a kept one is still what the option leads to, as far as can be seen without opening it;
 * true too where no library is there any more: its code runs without it. */
bool maker_is_current(const struct maker *kept, const char *option);

#endif
