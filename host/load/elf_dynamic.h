/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic section of a file, and its exported symbols. */
#ifndef LOAD_ELF_DYNAMIC_H
#define LOAD_ELF_DYNAMIC_H

struct elf_facts;
struct elf_file;

/* Returns what is wrong with it, NULL if nothing is. */
const char *elf_read_dynamic(const struct elf_file *file, struct elf_facts *out);

#endif
