/* SPDX-License-Identifier: Apache-2.0 */
/* A SPIR-V module under construction: sections of words that are concatenated at the end,
 * and types and constants that exist once.  If out of memory, `failed` is set, every call is
 * harmless and gives an id that means nothing.  Not thread-safe. */
#ifndef EMIT_SPIRV_BUILD_H
#define EMIT_SPIRV_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "emit/spirv/grammar.h"

/* In their order in a module. */
enum spv_section {
    SPV_IN_CAPABILITIES,
    SPV_IN_EXTENSIONS,
    SPV_IN_HEAD, /* imports, memory model, entry point */
    SPV_IN_MODES,
    SPV_IN_NAMES,
    SPV_IN_DECORATIONS,
    SPV_IN_GLOBALS, /* types, constants, variables */
    SPV_IN_LOCALS,  /* the function's begin and its variables */
    SPV_IN_ENTRY,   /* the rest of its first block */
    SPV_IN_BODY,
    SPV_SECTIONS
};

struct spv_words {
    uint32_t *word;
    uint32_t n, capacity;
};

struct spv_build {
    struct spv_words section[SPV_SECTIONS];
    uint32_t ids;     /* given out; ids begin at 1 */
    uint32_t *unique; /* hash table of where in GLOBALS unique instructions are, + 1 */
    uint32_t n_unique, unique_capacity;
    bool failed;
};

/* Operands of the calls below. */
#define SPV(...)                     \
    (const uint32_t[]){__VA_ARGS__}, \
        (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

void spv_fini(struct spv_build *build);
uint32_t spv_id(struct spv_build *build);

/* An instruction without result. */
void spv_put(struct spv_build *build, enum spv_section section, enum spv_op op,
             const uint32_t *operands, uint32_t n);
/* One with a type and a new result, which it returns. */
uint32_t spv_make(struct spv_build *build, enum spv_section section, enum spv_op op, uint32_t type,
                  const uint32_t *operands, uint32_t n);
/* A type, or with `type` a constant: the same id for the same operands. */
uint32_t spv_type(struct spv_build *build, enum spv_op op, const uint32_t *operands, uint32_t n);
uint32_t spv_constant(struct spv_build *build, enum spv_op op, uint32_t type,
                      const uint32_t *operands, uint32_t n);
/* Once each. */
void spv_capability(struct spv_build *build, enum spv_capability capability);
void spv_extension(struct spv_build *build, const char *name);
/* Words of a text: appended to `to` (room for its length / 4 + 1), returns their number. */
uint32_t spv_text(uint32_t *to, const char *text);

/* The module; the caller frees it.  NULL: there was no memory. */
uint32_t *spv_finish(struct spv_build *build, uint32_t *n);

#endif
