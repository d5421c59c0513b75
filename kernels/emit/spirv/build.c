/* SPDX-License-Identifier: Apache-2.0 */
/* Sections grow by doubling.  Unique instructions are found by an open hash table of their places;
 * an instruction's key is its words but for the result. */
#include "emit/spirv/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { SPV_NAME_WORDS = 12 /* of an extension */ };

void spv_fini(struct spv_build *build)
{
    for (uint32_t i = 0; i < SPV_SECTIONS; i++)
        free(build->section[i].word);
    free(build->unique);
    *build = (struct spv_build){0};
}

uint32_t spv_id(struct spv_build *build)
{
    return ++build->ids;
}

/* Room for an instruction of n words, with its first word; NULL: there is no memory. */
static uint32_t *put(struct spv_build *build, enum spv_section section, enum spv_op op, uint32_t n)
{
    struct spv_words *words = &build->section[section];
    uint32_t *to;

    if (build->failed ||
        !array_grow(&words->word, &words->capacity, words->n, n, sizeof(*words->word))) {
        build->failed = true;
        return NULL;
    }
    to = words->word + words->n;
    words->n += n;
    to[0] = n << 16 | (uint32_t)op;
    return to + 1;
}

void spv_put(struct spv_build *build, enum spv_section section, enum spv_op op,
             const uint32_t *operands, uint32_t n)
{
    uint32_t *to = put(build, section, op, n + 1);

    if (to && n)
        memcpy(to, operands, n * sizeof(*to));
}

uint32_t spv_make(struct spv_build *build, enum spv_section section, enum spv_op op, uint32_t type,
                  const uint32_t *operands, uint32_t n)
{
    uint32_t id = spv_id(build);
    uint32_t *to = put(build, section, op, n + 3);

    if (!to)
        return id;
    to[0] = type;
    to[1] = id;
    if (n)
        memcpy(to + 2, operands, n * sizeof(*to));
    return id;
}

/* ---- what exists once ---- */

/* A unique instruction: type 0 for types, which have none. */
struct unique {
    enum spv_op op;
    uint32_t type, n;
    const uint32_t *operands;
};

static uint32_t hash(const struct unique *key)
{
    uint32_t h = 2166136261u ^ (uint32_t)key->op;

    h = (h ^ key->type) * 16777619u;
    for (uint32_t i = 0; i < key->n; i++)
        h = (h ^ key->operands[i] ^ key->operands[i] >> 15) * 16777619u;
    return h ^ h >> 16;
}

static struct unique unique_at(const uint32_t *word)
{
    struct unique key = {.op = (enum spv_op)(word[0] & 0xffff)};
    uint32_t n = word[0] >> 16;
    bool constant =
        key.op == SPV_CONSTANT || key.op == SPV_CONSTANT_TRUE || key.op == SPV_CONSTANT_FALSE;
    uint32_t head = constant ? 3 : 2;

    key.type = constant ? word[1] : 0;
    key.n = n - head;
    key.operands = word + head;
    return key;
}

static bool same(const struct unique *a, const struct unique *b)
{
    return a->op == b->op && a->type == b->type && a->n == b->n &&
           (!a->n || !memcmp(a->operands, b->operands, a->n * sizeof(*a->operands)));
}

/* Where the key is in the table, or an empty place. */
static uint32_t *find(const struct spv_build *build, const struct unique *key)
{
    uint32_t at = hash(key) & (build->unique_capacity - 1);

    while (build->unique[at]) {
        struct unique other =
            unique_at(build->section[SPV_IN_GLOBALS].word + build->unique[at] - 1);

        if (same(key, &other))
            break;
        at = (at + 1) & (build->unique_capacity - 1);
    }
    return &build->unique[at];
}

static bool unique_grow(struct spv_build *build)
{
    uint32_t old_capacity = build->unique_capacity;
    uint32_t *old = build->unique;

    if (build->n_unique * 2 < old_capacity)
        return true;
    build->unique = calloc(old_capacity ? old_capacity * 2 : 64, sizeof(*old));
    if (!build->unique) {
        build->unique = old;
        return false;
    }
    build->unique_capacity = old_capacity ? old_capacity * 2 : 64;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i]) {
            struct unique key = unique_at(build->section[SPV_IN_GLOBALS].word + old[i] - 1);

            *find(build, &key) = old[i];
        }
    }
    free(old);
    return true;
}

static uint32_t unique(struct spv_build *build, const struct unique *key)
{
    struct spv_words *globals = &build->section[SPV_IN_GLOBALS];
    uint32_t *place, *to, id, where = globals->n;

    if (build->failed || !unique_grow(build)) {
        build->failed = true;
        return 0;
    }
    place = find(build, key);
    if (*place)
        return globals->word[*place - 1 + (key->type ? 2 : 1)];
    id = spv_id(build);
    to = put(build, SPV_IN_GLOBALS, key->op, key->n + (key->type ? 3 : 2));
    if (!to)
        return id;
    *place = where + 1;
    build->n_unique++;
    if (key->type)
        *to++ = key->type;
    *to++ = id;
    if (key->n)
        memcpy(to, key->operands, key->n * sizeof(*to));
    return id;
}

uint32_t spv_type(struct spv_build *build, enum spv_op op, const uint32_t *operands, uint32_t n)
{
    return unique(build, &(struct unique){op, 0, n, operands});
}

uint32_t spv_constant(struct spv_build *build, enum spv_op op, uint32_t type,
                      const uint32_t *operands, uint32_t n)
{
    return unique(build, &(struct unique){op, type, n, operands});
}

void spv_capability(struct spv_build *build, enum spv_capability capability)
{
    const struct spv_words *words = &build->section[SPV_IN_CAPABILITIES];

    for (uint32_t i = 1; i < words->n; i += 2) {
        if (words->word[i] == (uint32_t)capability)
            return;
    }
    spv_put(build, SPV_IN_CAPABILITIES, SPV_CAPABILITY, SPV((uint32_t)capability));
}

void spv_extension(struct spv_build *build, const char *name)
{
    const struct spv_words *words = &build->section[SPV_IN_EXTENSIONS];
    uint32_t text[SPV_NAME_WORDS], n = spv_text(text, name);

    for (uint32_t i = 0; i < words->n; i += words->word[i] >> 16) {
        if (words->word[i] >> 16 == n + 1 && !memcmp(words->word + i + 1, text, n * sizeof(*text)))
            return;
    }
    spv_put(build, SPV_IN_EXTENSIONS, SPV_EXTENSION, text, n);
}

uint32_t spv_text(uint32_t *to, const char *text)
{
    size_t length = strlen(text);
    uint32_t n = (uint32_t)(length / 4 + 1);

    memset(to, 0, n * sizeof(*to));
    memcpy(to, text, length);
    return n;
}

uint32_t *spv_finish(struct spv_build *build, uint32_t *n)
{
    uint32_t total = 5, *words, *to;

    *n = 0;
    if (build->failed)
        return NULL;
    for (uint32_t i = 0; i < SPV_SECTIONS; i++)
        total += build->section[i].n;
    words = malloc(total * sizeof(*words));
    if (!words)
        return NULL;
    memcpy(words, (const uint32_t[]){SPV_MAGIC, SPV_VERSION, 0, build->ids + 1, 0},
           5 * sizeof(*words));
    to = words + 5;
    for (uint32_t i = 0; i < SPV_SECTIONS; i++) {
        if (build->section[i].n)
            memcpy(to, build->section[i].word, build->section[i].n * sizeof(*to));
        to += build->section[i].n;
    }
    *n = total;
    return words;
}
