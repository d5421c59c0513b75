/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin says that is not so: pointers to nothing, counts and sizes without end, texts that
 * are no texts, statuses that there are not. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <frit/capture.h>
#include <frit/collective.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/profile.h>

#include "sin.h"

/* An escape sequence, a C1 control character, bytes that are no UTF-8, the end of a line. */
#define DIRT "dirty\033[31m\302\233\377\300\200\n text"

enum { NOWHERE = 8, LONG_TEXT = 8192 };

static void *nowhere(void)
{
    static void *volatile address = (void *)NOWHERE;

    return address;
}

static frit_str long_text(void)
{
    static char text[LONG_TEXT];

    memset(text, 'a', sizeof(text));
    return (frit_str){text, (uint64_t)1 << 40};
}

/* ---- the entry ---- */

static void no_plugin(struct said *said)
{
    said->welcome->plugin = nowhere();
}

static void no_id(struct said *said)
{
    said->plugin->id = (frit_str){nowhere(), 5};
}

static void no_version(struct said *said)
{
    said->plugin->version = (frit_str){nowhere(), 5};
}

static void empty_id(struct said *said)
{
    said->plugin->id.len = 0;
}

static void endless_id(struct said *said)
{
    said->plugin->id = long_text();
}

static void dirty_id(struct said *said)
{
    said->plugin->id = FRIT_STR(DIRT);
}

static void endless_version(struct said *said)
{
    said->plugin->version = long_text();
}

static void dirty_version(struct said *said)
{
    said->plugin->version = FRIT_STR(DIRT);
}

static const frit_option option = {.struct_size = sizeof(option),
                                   .type = FRIT_OPTION_BOOL,
                                   .name = FRIT_STR_INIT("odd"),
                                   .default_value = FRIT_STR_INIT("no")};

static void set_options(struct said *said, uint32_t n, uint32_t stride, const void *options)
{
    said->plugin->n_options = n;
    said->plugin->option_stride = stride;
    said->plugin->options = options;
}

static void wild_options(struct said *said)
{
    set_options(said, 2, sizeof(option), nowhere());
}

static void null_options(struct said *said)
{
    set_options(said, 2, sizeof(option), NULL);
}

static void endless_options(struct said *said)
{
    set_options(said, UINT32_MAX, sizeof(option), &option);
}

static void thin_options(struct said *said)
{
    set_options(said, 2, 8, &option);
}

static void same_option_twice(struct said *said)
{
    static frit_option options[2];

    options[0] = options[1] = option;
    set_options(said, 2, sizeof(option), options);
}

static void bad_default(struct said *said)
{
    static frit_option one;

    one = option;
    one.default_value = FRIT_STR("perhaps");
    set_options(said, 1, sizeof(one), &one);
}

static void *slot_nowhere(void *slot)
{
    void *address = nowhere();

    memcpy(slot, &address, sizeof(address));
    return slot;
}

static void wild_open(struct said *said)
{
    slot_nowhere(&said->plugin->open);
}

static void wild_close(struct said *said)
{
    slot_nowhere(&said->plugin->close);
}

static void wild_tables(struct said *said)
{
    slot_nowhere(&said->plugin->get_interface);
}

/* ---- statuses: of the entry, open and enumerate ---- */

static void seven(struct said *said)
{
    said->status = 7;
}

static void unlisted(struct said *said)
{
    said->status = -99;
}

static void mute(struct said *said)
{
    said->status = FRIT_INTERNAL;
}

/* Not through the host's err_set. */
static void fail_with(struct said *said, const char *text, size_t n)
{
    said->status = FRIT_IO;
    said->err->status = FRIT_IO;
    memcpy(said->err->text, text, n);
}

static void endless_failure(struct said *said)
{
    fail_with(said, long_text().ptr, sizeof(said->err->text));
}

static void dirty_failure(struct said *said)
{
    fail_with(said, DIRT, sizeof(DIRT));
}

static void other_failure(struct said *said)
{
    fail_with(said, "something", sizeof("something"));
    said->err->status = FRIT_BUSY;
}

static void resized_failure(struct said *said)
{
    fail_with(said, "something", sizeof("something"));
    said->err->struct_size = UINT32_MAX;
}

/* ---- tables ---- */

static bool is(const struct said *said, const char *id)
{
    return said->id.len == strlen(id) && memcmp(said->id.ptr, id, said->id.len) == 0;
}

static void wild_table(struct said *said)
{
    said->table = nowhere();
}

static void wild_driver(struct said *said)
{
    said->backend->driver_name = (frit_str){nowhere(), 5};
}

static void endless_driver(struct said *said)
{
    said->backend->driver_name = long_text();
}

static void empty_driver(struct said *said)
{
    said->backend->driver_name.len = 0;
}

static void driver_auto(struct said *said)
{
    said->backend->driver_name = FRIT_STR("auto");
}

static void dirty_driver(struct said *said)
{
    said->backend->driver_name = FRIT_STR(DIRT);
}

static void half_queues(struct said *said)
{
    said->backend->struct_size = sizeof(*said->backend);
    slot_nowhere(&said->backend->queue_create);
}

static void endless_table(struct said *said)
{
    said->backend->struct_size = UINT32_MAX & ~7u;
}

/* The slots of a table with one NULL among them: `null` counts from 0. */
static void offer(struct said *said, const char *id, uint32_t n_slots, uint32_t null)
{
    static struct {
        uint32_t struct_size, reserved;
        void *slots[8];
    } table;

    if (!is(said, id))
        return;
    table.struct_size = 8 + 8 * n_slots;
    for (uint32_t i = 0; i < n_slots; i++)
        table.slots[i] = i == null ? NULL : nowhere();
    said->table = &table;
}

static void no_record(struct said *said)
{
    offer(said, FRIT_CAPTURE_TABLE, 3, 0);
}

static void no_replay(struct said *said)
{
    offer(said, FRIT_CAPTURE_TABLE, 3, 1);
}

static void no_release(struct said *said)
{
    offer(said, FRIT_CAPTURE_TABLE, 3, 2);
}

static void short_capture(struct said *said)
{
    offer(said, FRIT_CAPTURE_TABLE, 2, 8);
}

static void no_group_id(struct said *said)
{
    offer(said, FRIT_COLLECTIVE_TABLE, 6, 0);
}

static void no_begin(struct said *said)
{
    offer(said, FRIT_COLLECTIVE_TABLE, 6, 4);
}

static void short_collective(struct said *said)
{
    offer(said, FRIT_COLLECTIVE_TABLE, 5, 8);
}

static void no_clone(struct said *said)
{
    offer(said, FRIT_FUSER_TABLE, 8, 1);
}

static void no_finish(struct said *said)
{
    offer(said, FRIT_FUSER_TABLE, 8, 6);
}

static void short_native(struct said *said)
{
    offer(said, FRIT_NATIVE_TABLE, 0, 8);
}

static void short_profile(struct said *said)
{
    offer(said, FRIT_PROFILE_TABLE, 0, 8);
}

/* ---- devices ---- */

static void wild_name(struct said *said)
{
    said->info->name = (frit_str){nowhere(), 5};
}

static void wild_stable_id(struct said *said)
{
    said->info->stable_id = (frit_str){nowhere(), 5};
}

static void wild_heaps(struct said *said)
{
    said->info->heaps = nowhere();
}

static void wild_formats(struct said *said)
{
    said->info->n_formats = 1;
    said->info->formats = nowhere();
}

static void wild_detail(struct said *said)
{
    *said->count = 0;
    said->driver->detail = (frit_str){nowhere(), 5};
}

static void null_stable_id(struct said *said)
{
    said->info->stable_id.ptr = NULL;
}

static void empty_stable_id(struct said *said)
{
    said->info->stable_id.len = 0;
}

static void blank_stable_id(struct said *said)
{
    said->info->stable_id = FRIT_STR("\n \t");
}

static void dirty_stable_id(struct said *said)
{
    said->info->stable_id = FRIT_STR(DIRT);
}

static void twin_devices(struct said *said)
{
    frit_device_info *second = (frit_device_info *)(void *)((char *)said->info + said->stride);

    if (said->capacity < 2)
        return;
    *second = *said->info;
    second->index = 1;
    *said->count = 2;
}

static void endless_name(struct said *said)
{
    said->info->name = long_text();
}

static void dirty_name(struct said *said)
{
    said->info->name = FRIT_STR(DIRT);
}

static void dirty_fingerprint(struct said *said)
{
    said->info->fingerprint = FRIT_STR(DIRT);
}

static void dirty_detail(struct said *said)
{
    *said->count = 0;
    said->driver->reason = FRIT_REASON_NO_RUNTIME;
    said->driver->detail = FRIT_STR(DIRT);
}

static void more_than_written(struct said *said)
{
    *said->count = 3;
}

static void silence(struct said *said)
{
    *said->count = 0;
}

static void endless_heaps(struct said *said)
{
    said->info->n_heaps = UINT32_MAX;
}

static void far_heaps(struct said *said)
{
    said->info->n_heaps = 2;
    said->info->heap_stride = 1u << 31;
}

static void no_stride(struct said *said)
{
    said->info->n_heaps = 2;
    said->info->heap_stride = 0;
}

static void endless_device(struct said *said)
{
    said->info->struct_size = UINT32_MAX;
}

static void wild_struct_size(struct said *said)
{
    said->driver->struct_size = UINT32_MAX;
}

const struct lie entry_lies[] = {
    {"no_plugin", no_plugin},
    {"no_id", no_id},
    {"no_version", no_version},
    {"empty_id", empty_id},
    {"endless_id", endless_id},
    {"dirty_id", dirty_id},
    {"endless_version", endless_version},
    {"dirty_version", dirty_version},
    {"wild_options", wild_options},
    {"null_options", null_options},
    {"endless_options", endless_options},
    {"thin_options", thin_options},
    {"same_option", same_option_twice},
    {"bad_default", bad_default},
    {"wild_open", wild_open},
    {"wild_close", wild_close},
    {"wild_tables", wild_tables},
    {NULL, NULL},
};

const struct lie failures[] = {
    {"seven", seven},
    {"unlisted", unlisted},
    {"mute", mute},
    {"endless_text", endless_failure},
    {"dirty_text", dirty_failure},
    {"other_status", other_failure},
    {"resized_text", resized_failure},
    {NULL, NULL},
};

const struct lie table_lies[] = {
    {"wild", wild_table},
    {"wild_driver", wild_driver},
    {"endless_driver", endless_driver},
    {"empty_driver", empty_driver},
    {"driver_auto", driver_auto},
    {"dirty_driver", dirty_driver},
    {"half_queues", half_queues},
    {"endless_table", endless_table},
    {"no_record", no_record},
    {"no_replay", no_replay},
    {"no_release", no_release},
    {"short_capture", short_capture},
    {"no_group_id", no_group_id},
    {"no_begin", no_begin},
    {"short_collective", short_collective},
    {"no_clone", no_clone},
    {"no_finish", no_finish},
    {"short_native", short_native},
    {"short_profile", short_profile},
    {NULL, NULL},
};

const struct lie device_lies[] = {
    {"wild_name", wild_name},
    {"wild_stable_id", wild_stable_id},
    {"wild_heaps", wild_heaps},
    {"wild_formats", wild_formats},
    {"wild_detail", wild_detail},
    {"null_stable_id", null_stable_id},
    {"empty_stable_id", empty_stable_id},
    {"blank_stable_id", blank_stable_id},
    {"dirty_stable_id", dirty_stable_id},
    {"twins", twin_devices},
    {"endless_name", endless_name},
    {"dirty_name", dirty_name},
    {"dirty_fingerprint", dirty_fingerprint},
    {"dirty_detail", dirty_detail},
    {"more", more_than_written},
    {"silence", silence},
    {"endless_heaps", endless_heaps},
    {"far_heaps", far_heaps},
    {"no_stride", no_stride},
    {"endless_device", endless_device},
    {"endless_driver_info", wild_struct_size},
    {NULL, NULL},
};
