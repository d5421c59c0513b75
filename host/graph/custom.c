/* SPDX-License-Identifier: Apache-2.0 */
/* The table: ops are added under the lock and published by the count; look-ups take no lock. */
#include "graph/custom.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/fail.h"
#include "base/str.h"

enum { MAX_OPS = 1024 };

struct refused_op {
    struct refused_op *next;
    const char *plugin, *name, *why;
};

struct looked_at {
    struct looked_at *next;
    const char *plugin;
};

static struct {
    pthread_mutex_t lock; /* of the arena, the lists, and adding */
    struct arena arena;
    struct looked_at *looked_at; /* in order */
    struct refused_op *refusals;
    atomic_uint count;
    struct custom_op *ops[MAX_OPS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- looking up ---- */

const struct custom_op *custom_at(uint32_t op)
{
    uint32_t index = op - FRIT_OP_CUSTOM;

    if (op < FRIT_OP_CUSTOM || index >= atomic_load_explicit(&table.count, memory_order_acquire))
        return NULL;
    return table.ops[index];
}

const frit_op_info *custom_row(uint32_t op)
{
    const struct custom_op *custom = custom_at(op);

    return custom ? &custom->row : NULL;
}

const frit_record_info *custom_record(uint32_t record)
{
    const struct custom_op *custom = custom_at(record);

    return custom ? &custom->record : NULL;
}

frit_str custom_name(uint32_t op)
{
    const frit_op_info *row = custom_row(op);

    return row ? str_of(row->name) : (frit_str){NULL, 0};
}

static const struct custom_op *find(frit_str name)
{
    const struct custom_op *custom;

    for (uint32_t op = FRIT_OP_CUSTOM; (custom = custom_at(op)); op++) {
        if (str_is(name, custom->row.name))
            return custom;
    }
    return NULL;
}

const frit_op_info *custom_find(frit_str name)
{
    const struct custom_op *custom = find(name);

    return custom ? &custom->row : NULL;
}

/* ---- adding ---- */

/* Two instances of one plugin list the same op. */
static bool same_op(const struct custom_op *known, const char *plugin, const frit_custom_op *op)
{
    return strcmp(known->plugin, plugin) == 0 && known->row.rev == op->rev &&
           known->self == op->self && known->infer == op->infer &&
           known->decompose == op->decompose;
}

static frit_status add(const char *plugin, const frit_custom_op *op, uint32_t *id, frit_err *err)
{
    const struct custom_op *known = find(op->name);
    uint32_t index = atomic_load(&table.count);
    struct custom_op *custom;

    if (known && same_op(known, plugin, op)) {
        *id = known->row.id;
        return FRIT_OK;
    }
    if (known)
        return fail(err, FRIT_INVALID, "the name is taken by an op of plugin '%s', rev %u",
                    known->plugin, known->row.rev);
    if (index == MAX_OPS)
        return fail(err, FRIT_INVALID, "there are %d custom ops already, the most that can be",
                    MAX_OPS);
    custom = arena_array(&table.arena, 1, sizeof(*custom));
    if (!custom)
        return fail_memory(err, sizeof(*custom));
    TRY(custom_build(&table.arena, op, custom, err));
    custom->plugin = arena_text(&table.arena, plugin, strlen(plugin));
    if (!custom->plugin)
        return fail_memory(err, strlen(plugin));
    custom->row.id = custom->row.record = FRIT_OP_CUSTOM + index;
    *id = custom->row.id;
    table.ops[index] = custom;
    atomic_store_explicit(&table.count, index + 1, memory_order_release);
    return FRIT_OK;
}

frit_status custom_add(const char *plugin, const frit_custom_op *op, uint32_t *id, frit_err *err)
{
    frit_status st;

    if (!FRIT_HAS(op, frit_custom_op, decompose))
        return fail(err, FRIT_INVALID, "it is described in %u bytes, at least %u are needed",
                    op->struct_size, FRIT_END_OF(frit_custom_op, decompose));
    if (!custom_name_fits(op->name))
        return fail(err, FRIT_INVALID,
                    "the name is not like 'org.example.op/1', of a-z, 0-9, '_', '.', at most %d "
                    "characters",
                    FRIT_CUSTOM_NAME);
    pthread_mutex_lock(&table.lock);
    st = add(plugin, op, id, err);
    pthread_mutex_unlock(&table.lock);
    return st;
}

/* ---- messages about unknown names ---- */

void custom_note_plugin(const char *plugin)
{
    struct looked_at **at, *more;

    pthread_mutex_lock(&table.lock);
    for (at = &table.looked_at; *at && strcmp((*at)->plugin, plugin) != 0;)
        at = &(*at)->next;
    if (!*at) {
        more = arena_array(&table.arena, 1, sizeof(*more));
        if (more)
            more->plugin = arena_text(&table.arena, plugin, strlen(plugin));
        if (more && more->plugin)
            *at = more;
    }
    pthread_mutex_unlock(&table.lock);
}

static struct refused_op *find_refusal(const char *plugin, const char *name)
{
    struct refused_op *known = table.refusals;

    while (known && (strcmp(known->plugin, plugin) != 0 || strcmp(known->name, name) != 0))
        known = known->next;
    return known;
}

void custom_note_refusal(const char *plugin, const char *name, const char *why)
{
    struct refused_op *more;

    pthread_mutex_lock(&table.lock);
    more = find_refusal(plugin, name) ? NULL : arena_array(&table.arena, 1, sizeof(*more));
    if (more) {
        more->plugin = arena_text(&table.arena, plugin, strlen(plugin));
        more->name = arena_text(&table.arena, name, strlen(name));
        more->why = arena_text(&table.arena, why, strlen(why));
        if (more->plugin && more->name && more->why) {
            more->next = table.refusals;
            table.refusals = more;
        }
    }
    pthread_mutex_unlock(&table.lock);
}

static const char *nearest(frit_str name)
{
    uint32_t count = atomic_load_explicit(&table.count, memory_order_acquire);
    const char *names[MAX_OPS];
    char text[FRIT_CUSTOM_NAME + 1];

    if (name.len > FRIT_CUSTOM_NAME)
        return NULL;
    memcpy(text, name.ptr, (size_t)name.len);
    text[name.len] = '\0';
    for (uint32_t i = 0; i < count; i++)
        names[i] = table.ops[i]->row.name;
    return str_nearest(text, names, count);
}

void custom_explain_unknown(frit_str name, struct str *out)
{
    const char *near = nearest(name);

    str_addf(out, "no plugin offers it; ");
    pthread_mutex_lock(&table.lock);
    str_addf(out, table.looked_at ? "looked at: " : "none was looked at, open a host first");
    for (const struct looked_at *at = table.looked_at; at; at = at->next)
        str_addf(out, "%s%s", at->plugin, at->next ? ", " : "");
    for (const struct refused_op *at = table.refusals; at; at = at->next) {
        if (str_is(name, at->name))
            str_addf(out, "; that of plugin '%s' is refused: %s", at->plugin, at->why);
    }
    pthread_mutex_unlock(&table.lock);
    if (near)
        str_addf(out, "; did you mean '%s'?", near);
}
