/* SPDX-License-Identifier: Apache-2.0 */
#include "load/inspect.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/str.h"
#include "load/elf.h"
#include "load/load.h"

/* The dynamic loader has about this much static thread-local storage left for libraries that come
 * after the start of the program, for all of them together. */
enum { STATIC_TLS_BYTES = 512 };

/* ---- versions ---- */

static const struct {
    const char *name;
    const char *symbol; /* of its runtime, which has to be there before the plugin is loaded */
    const char *library;
} sanitizers[] = {
    [FRIT_SANITIZER_NONE] = {"no sanitizer", NULL, NULL},
    [FRIT_SANITIZER_ADDRESS] = {"the address sanitizer", "__asan_init", "libasan.so"},
    [FRIT_SANITIZER_MEMORY] = {"the memory sanitizer", "__msan_init", NULL},
    [FRIT_SANITIZER_THREAD] = {"the thread sanitizer", "__tsan_init", "libtsan.so"},
};

enum { N_SANITIZERS = sizeof(sanitizers) / sizeof(sanitizers[0]) };

const char *inspect_sanitizer_name(uint32_t sanitizer)
{
    return sanitizer < N_SANITIZERS ? sanitizers[sanitizer].name : "an unknown sanitizer";
}

/* A host without sanitizers runs plugins that have one where its runtime came first into the
 * process; one that came with the plugin would end the process. */
static bool takes_sanitizer(uint32_t sanitizer)
{
    return sanitizer == FRIT_SANITIZER ||
           (FRIT_SANITIZER == FRIT_SANITIZER_NONE && sanitizer < N_SANITIZERS &&
            sanitizers[sanitizer].symbol && dlsym(RTLD_DEFAULT, sanitizers[sanitizer].symbol));
}

static frit_status refuse_sanitizer(struct plugin *plugin, uint32_t sanitizer)
{
    if (FRIT_SANITIZER == FRIT_SANITIZER_NONE && sanitizer < N_SANITIZERS &&
        sanitizers[sanitizer].library)
        return plugin_refuse(plugin, FRIT_REASON_SANITIZER_MISMATCH,
                             "the plugin is built with %s, whose runtime has to be there first: "
                             "LD_PRELOAD=$(cc -print-file-name=%s)",
                             sanitizers[sanitizer].name, sanitizers[sanitizer].library);
    return plugin_refuse(plugin, FRIT_REASON_SANITIZER_MISMATCH,
                         "the plugin is built with %s, this host with %s",
                         inspect_sanitizer_name(sanitizer), inspect_sanitizer_name(FRIT_SANITIZER));
}

static const char *range_text(uint32_t low, uint32_t high, char text[32])
{
    snprintf(text, 32, "%u.%u-%u.%u", low >> 16, low & 0xffff, high >> 16, high & 0xffff);
    return text;
}

frit_status inspect_abi(struct plugin *plugin, uint32_t abi_min, uint32_t abi_max,
                        uint32_t sanitizer)
{
    char theirs[32], ours[32];

    range_text(abi_min, abi_max, theirs);
    range_text(FRIT_ABI_MIN, FRIT_ABI_MAX, ours);
    if (abi_min > abi_max)
        return plugin_refuse(plugin, FRIT_REASON_BAD_WELCOME, "the plugin's ABI range %s is empty",
                             theirs);
    if (abi_min > FRIT_ABI_MAX || abi_max < FRIT_ABI_MIN)
        return plugin_refuse(plugin, FRIT_REASON_ABI_MISMATCH,
                             "the plugin speaks ABI %s, this host %s; %s is too old", theirs, ours,
                             abi_max < FRIT_ABI_MIN ? "the plugin" : "the host");
    return takes_sanitizer(sanitizer) ? FRIT_OK : refuse_sanitizer(plugin, sanitizer);
}

/* ---- instructions ---- */

/* Of word 0 of a note. */
#define ISA_ROWS(ROW)    \
    ROW(0, "avx2")       \
    ROW(1, "fma")        \
    ROW(2, "avx512f")    \
    ROW(3, "avx512bw")   \
    ROW(4, "avx512vl")   \
    ROW(5, "avx512dq")   \
    ROW(6, "avx512bf16") \
    ROW(7, "avx512vnni")

void inspect_isa_text(const uint32_t words[4], char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
#define NAME(bit, name)                            \
    if ((words[0] & (1u << (bit))) && used < size) \
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", name);
    ISA_ROWS(NAME)
#undef NAME
}

#ifdef __x86_64__
/* The first set of instructions in `words` of a note that cannot be used here, NULL if all can.
 * The builtin takes only literals; it reports what the system saves of the registers too. */
static const char *isa_missing(const uint32_t words[4])
{
#define LACKS(bit, name)                                             \
    if ((words[0] & (1u << (bit))) && !__builtin_cpu_supports(name)) \
        return name;
    ISA_ROWS(LACKS)
#undef LACKS
    if (words[0] >> 8 || words[1] || words[2] || words[3])
        return "a set of instructions that this host does not know";
    return NULL;
}
#else
static const char *isa_missing(const uint32_t words[4])
{
    (void)words; /* its bits are those of x86-64 */
    return NULL;
}
#endif

/* ---- the file ---- */

static frit_status check_note(struct plugin *plugin, const frit_note *note)
{
    const char *missing;

    plugin_text(str_of(note->id), plugin->id, sizeof(plugin->id));
    plugin_text(str_of(note->version), plugin->version, sizeof(plugin->version));
    TRY(inspect_abi(plugin, note->abi_min, note->abi_max, note->sanitizer));
    missing = isa_missing(note->isa);
    if (missing)
        return plugin_refuse(plugin, FRIT_REASON_ISA_UNSUPPORTED, "the plugin is compiled for %s",
                             missing);
    return FRIT_OK;
}

frit_status inspect_file(struct plugin *plugin, const struct elf_facts *facts)
{
    if (facts->keeps_sections && !facts->has_entry)
        return plugin_refuse(plugin, FRIT_REASON_NO_ENTRY, "%s", plugin->path);
    if (facts->executable_stack)
        return plugin_refuse(plugin, FRIT_REASON_EXECUTABLE_STACK,
                             "link it with -z noexecstack: an object of it lacks .note.GNU-stack");
    if (facts->text_relocations)
        return plugin_refuse(plugin, FRIT_REASON_TEXT_RELOCATIONS,
                             "compile all of it with -fPIC and link it with -z text");
    if (facts->static_tls && facts->tls_bytes > STATIC_TLS_BYTES)
        return plugin_refuse(plugin, FRIT_REASON_STATIC_TLS,
                             "%" PRIu64 " bytes, at most %d: compile it with "
                             "-ftls-model=global-dynamic",
                             facts->tls_bytes, STATIC_TLS_BYTES);
    return facts->has_note ? check_note(plugin, &facts->note) : FRIT_OK;
}
