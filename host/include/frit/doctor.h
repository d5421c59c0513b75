/* SPDX-License-Identifier: Apache-2.0 */
/* Health: the library that runs, the files that a host uses, and plugin files that are not loaded.
 * For `frit doctor` and other tools. */
#ifndef FRIT_DOCTOR_H
#define FRIT_DOCTOR_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the library ---- */

/* How the library at run time was built. */
typedef struct frit_build_desc {
    uint64_t struct_size;
    const char *version;
    const char *path;          /* of the file that is loaded; "" if unknown */
    const char *compiler;      /* "gcc 12.2.0" */
    const char *sanitizer;     /* "no sanitizer", "the address sanitizer" ... */
    uint32_t abi_min, abi_max; /* versions of the contract that it speaks: major << 16 | minor */
} frit_build_desc;

/* FRIT_INVALID without a struct_size. */
frit_status frit_build(frit_build_desc *out);

/* ---- places ---- */

enum {
    FRIT_PLACE_CONFIG = 1,    /* a configuration file that was read */
    FRIT_PLACE_PLUGINS = 2,   /* a folder that was searched for plugins */
    FRIT_PLACE_PLANS = 3,     /* the file of plans that are kept */
    FRIT_PLACE_ARTEFACTS = 4, /* the folder of compiled code and results of probes that are kept */
    FRIT_PLACE_DECISIONS = 5  /* the file of the tuner's decisions that are kept */
};

/* A file or folder that a host uses; kept ones are made when they are first needed. */
typedef struct frit_place_desc {
    uint64_t struct_size;
    uint32_t kind; /* FRIT_PLACE_* */
    uint32_t reserved;
    const char *path; /* absolute, unless FRIT_CONFIG has another one */
    const char
        *origin; /* what names it: "built in", "environment FRIT_PLUGIN_PATH", FILE:LINE; "" */
    const char *trouble; /* why it could not be searched; "" if it was, or is of another kind */
    uint64_t max_bytes;  /* that it is kept below; 0: no limit */
} frit_place_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_place_at(frit_host *host, uint64_t index, frit_place_desc *out);

/* What a person can do about a FRIT_REASON_*; "" where the reason's words say all. */
const char *frit_reason_advice(uint32_t reason);

/* ---- plugin files ---- */

/* A file as it lies there, read without running any code of it. */
typedef struct frit_plugin_file frit_plugin_file;

/* Reads it.  A file that does not exist or is no plugin is read too: frit_plugin_file_about says
 * what is wrong with it.  FRIT_NO_HOST_MEMORY. */
FRIT_NODISCARD frit_status frit_plugin_file_read(const char *path, frit_plugin_file **out,
                                                 frit_err *err);
void frit_plugin_file_free(frit_plugin_file *file); /* NULL does nothing */

enum {
    FRIT_FILE_NOTE = 1,     /* has the note of FRIT_DEFINE_PLUGIN */
    FRIT_FILE_SYMBOLS = 2,  /* its exported symbols are known */
    FRIT_FILE_RELRO = 4,    /* what the loader relocates is read-only afterwards */
    FRIT_FILE_BIND_NOW = 8, /* all symbols are bound when it is loaded */
    FRIT_FILE_STAYS = 16,   /* is never unloaded */
    FRIT_FILE_EXECUTABLE_STACK = 32,
    FRIT_FILE_TEXT_RELOCATIONS = 64,
    FRIT_FILE_WRITABLE_CODE = 128, /* a segment is both written and run */
    FRIT_FILE_STATIC_TLS = 256,    /* uses static thread-local storage */
    FRIT_FILE_OLD_RPATH = 512,     /* `runpath` is a DT_RPATH */
    FRIT_FILE_IBT = 1024,          /* compiled for indirect branch tracking */
    FRIT_FILE_SHADOW_STACK = 2048  /* compiled for shadow stacks */
};

typedef struct frit_plugin_file_desc {
    uint64_t struct_size;
    const char *path; /* real and absolute, if there is such a file */
    const char *id;   /* these four from its note, "" without one */
    const char *version;
    const char *runtimes;  /* of vendors, that it opens by itself */
    const char *isa;       /* sets of instructions that it needs */
    const char *sanitizer; /* as in frit_build_desc; "" without a note */
    const char *build_id;  /* hexadecimal; "" without one */
    const char *soname;
    const char *runpath;
    uint32_t abi_min, abi_max; /* of its note */
    uint32_t flags;            /* FRIT_FILE_* */
    uint32_t n_exports;        /* dynamic symbols, with frit_plugin_entry_v1 */
    uint64_t bytes;
    uint32_t reason; /* FRIT_REASON_* why this library would not load it; 0: it would */
    uint32_t reserved;
    const char *reason_name;
    const char *detail; /* the reason in words; may be "" */
} frit_plugin_file_desc;

frit_status frit_plugin_file_about(const frit_plugin_file *file, frit_plugin_file_desc *out);

/* A library that it is linked to. */
typedef struct frit_needed_desc {
    uint64_t struct_size;
    const char *name; /* "libm.so.6" */
    const char *path; /* where the dynamic loader would find it; "" if nowhere */
} frit_needed_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_plugin_file_needed_at(const frit_plugin_file *file, uint64_t index,
                                       frit_needed_desc *out);
/* A symbol that it exports beside frit_plugin_entry_v1; NULL beyond the last, or the sixteenth. */
const char *frit_plugin_file_export_at(const frit_plugin_file *file, uint64_t index);

/* What happened when the file was tried. */
typedef struct frit_probe_desc {
    uint64_t struct_size;
    uint32_t reason; /* FRIT_REASON_* why it is not used, or has no devices; 0: it is, and has */
    uint32_t n_devices;
    const char *reason_name;
    const char *detail;  /* the reason in words; may be "" */
    const char *changes; /* what it changed in the process that is not its own; "" if nothing */
    double seconds;
} frit_probe_desc;

/* Tries the file in a process of its own: it is loaded, opened, its devices are listed, and it is
 * closed.  `params` as for frit_host_open, for the options of the plugin; NULL: all defaults.  The
 * result is not kept, and no failure of the plugin is one of the call. */
FRIT_NODISCARD frit_status frit_plugin_file_probe(frit_plugin_file *file,
                                                  const frit_host_params *params,
                                                  frit_probe_desc *out, frit_err *err);

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
