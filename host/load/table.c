/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a plugin's tables.  A table is copied over its declared size and no further, in whole
 * slots; what it does not have is NULL; what it must have is checked by name. */
#include "load/table.h"

#include <inttypes.h>
#include <string.h>

#include "load/load.h"

/* ---- shapes ---- */

struct contract_slot {
    const char *name;
    size_t offset;
};

struct shape {
    const char *id;
    size_t bytes;    /* as this host knows it */
    uint32_t needed; /* up to its last required slot */
    uint32_t n_required;
    const struct contract_slot *required;
};

#define SLOT(table, field)             \
    {                                  \
#field, offsetof(table, field) \
    }

static const struct contract_slot backend_slots[] = {
    SLOT(frit_backend, enumerate),    SLOT(frit_backend, device_open),
    SLOT(frit_backend, device_close), SLOT(frit_backend, alloc),
    SLOT(frit_backend, free),         SLOT(frit_backend, write),
    SLOT(frit_backend, read),         SLOT(frit_backend, submit),
    SLOT(frit_backend, wait),         SLOT(frit_backend, supports),
    SLOT(frit_backend, op_program)};

static const struct contract_slot fuser_slots[] = {
    SLOT(frit_fuser_table, prototypes), SLOT(frit_fuser_table, clone),
    SLOT(frit_fuser_table, destroy),    SLOT(frit_fuser_table, reset),
    SLOT(frit_fuser_table, push),       SLOT(frit_fuser_table, state),
    SLOT(frit_fuser_table, finish)};

static const struct contract_slot native_slots[] = {SLOT(frit_native_table, get)};
static const struct contract_slot extmem_slots[] = {SLOT(frit_extmem_table, where),
                                                    SLOT(frit_extmem_table, address),
                                                    SLOT(frit_extmem_table, import)};
static const struct contract_slot capture_slots[] = {SLOT(frit_capture_table, record),
                                                     SLOT(frit_capture_table, replay),
                                                     SLOT(frit_capture_table, release)};
static const struct contract_slot profile_slots[] = {SLOT(frit_profile_table, clock)};
static const struct contract_slot collective_slots[] = {
    SLOT(frit_collective_table, group_id),      SLOT(frit_collective_table, group_create),
    SLOT(frit_collective_table, group_destroy), SLOT(frit_collective_table, group_abort),
    SLOT(frit_collective_table, begin),         SLOT(frit_collective_table, wait)};
static const struct contract_slot ops_slots[] = {SLOT(frit_ops_table, ops)};

#undef SLOT

#define SHAPE(table, id, last, slots)                                                          \
    {                                                                                          \
        id, sizeof(table), FRIT_END_OF(table, last), sizeof(slots) / sizeof((slots)[0]), slots \
    }

static const struct shape backend_shape =
    SHAPE(frit_backend, FRIT_BACKEND, op_program, backend_slots);
static const struct shape fuser_shape =
    SHAPE(frit_fuser_table, FRIT_FUSER_TABLE, finish, fuser_slots);
static const struct shape native_shape =
    SHAPE(frit_native_table, FRIT_NATIVE_TABLE, get, native_slots);
static const struct shape extmem_shape =
    SHAPE(frit_extmem_table, FRIT_EXTMEM_TABLE, import, extmem_slots);
static const struct shape capture_shape =
    SHAPE(frit_capture_table, FRIT_CAPTURE_TABLE, release, capture_slots);
static const struct shape profile_shape =
    SHAPE(frit_profile_table, FRIT_PROFILE_TABLE, clock, profile_slots);
static const struct shape collective_shape =
    SHAPE(frit_collective_table, FRIT_COLLECTIVE_TABLE, wait, collective_slots);
static const struct shape ops_shape = SHAPE(frit_ops_table, FRIT_OPS_TABLE, ops, ops_slots);

#undef SHAPE

/* ---- taking ---- */

/* `into` has shape->bytes zero bytes; every table begins with its struct_size. */
static frit_status take(struct plugin *plugin, const struct shape *shape, const void *table,
                        void *into)
{
    static const unsigned char null_slot[sizeof(void (*)(void))];
    uint32_t size;

    memcpy(&size, table, sizeof(size));
    if (size < shape->needed)
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "%s has %" PRIu32 " bytes, its required slots need %" PRIu32,
                             shape->id, size, shape->needed);
    if (size > shape->bytes)
        size = (uint32_t)shape->bytes;
    size -= size % (uint32_t)sizeof(null_slot); /* no half of a slot */
    memcpy(into, table, size);
    memcpy(into, &size, sizeof(size));
    for (uint32_t i = 0; i < shape->n_required; i++) {
        const unsigned char *slot = (const unsigned char *)into + shape->required[i].offset;

        if (memcmp(slot, null_slot, sizeof(null_slot)) == 0)
            return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE, "slot '%s' of %s is NULL",
                                 shape->required[i].name, shape->id);
    }
    return FRIT_OK;
}

frit_status table_take_backend(struct plugin *plugin, const void *table)
{
    frit_backend *backend = &plugin->backend;
    frit_status status = take(plugin, &backend_shape, table, backend);

    if (!status && !backend->queue_create != !backend->queue_destroy)
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "%s has one of the slots 'queue_create' and 'queue_destroy'",
                             FRIT_BACKEND);
    if (!status && !backend->kernel_load != !backend->kernel_unload)
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "%s has one of the slots 'kernel_load' and 'kernel_unload'",
                             FRIT_BACKEND);
    return status;
}

frit_status table_take_fusers(struct plugin *plugin, const void *table)
{
    return take(plugin, &fuser_shape, table, &plugin->fusers);
}

frit_status table_take_extmem(struct plugin *plugin, const void *table)
{
    return take(plugin, &extmem_shape, table, &plugin->extmem);
}

frit_status table_take_native(struct plugin *plugin, const void *table)
{
    return take(plugin, &native_shape, table, &plugin->native);
}

frit_status table_take_capture(struct plugin *plugin, const void *table)
{
    return take(plugin, &capture_shape, table, &plugin->capture);
}

frit_status table_take_profile(struct plugin *plugin, const void *table)
{
    return take(plugin, &profile_shape, table, &plugin->profile);
}

frit_status table_take_collective(struct plugin *plugin, const void *table)
{
    return take(plugin, &collective_shape, table, &plugin->collective);
}

frit_status table_take_ops(struct plugin *plugin, const void *table, frit_ops_table *out)
{
    return take(plugin, &ops_shape, table, out);
}
