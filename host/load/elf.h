/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin file says of itself, read before any code of it runs: a regular file, a shared
 * object of this library's own machine, whole; its notes and what it wants from the dynamic loader.
 * Every read is bounded, whatever the file claims. */
#ifndef LOAD_ELF_H
#define LOAD_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/plugin.h>

enum {
    ELF_NEEDED = 64,        /* needed libraries that are kept */
    ELF_NAME = 128,         /* bytes of a library's name, terminated */
    ELF_PATH = 1024,        /* bytes of a search path, terminated */
    ELF_BUILD_ID = 32,      /* bytes of a build id that are kept */
    ELF_BUILD_ID_TEXT = 72, /* bytes of its text, so that elf_identity has no holes: it is a key */
    ELF_EXPORTS = 65536,    /* dynamic symbols that are counted */
    ELF_EXTRA = 16          /* names of exports beside FRIT_PLUGIN_ENTRY that are kept */
};

/* Which file it is, and which content. */
struct elf_identity {
    uint64_t device, inode, bytes;
    int64_t changed_ns;               /* last change of its content, since 1970 */
    char build_id[ELF_BUILD_ID_TEXT]; /* hexadecimal, "" if there is none */
};

struct elf_facts {
    struct elf_identity identity;
    bool has_note;
    frit_note note; /* texts terminated; 0 where the record is shorter */
    bool executable_stack, text_relocations, static_tls;
    bool writable_code;   /* a segment that is written and run */
    bool relro, bind_now; /* relocations become read-only; all of them are made when it is loaded */
    bool stays;           /* is never unloaded (-z nodelete) */
    bool has_old_rpath;   /* `runpath` is a DT_RPATH, which its libraries inherit */
    bool guards_branches, guards_returns; /* compiled for IBT and shadow stacks (CET) */
    uint64_t tls_bytes;                   /* thread-local storage */
    uint32_t n_needed;
    char needed[ELF_NEEDED][ELF_NAME];
    char soname[ELF_NAME];
    char runpath[ELF_PATH]; /* DT_RUNPATH, else DT_RPATH; "" if there is none */
    bool keeps_sections;    /* the two counts below are known */
    bool has_entry;         /* exports FRIT_PLUGIN_ENTRY */
    uint32_t n_exports;     /* defined dynamic symbols, FRIT_PLUGIN_ENTRY included */
    uint32_t n_extra;
    char extra[ELF_EXTRA][ELF_NAME];
};

/* Returns FRIT_REASON_NONE, or NOT_FOUND, NOT_A_FILE, NOT_ELF, BAD_NOTE or LOAD_FAILED with words
 * in `text`. */
uint32_t elf_read(const char *path, struct elf_facts *out, char *text, size_t size);

#endif
