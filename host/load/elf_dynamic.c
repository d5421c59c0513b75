/* SPDX-License-Identifier: Apache-2.0 */
/* What a file wants from the dynamic loader, and what it exports. */
#include "load/elf_dynamic.h"

#include <string.h>

#include "load/elf.h"
#include "load/elf_file.h"

enum { ENTRIES = 512, SECTIONS = 1024, SYMBOLS_AT_ONCE = 128 };

/* The values of the dynamic section that count; texts are offsets into the table of strings. */
struct dynamic {
    uint64_t strings;
    uint64_t needed[ELF_NEEDED];
    uint32_t n_needed;
    uint64_t soname, runpath, rpath;
    bool has_soname, has_runpath, has_rpath, has_strings;
};

static void take_entry(const Elf64_Dyn *entry, struct dynamic *dynamic, struct elf_facts *out)
{
    const uint64_t value = entry->d_un.d_val;

    switch (entry->d_tag) {
    case DT_STRTAB:
        dynamic->strings = value;
        dynamic->has_strings = true;
        break;
    case DT_NEEDED:
        if (dynamic->n_needed < ELF_NEEDED)
            dynamic->needed[dynamic->n_needed++] = value;
        break;
    case DT_SONAME:
        dynamic->soname = value;
        dynamic->has_soname = true;
        break;
    case DT_RUNPATH:
        dynamic->runpath = value;
        dynamic->has_runpath = true;
        break;
    case DT_RPATH:
        dynamic->rpath = value;
        dynamic->has_rpath = true;
        break;
    case DT_BIND_NOW:
        out->bind_now = true;
        break;
    case DT_FLAGS_1:
        out->bind_now |= (value & DF_1_NOW) != 0;
        out->stays |= (value & DF_1_NODELETE) != 0;
        break;
    case DT_TEXTREL:
        out->text_relocations = true;
        break;
    case DT_FLAGS:
        out->text_relocations |= (value & DF_TEXTREL) != 0;
        out->static_tls |= (value & DF_STATIC_TLS) != 0;
        out->bind_now |= (value & DF_BIND_NOW) != 0;
        break;
    default:
        break;
    }
}

static bool read_text(const struct elf_file *file, const struct dynamic *dynamic, uint64_t at,
                      char *into, size_t size)
{
    uint64_t table = elf_file_offset(file, dynamic->strings);

    return dynamic->has_strings && table != UINT64_MAX && at < file->bytes &&
           elf_file_text(file, table + at, into, size);
}

static const char *read_texts(const struct elf_file *file, const struct dynamic *dynamic,
                              struct elf_facts *out)
{
    bool good = true;

    for (uint32_t i = 0; i < dynamic->n_needed && good; i++, out->n_needed++)
        good = read_text(file, dynamic, dynamic->needed[i], out->needed[i], ELF_NAME);
    if (dynamic->has_soname)
        good = good && read_text(file, dynamic, dynamic->soname, out->soname, ELF_NAME);
    if (dynamic->has_runpath || dynamic->has_rpath)
        good = good &&
               read_text(file, dynamic, dynamic->has_runpath ? dynamic->runpath : dynamic->rpath,
                         out->runpath, ELF_PATH);
    out->has_old_rpath = dynamic->has_rpath && !dynamic->has_runpath;
    return good ? NULL : "has a dynamic section whose texts lie outside the file";
}

static const char *read_section(const struct elf_file *file, const Elf64_Phdr *segment,
                                struct elf_facts *out)
{
    struct dynamic dynamic = {0};
    uint64_t n = segment->p_filesz / sizeof(Elf64_Dyn);

    for (uint64_t i = 0; i < n && i < ENTRIES; i++) {
        Elf64_Dyn entry;

        if (!elf_file_read(file, segment->p_offset + i * sizeof(entry), &entry, sizeof(entry)))
            return "has a dynamic section that is cut off";
        if (entry.d_tag == DT_NULL)
            break;
        take_entry(&entry, &dynamic, out);
    }
    return read_texts(file, &dynamic, out);
}

/* ---- exported symbols ---- */

/* The loader needs no sections, so a file without them is no worse. */
static bool find_symbols(const struct elf_file *file, Elf64_Shdr *symbols, Elf64_Shdr *strings)
{
    const Elf64_Ehdr *header = &file->header;
    const uint64_t size = sizeof(Elf64_Shdr);

    if (header->e_shentsize != size || header->e_shnum > SECTIONS || header->e_shoff > file->bytes)
        return false;
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        if (!elf_file_read(file, header->e_shoff + i * size, symbols, size))
            return false;
        if (symbols->sh_type == SHT_DYNSYM)
            return symbols->sh_entsize == sizeof(Elf64_Sym) && symbols->sh_link < header->e_shnum &&
                   elf_file_read(file, header->e_shoff + symbols->sh_link * size, strings, size);
    }
    return false;
}

static void take_symbol(const struct elf_file *file, const Elf64_Sym *symbol,
                        const Elf64_Shdr *strings, struct elf_facts *out)
{
    char name[ELF_NAME];

    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ||
        ELF64_ST_VISIBILITY(symbol->st_other) != STV_DEFAULT)
        return;
    out->n_exports++;
    if (strings->sh_offset >= file->bytes || symbol->st_name >= strings->sh_size ||
        !elf_file_text(file, strings->sh_offset + symbol->st_name, name, sizeof(name)))
        return;
    if (strcmp(name, FRIT_PLUGIN_ENTRY) == 0)
        out->has_entry = true;
    else if (out->n_extra < ELF_EXTRA)
        memcpy(out->extra[out->n_extra++], name, sizeof(name));
}

static void count_exports(const struct elf_file *file, struct elf_facts *out)
{
    Elf64_Sym symbols[SYMBOLS_AT_ONCE];
    Elf64_Shdr table, strings;
    uint64_t n;

    if (!find_symbols(file, &table, &strings))
        return;
    n = table.sh_size / sizeof(symbols[0]);
    if (n > ELF_EXPORTS)
        n = ELF_EXPORTS;
    for (uint64_t i = 0; i < n;) {
        uint64_t count = n - i < SYMBOLS_AT_ONCE ? n - i : SYMBOLS_AT_ONCE;

        if (!elf_file_read(file, table.sh_offset + i * sizeof(symbols[0]), symbols,
                           count * sizeof(symbols[0])))
            return;
        for (uint64_t k = 0; k < count; k++)
            take_symbol(file, &symbols[k], &strings, out);
        i += count;
    }
    out->keeps_sections = true;
}

const char *elf_read_dynamic(const struct elf_file *file, struct elf_facts *out)
{
    for (uint32_t i = 0; i < file->n_segments; i++) {
        const char *trouble = NULL;

        if (file->segment[i].p_type == PT_DYNAMIC)
            trouble = read_section(file, &file->segment[i], out);
        if (trouble)
            return trouble;
    }
    count_exports(file, out);
    return NULL;
}
