/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a file before the dynamic loader maps it. */
#ifndef LOAD_ELF_H
#define LOAD_ELF_H

#include <stddef.h>
#include <stdint.h>

/* elf.c: FRIT_REASON_NONE, NOT_FOUND, NOT_A_FILE, NOT_ELF or LOAD_FAILED with words in `text`.
 * Reads the file's headers only. */
uint32_t elf_check(const char *path, char *text, size_t size);

#endif
