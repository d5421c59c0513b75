/* SPDX-License-Identifier: Apache-2.0 */
/* Where the dynamic loader would find a library: for messages, since only the loader decides. */
#ifndef LOAD_LIBRARY_H
#define LOAD_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct elf_facts;
struct str;

/* Looks for a library by its soname in the order of the loader: the search path of the file that
 * needs it (may be ""; `file` replaces its $ORIGIN), LD_LIBRARY_PATH, the loader's cache, the
 * system's folders.  A name with a slash is a path.  False: it is nowhere. */
bool library_find(const char *name, const char *runpath, const char *file, char *path, size_t size);
/* Appends the names of the libraries that `facts` lists and that are nowhere, separated by ", ";
 * returns their number. */
unsigned library_list_missing(const struct elf_facts *facts, const char *file, struct str *out);

#endif
