/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a file: the linker's build id, and the record of FRIT_DEFINE_PLUGIN. */
#ifndef LOAD_ELF_NOTE_H
#define LOAD_ELF_NOTE_H

struct elf_facts;
struct elf_file;

/* Returns what is wrong with Frit's own note, NULL if nothing is. */
const char *elf_read_notes(const struct elf_file *file, struct elf_facts *out);

#endif
