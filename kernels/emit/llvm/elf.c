/* SPDX-License-Identifier: Apache-2.0 */
/* Lays the sections that are loaded one after the other and puts in the distances between them. All
 * of x86-64's code for small models is relative to itself, so that nothing is left to relocate.
 * The file comes from LLVM in this process: it is looked at as it is. */
#include "emit/llvm/elf.h"

#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

struct file {
    const char *bytes;
    const Elf64_Ehdr *head;
    const Elf64_Shdr *section;
    const Elf64_Sym *symbol;
    const char *names; /* of symbols */
    uint32_t n_symbols;
    uint64_t *place; /* of each section in the code */
    unsigned char *code;
    uint64_t code_bytes;
};

static bool is_loaded(const Elf64_Shdr *s)
{
    return s->sh_flags & SHF_ALLOC && s->sh_type == SHT_PROGBITS && s->sh_size;
}

static void lay_out(struct file *f)
{
    for (uint32_t i = 0; i < f->head->e_shnum; i++) {
        const Elf64_Shdr *s = &f->section[i];
        uint64_t align = s->sh_addralign > BLOB_ALIGN ? s->sh_addralign : BLOB_ALIGN;

        if (s->sh_type == SHT_SYMTAB) {
            f->symbol = (const void *)(f->bytes + s->sh_offset);
            f->n_symbols = (uint32_t)(s->sh_size / sizeof(*f->symbol));
            f->names = f->bytes + f->section[s->sh_link].sh_offset;
        }
        if (!is_loaded(s))
            continue;
        f->code_bytes = (f->code_bytes + align - 1) / align * align;
        f->place[i] = f->code_bytes;
        f->code_bytes += s->sh_size;
    }
}

static frit_status relocate(struct file *f, const Elf64_Rela *r, uint64_t section, frit_err *err)
{
    const Elf64_Sym *to = &f->symbol[ELF64_R_SYM(r->r_info)];
    uint64_t type = ELF64_R_TYPE(r->r_info), at = f->place[section] + r->r_offset, value;
    uint32_t low;

    assert(f->symbol);
    if (to->st_shndx == SHN_UNDEF || to->st_shndx >= f->head->e_shnum ||
        !is_loaded(&f->section[to->st_shndx]))
        return fail(err, FRIT_UNSUPPORTED, "the machine code needs %s", f->names + to->st_name);
    value = f->place[to->st_shndx] + to->st_value + (uint64_t)r->r_addend - at;
    if (type == R_X86_64_PC64) {
        memcpy(f->code + at, &value, sizeof(value));
        return FRIT_OK;
    }
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32)
        return fail(err, FRIT_UNSUPPORTED, "the machine code has a relocation of type %llu",
                    (unsigned long long)type);
    low = (uint32_t)value;
    memcpy(f->code + at, &low, sizeof(low));
    return FRIT_OK;
}

static frit_status relocate_all(struct file *f, frit_err *err)
{
    for (uint32_t i = 0; i < f->head->e_shnum; i++) {
        const Elf64_Shdr *s = &f->section[i];
        const Elf64_Rela *r = (const void *)(f->bytes + s->sh_offset);

        if (s->sh_type != SHT_RELA || !is_loaded(&f->section[s->sh_info]))
            continue;
        for (uint64_t k = 0; k < s->sh_size / sizeof(*r); k++)
            TRY(relocate(f, &r[k], s->sh_info, err));
    }
    return FRIT_OK;
}

static void copy_sections(struct file *f)
{
    for (uint32_t i = 0; i < f->head->e_shnum; i++)
        if (is_loaded(&f->section[i]))
            memcpy(f->code + f->place[i], f->bytes + f->section[i].sh_offset,
                   f->section[i].sh_size);
}

static void find_phases(const struct file *f, struct blob *blob)
{
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        const Elf64_Sym *s = &f->symbol[i];
        unsigned phase;

        if (ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
            sscanf(f->names + s->st_name, "p%u", &phase) == 1 && phase < blob->n_phases)
            blob->phases[phase].entry = f->place[s->st_shndx] + s->st_value;
    }
}

static frit_status link_file(struct file *f, const struct blob_phase *phases, uint32_t n_phases,
                             void **out, size_t *out_bytes, frit_err *err)
{
    size_t table = sizeof(struct blob) + n_phases * sizeof(struct blob_phase);
    struct blob *blob;
    frit_status status;

    lay_out(f);
    blob = calloc(1, table + f->code_bytes);
    if (!blob)
        return fail_memory(err, table + f->code_bytes);
    *blob = (struct blob){BLOB_MAGIC, table, f->code_bytes, n_phases};
    f->code = (unsigned char *)blob + table;
    copy_sections(f);
    status = relocate_all(f, err);
    if (status) {
        free(blob);
        return status;
    }
    memcpy(blob->phases, phases, n_phases * sizeof(*phases));
    find_phases(f, blob);
    *out = blob;
    *out_bytes = table + f->code_bytes;
    return FRIT_OK;
}

frit_status elf_link(const void *file, size_t n, const struct blob_phase *phases, uint32_t n_phases,
                     void **out, size_t *out_bytes, frit_err *err)
{
    struct file f = {.bytes = file, .head = file};
    frit_status status;

    if (n < sizeof(*f.head) || memcmp(file, ELFMAG, SELFMAG) != 0 || f.head->e_machine != EM_X86_64)
        return fail(err, FRIT_UNSUPPORTED, "LLVM made no object file for x86-64");
    f.section = (const void *)(f.bytes + f.head->e_shoff);
    f.place = calloc(f.head->e_shnum, sizeof(*f.place));
    if (!f.place)
        return fail_memory(err, f.head->e_shnum * sizeof(*f.place));
    status = link_file(&f, phases, n_phases, out, out_bytes, err);
    free(f.place);
    return status;
}
