/* SPDX-License-Identifier: Apache-2.0 */
/* Another plugin, one slot of which commits a sin whenever it is called.  The environment says
 * which:
 *   SIN_PLUGIN  the file of the plugin that does the work
 *   SIN         <table>.<slot>.<act>
 * `act` is one of probe/ends.c or probe/changes.c, after which the work is done; a status of
 * `statuses` that the slot returns instead of doing it; or one of lies.c.  "reached" is written to
 * standard error.
 *
 * The table of programs is changed in its place, since drivers know theirs by the address.
 * Threads: one host at a time. */
#include "sin.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../probe/acts.h"

struct tables inner;

static struct tables outer;
static char sin_table[16], sin_slot[20], sin_act[24];

/* ---- which sin this is ---- */

static void read_sin(void)
{
    const char *text = getenv("SIN");

    if (!text || sscanf(text, "%15[a-z].%19[a-z_].%23[a-z_0-9]", sin_table, sin_slot, sin_act) != 3)
        sin_table[0] = '\0';
}

bool is_here(const char *table, const char *slot)
{
    return strcmp(table, sin_table) == 0 && strcmp(slot, sin_slot) == 0;
}

static void say_reached(void)
{
    static const char text[] = "reached\n";
    static bool said;

    if (!said)
        (void)!write(2, text, sizeof(text) - 1);
    said = true;
}

bool is_sin(const char *table, const char *slot, const char *act)
{
    return is_here(table, slot) && strcmp(act, sin_act) == 0;
}

bool reached(const char *table, const char *slot, const char *act)
{
    if (!is_sin(table, slot, act))
        return false;
    say_reached();
    return true;
}

static void commit(const struct act *acts)
{
    for (; acts->name; acts++)
        if (strcmp(acts->name, sin_act) == 0)
            acts->commit();
}

static void misbehave(const char *table, const char *slot)
{
    if (!is_here(table, slot))
        return;
    say_reached();
    commit(changes);
    commit(ends);
}

static const struct status {
    const char *name;
    frit_status value;
} statuses[] = {{"seven", 7}, {"unlisted", -99}, {"mute", FRIT_INTERNAL}, {"nothing", FRIT_OK}};

/* Whether the slot returns something at once. */
static bool has_status(const char *table, const char *slot, frit_status *out)
{
    for (size_t i = 0; is_here(table, slot) && i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (strcmp(statuses[i].name, sin_act) != 0)
            continue;
        *out = statuses[i].value;
        return true;
    }
    return false;
}

static bool is_act(const struct act *acts)
{
    while (acts->name && strcmp(acts->name, sin_act) != 0)
        acts++;
    return acts->name != NULL;
}

/* Whether it is one for any slot. */
static bool is_general(void)
{
    frit_status status;

    return is_act(ends) || is_act(changes) || has_status(sin_table, sin_slot, &status);
}

/* ---- every slot, with the sin before it ---- */

#define SLOT_STATUS(table, slot, parameters, arguments)              \
    static frit_status table##_##slot parameters                     \
    {                                                                \
        frit_status status = FRIT_UNSUPPORTED;                       \
                                                                     \
        misbehave(#table, #slot);                                    \
        if (!has_status(#table, #slot, &status) && inner.table.slot) \
            status = inner.table.slot arguments;                     \
        return status;                                               \
    }
#define SLOT_VOID(table, slot, parameters, arguments) \
    static void table##_##slot parameters             \
    {                                                 \
        misbehave(#table, #slot);                     \
        if (inner.table.slot)                         \
            inner.table.slot arguments;               \
    }
#define SLOT_VALUE(table, slot, type, none, parameters, arguments)   \
    static type table##_##slot parameters                            \
    {                                                                \
        misbehave(#table, #slot);                                    \
        return inner.table.slot ? inner.table.slot arguments : none; \
    }
#include "slots.def"

/* ---- programs ---- */

static void put_slots(void);

static void overwrite(frit_program_table *place, const frit_program_table *with)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)place / page * page;
    const uintptr_t end = ((uintptr_t)place + with->struct_size + page - 1) / page * page;

    if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE))
        abort();
    memcpy(place, with, with->struct_size);
}

/* Those of the first table only.  A slot that lies behind its end cannot be put in. */
static void take_program(const frit_program *program)
{
    static frit_program_table *place;
    const frit_program_table *table = program->table;

    if (place || !table || strcmp(sin_table, "program") != 0)
        return;
    place = (frit_program_table *)(uintptr_t)table;
    memset(&inner.program, 0, sizeof(inner.program));
    memcpy(&inner.program, table, table->struct_size);
    outer.program = inner.program;
    put_slots();
    overwrite(place, &outer.program);
}

static frit_status make_op_program(void *self, const frit_op_desc *op, frit_program *out,
                                   frit_err *err)
{
    const frit_status status = backend_op_program(self, op, out, err);

    if (!status)
        take_program(out);
    return status;
}

static frit_status make_fused(void *fuser, frit_program *out, frit_err *err)
{
    const frit_status status = fuser_finish(fuser, out, err);

    if (!status)
        take_program(out);
    return status;
}

/* ---- tables ---- */

/* Those that the plugin has, and the one that sins. */
static void put_slots(void)
{
#define SLOT_STATUS(table, slot, parameters, arguments) \
    if (inner.table.slot || is_here(#table, #slot))     \
        outer.table.slot = table##_##slot;
#define SLOT_VOID(table, slot, parameters, arguments)              SLOT_STATUS(table, slot, , )
#define SLOT_VALUE(table, slot, type, none, parameters, arguments) SLOT_STATUS(table, slot, , )
#include "slots.def"
    if (inner.backend.op_program)
        outer.backend.op_program = make_op_program;
    if (inner.fuser.finish)
        outer.fuser.finish = make_fused;
    if (is_here("program", "priority") && inner.program.describe)
        put_two_candidates(&outer);
    if (!is_general())
        put_lies(&outer);
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

/* `size` bytes at `into`; those that the table lacks become 0. */
static void copy_table(void *into, size_t size, const void *table)
{
    uint32_t given = 0;

    memset(into, 0, size);
    if (table)
        memcpy(&given, table, sizeof(given));
    if (table)
        memcpy(into, table, given < size ? given : size);
}

static const void *offer_ops(const frit_ops_table *table)
{
    enum { OPS = 32 };
    static frit_custom_op ops[OPS];
    static frit_ops_table copy;

    copy = *table;
    copy.n_ops = copy.n_ops < OPS ? copy.n_ops : OPS;
    copy.op_stride = sizeof(ops[0]);
    copy.ops = ops;
    for (uint32_t i = 0; i < copy.n_ops; i++)
        copy_table(&ops[i], sizeof(ops[i]),
                   (const char *)table->ops + (size_t)i * table->op_stride);
    inner.ops = outer.ops = ops[0];
    put_slots();
    ops[0] = outer.ops;
    return &copy;
}

static const void *get_interface(void *instance, frit_str id)
{
    const void *table = inner.plugin.get_interface(instance, id);

#define OFFER(name, field)                                           \
    if (is(id, name) && (table || strcmp(sin_table, #field) == 0)) { \
        copy_table(&inner.field, sizeof(inner.field), table);        \
        outer.field = inner.field;                                   \
        outer.field.struct_size = sizeof(outer.field);               \
        put_slots();                                                 \
        return &outer.field;                                         \
    }
    OFFER(FRIT_BACKEND, backend)
    OFFER(FRIT_FUSER_TABLE, fuser)
    OFFER(FRIT_NATIVE_TABLE, native)
    OFFER(FRIT_CAPTURE_TABLE, capture)
    OFFER(FRIT_PROFILE_TABLE, profile)
    OFFER(FRIT_COLLECTIVE_TABLE, collective)
#undef OFFER
    return table && is(id, FRIT_OPS_TABLE) ? offer_ops(table) : table;
}

FRIT_EXTERN_C __attribute__((visibility("default"))) int32_t
frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome);

/* Without the environment the welcome has no magic, and the host refuses the plugin. */
int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome)
{
    const char *path = getenv("SIN_PLUGIN");
    void *object = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    frit_plugin_entry entry;
    int32_t status;

    read_sin();
    if (!object)
        return FRIT_INVALID;
    *(void **)(&entry) = dlsym(object, FRIT_PLUGIN_ENTRY); /* a function by contract */
    status = entry(hello, welcome);
    if (status || !welcome->plugin)
        return status;
    inner.plugin = outer.plugin = *welcome->plugin;
    outer.plugin.get_interface = get_interface;
    put_slots();
    welcome->plugin = &outer.plugin;
    return status;
}
