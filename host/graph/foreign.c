/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in foreign.def, for messages only: short tables, read from the front. */
#include "graph/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct foreign ops[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    {#name, #name, ""},
#include <frit/ops.def>
#define FRIT_FOREIGN_OP(theirs, ours, note) {theirs, ours, note},
#include "graph/foreign.def"
};

static const struct foreign attrs[] = {
#define FRIT_FOREIGN_ATTR(theirs, ours, note) {theirs, ours, note},
#include "graph/foreign.def"
};

static const struct foreign dtypes[] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    {#name, #name, ""},
#include <frit/dtypes.def>
#define FRIT_FOREIGN_DTYPE(theirs, ours) {theirs, ours, ""},
#include "graph/foreign.def"
};

static const struct foreign lists[] = {
#define FRIT_FOREIGN_LIST(ours, note) {ours, ours, note},
#include "graph/foreign.def"
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static char lowered(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

/* Without regard to case and underscores. */
static bool is_same(const char *name, frit_str word)
{
    uint64_t i = 0;

    for (;;) {
        while (*name == '_')
            name++;
        while (i < word.len && word.ptr[i] == '_')
            i++;
        if (i == word.len || !*name)
            return i == word.len && !*name;
        if (lowered(*name++) != lowered(word.ptr[i++]))
            return false;
    }
}

static const struct foreign *find(const struct foreign *rows, size_t count, frit_str word)
{
    for (size_t i = 0; i < count; i++) {
        if (is_same(rows[i].theirs, word))
            return &rows[i];
    }
    return NULL;
}

const struct foreign *foreign_op(frit_str word)
{
    return find(ops, COUNT_OF(ops), word);
}

static bool has(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

const struct foreign *foreign_attr(frit_str word, const char *const *names, size_t count)
{
    const struct foreign *nameless = NULL;

    for (size_t i = 0; i < COUNT_OF(attrs); i++) {
        if (!is_same(attrs[i].theirs, word))
            continue;
        if (has(names, count, attrs[i].ours))
            return &attrs[i];
        if (!*attrs[i].ours)
            nameless = &attrs[i];
    }
    return nameless;
}

const char *foreign_dtype(frit_str word)
{
    const struct foreign *row = find(dtypes, COUNT_OF(dtypes), word);

    return row ? row->ours : NULL;
}

const char *foreign_list(const char *attr)
{
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        if (strcmp(lists[i].ours, attr) == 0)
            return lists[i].note;
    }
    return "";
}

const char *foreign_text(const struct foreign *row, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s%s", *row->ours ? "; here it is " : "", row->ours,
             *row->note ? ": " : "", row->note);
    return text;
}

const struct foreign *foreign_op_at(size_t index)
{
    return index < COUNT_OF(ops) ? &ops[index] : NULL;
}

const struct foreign *foreign_attr_at(size_t index)
{
    return index < COUNT_OF(attrs) ? &attrs[index] : NULL;
}

const struct foreign *foreign_dtype_at(size_t index)
{
    return index < COUNT_OF(dtypes) ? &dtypes[index] : NULL;
}
