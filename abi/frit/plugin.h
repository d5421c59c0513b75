/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How host and plugin meet.
 *
 * A plugin is a shared object with one exported symbol, frit_plugin_entry_v1, written by
 * FRIT_DEFINE_PLUGIN.  It imports nothing from the host.  The entry only negotiates: no I/O, no
 * thread, no device; it may be called again, also for another host of the same process.  Everything
 * that lives hangs off the instance that `open` returns; plugins are never unloaded. */
#ifndef FRIT_PLUGIN_H
#define FRIT_PLUGIN_H

#include <frit/host.h>

#define FRIT_PLUGIN_ENTRY "frit_plugin_entry_v1"

enum { FRIT_HELLO_MAGIC = 0x31485246, FRIT_WELCOME_MAGIC = 0x31575246 }; /* "FRH1", "FRW1" */

enum {
    FRIT_SANITIZER_NONE = 0,
    FRIT_SANITIZER_ADDRESS = 1,
    FRIT_SANITIZER_MEMORY = 2,
    FRIT_SANITIZER_THREAD = 3
};

/* The host calls the entry with a hello, and the entry fills the welcome.  Both are frozen for the
 * whole major version: they are used before the sides agree. */
typedef struct frit_hello {
    uint32_t struct_size;
    uint32_t magic; /* FRIT_HELLO_MAGIC */
    uint32_t abi_min;
    uint32_t abi_max;
    uint32_t sanitizer; /* FRIT_SANITIZER_* of the host */
    uint32_t reserved;
} frit_hello;

struct frit_plugin;

typedef struct frit_welcome {
    uint32_t struct_size;
    uint32_t magic; /* FRIT_WELCOME_MAGIC */
    uint32_t abi_min;
    uint32_t abi_max;
    uint32_t abi_chosen; /* the smaller of the maxima, 0 when refused */
    uint32_t sanitizer;
    const struct frit_plugin *plugin; /* static storage */
} frit_welcome;

enum { FRIT_OPTION_STR = 1, FRIT_OPTION_I64 = 2, FRIT_OPTION_F64 = 3, FRIT_OPTION_BOOL = 4 };

/* One option of the plugin: `option.<name> = value` in its section. */
typedef struct frit_option {
    uint32_t struct_size;
    uint32_t type;          /* FRIT_OPTION_* */
    frit_str name;          /* [a-z][a-z0-9_]* */
    frit_str default_value; /* as it would be written in the file */
    frit_str meaning;
    int64_t min; /* I64: allowed range; both 0 = any */
    int64_t max;
    frit_str choices; /* STR: allowed words, separated by a blank; empty = any */
} frit_option;

/* The plugin itself, static const. */
typedef struct frit_plugin {
    uint32_t struct_size;
    uint32_t n_options;
    uint32_t option_stride;
    uint32_t reserved;
    frit_str id;      /* ours: one word; others reverse DNS; [a-z0-9.-], <= 40 characters */
    frit_str version; /* of the plugin, for people and caches */
    frit_str license;
    const frit_option *options;
    /* [init] +mayblock  required.  One instance per host; `host` outlives it. */
    frit_status (*open)(const frit_host_root *host, void **instance, frit_err *err);
    /* [init] +mayblock  required.  Every device is closed. */
    void (*close)(void *instance);
    /* [any] +nonblock  required.  A table that begins with struct_size, or NULL: not offered.  At
     * least one of frit.backend/1, frit.fuser/1, frit.ops/1, frit.collective/1 must be. */
    const void *(*get_interface)(void *instance, frit_str id);
} frit_plugin;

typedef int32_t (*frit_plugin_entry)(const frit_hello *, frit_welcome *);

/* ---- the record in the file ---- */

/* The descriptor of ELF note "FRIT", type 1, in section .note.frit.  The format is frozen: bytes as
 * they lie here, all units 4 bytes or less, so that a reader needs no alignment. */
typedef struct frit_note {
    uint32_t record_size;
    uint32_t abi_min;
    uint32_t abi_max;
    uint32_t sanitizer;
    uint32_t isa[4]; /* x86-64, word 0: bit 0 AVX2, 1 FMA, 2 AVX-512F, 3 BW, 4 VL, 5 DQ, 6 BF16, 7
                        VNNI; 0 = baseline */
    char id[48];     /* terminated */
    char version[32];
    char runtimes[96]; /* vendor runtimes that are opened, separated by blanks */
} frit_note;

/* As it lies in the file. */
typedef struct frit_note_section {
    uint32_t name_bytes;
    uint32_t desc_bytes;
    uint32_t type;
    char name[8];
    frit_note note;
} frit_note_section;

#if defined(__SANITIZE_ADDRESS__)
#define FRIT_SANITIZER FRIT_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define FRIT_SANITIZER FRIT_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FRIT_SANITIZER FRIT_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define FRIT_SANITIZER FRIT_SANITIZER_THREAD
#elif __has_feature(memory_sanitizer)
#define FRIT_SANITIZER FRIT_SANITIZER_MEMORY
#endif
#endif
#ifndef FRIT_SANITIZER
#define FRIT_SANITIZER FRIT_SANITIZER_NONE
#endif

enum {
    FRIT_ISA_COMPILED = 0
#ifdef __AVX2__
                        | 0x01
#endif
#ifdef __FMA__
                        | 0x02
#endif
#ifdef __AVX512F__
                        | 0x04
#endif
#ifdef __AVX512BW__
                        | 0x08
#endif
#ifdef __AVX512VL__
                        | 0x10
#endif
#ifdef __AVX512DQ__
                        | 0x20
#endif
#ifdef __AVX512BF16__
                        | 0x40
#endif
#ifdef __AVX512VNNI__
                        | 0x80
#endif
};

/* The whole answer of an entry: both ranges, the choice, the plugin.  Used by the macro. */
static inline int32_t frit_negotiate(const frit_hello *hello, frit_welcome *welcome,
                                     const frit_plugin *plugin)
{
    uint32_t low, high;

    if (!hello || !welcome || hello->magic != FRIT_HELLO_MAGIC ||
        !FRIT_HAS(hello, frit_hello, sanitizer) || !FRIT_HAS(welcome, frit_welcome, plugin))
        return FRIT_INVALID;
    welcome->magic = FRIT_WELCOME_MAGIC;
    welcome->abi_min = FRIT_ABI_MIN;
    welcome->abi_max = FRIT_ABI_MAX;
    welcome->abi_chosen = 0;
    welcome->sanitizer = FRIT_SANITIZER;
    low = hello->abi_min > FRIT_ABI_MIN ? hello->abi_min : FRIT_ABI_MIN;
    high = hello->abi_max < FRIT_ABI_MAX ? hello->abi_max : FRIT_ABI_MAX;
    if (high < low)
        return FRIT_INCOMPATIBLE;
    welcome->abi_chosen = high;
    welcome->plugin = plugin;
    return FRIT_OK;
}

/* Once per plugin, at file scope: its id and version as literals, the vendor runtimes it opens (""
 * = none), and the address of its static const frit_plugin. */
#define FRIT_DEFINE_PLUGIN(id_text, version_text, runtimes_text, plugin_address)                   \
    static const frit_note_section frit_note_of_plugin                                             \
        __attribute__((section(".note.frit"), used, aligned(4))) = {sizeof("FRIT"),                \
                                                                    sizeof(frit_note),             \
                                                                    1,                             \
                                                                    "FRIT",                        \
                                                                    {sizeof(frit_note),            \
                                                                     FRIT_ABI_MIN,                 \
                                                                     FRIT_ABI_MAX,                 \
                                                                     FRIT_SANITIZER,               \
                                                                     {FRIT_ISA_COMPILED, 0, 0, 0}, \
                                                                     id_text,                      \
                                                                     version_text,                 \
                                                                     runtimes_text}};              \
    FRIT_EXTERN_C __attribute__((visibility("default"))) int32_t frit_plugin_entry_v1(             \
        const frit_hello *hello, frit_welcome *welcome);                                           \
    int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome)                   \
    {                                                                                              \
        return frit_negotiate(hello, welcome, plugin_address);                                     \
    }

FRIT_STATIC_ASSERT(sizeof(frit_hello) == 24, "frozen");
FRIT_STATIC_ASSERT(sizeof(frit_welcome) == 32, "frozen");
FRIT_STATIC_ASSERT(sizeof(frit_note) == 208 && sizeof(frit_note_section) == 228, "frozen");
FRIT_STATIC_ASSERT(sizeof(frit_option) == 88, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_plugin, get_interface) == 96, "0.2");

#endif
