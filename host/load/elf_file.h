/* SPDX-License-Identifier: Apache-2.0 */
/* An open ELF file and its segments, between the parts that read it. */
#ifndef LOAD_ELF_FILE_H
#define LOAD_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_SEGMENTS = 64 };

struct elf_file {
    int fd;
    uint64_t bytes;
    Elf64_Ehdr header;
    uint32_t n_segments;
    Elf64_Phdr segment[ELF_SEGMENTS]; /* each inside the file */
};

/* False: the bytes do not all lie in the file. */
bool elf_file_read(const struct elf_file *file, uint64_t offset, void *into, size_t bytes);
/* The text at `offset`, cut to `size` - 1 bytes. */
bool elf_file_text(const struct elf_file *file, uint64_t offset, char *into, size_t size);
/* The file's offset of an address, UINT64_MAX if no segment has it. */
uint64_t elf_file_offset(const struct elf_file *file, uint64_t address);

#endif
