/* SPDX-License-Identifier: Apache-2.0 */
/* Another plugin, with one table of its contract shorter or longer than it was compiled.
 *
 * The environment says which; the entry reads it, so that each host of a process may have another:
 *   RESIZED_PLUGIN  the plugin's file
 *   RESIZED_TABLE   the table's id, or "frit_fuser_device"
 *   RESIZED_BYTES   its struct_size from now on; what is more than the original is poison
 * Resized tables end where a page ends, and the next one cannot be read: whoever looks past
 * struct_size ends the process.  A program's table stays where it is, since drivers know theirs by
 * the address; the slots past its end become poison.
 *
 * Threads: one host at a time. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <frit/custom.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>

enum { POISON = 0xa5 };

static const char *table_name;
static uint32_t table_bytes;
static frit_plugin outer;
static const frit_plugin *inner;
static frit_host_root outer_host;
static const frit_host_root *inner_host;
static const frit_backend *inner_backend;
static const frit_fuser_table *inner_fusers;

/* ---- tables ---- */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static const void *resize(const void *table)
{
    size_t page = page_bytes();
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *copy = pages + page - table_bytes;
    uint32_t size;

    if (!table || pages == MAP_FAILED || table_bytes > page ||
        mprotect(pages + page, page, PROT_NONE))
        return NULL;
    memcpy(&size, table, sizeof(size));
    memset(pages, POISON, page);
    memcpy(copy, table, size < table_bytes ? size : table_bytes);
    memcpy(copy, &table_bytes, sizeof(table_bytes));
    return copy;
}

static bool is_resized(const char *name)
{
    return strcmp(name, table_name) == 0;
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

/* ---- a program's table, in its place ---- */

static struct {
    frit_program_table *place; /* NULL: none is resized */
    frit_program_table original;
} program_table;

static void overwrite(frit_program_table *place, const frit_program_table *with)
{
    uintptr_t page = page_bytes();
    uintptr_t first = (uintptr_t)place / page * page;
    uintptr_t end = ((uintptr_t)place + sizeof(*place) + page - 1) / page * page;

    if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE))
        abort();
    memcpy(place, with, sizeof(*place));
}

static void restore_program_table(void)
{
    if (program_table.place)
        overwrite(program_table.place, &program_table.original);
    program_table.place = NULL;
}

static void resize_program(const frit_program *program)
{
    frit_program_table table;

    if (!is_resized(FRIT_PROGRAM_TABLE) || program_table.place || !program->table ||
        program->table->struct_size != sizeof(table))
        return;
    program_table.original = table = *program->table;
    program_table.place = (frit_program_table *)(uintptr_t)program->table;
    if (table_bytes < sizeof(table))
        memset((char *)&table + table_bytes, POISON, sizeof(table) - table_bytes);
    table.struct_size = table_bytes;
    overwrite(program_table.place, &table);
}

/* ---- slots that see such structs ---- */

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    frit_status status = inner_backend->op_program(self, op, out, err);

    if (!status)
        resize_program(out);
    return status;
}

static frit_status prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    if (is_resized("frit_fuser_device"))
        device = resize(device);
    return inner_fusers->prototypes(instance, device, out, stride, capacity, count, err);
}

static frit_status finish(void *fuser, frit_program *out, frit_err *err)
{
    frit_status status = inner_fusers->finish(fuser, out, err);

    if (!status)
        resize_program(out);
    return status;
}

/* ---- the plugin ---- */

static const void *host_interface(void *self, frit_str id)
{
    const void *table = inner_host->get_interface(self, id);

    return is(id, table_name) ? resize(table) : table;
}

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    inner_host = host;
    outer_host = *host;
    outer_host.get_interface = host_interface;
    return inner->open(&outer_host, instance, err);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static frit_backend backend;
    static frit_fuser_table fusers;
    const void *table = inner->get_interface(instance, id);

    if (table && is(id, FRIT_BACKEND)) {
        inner_backend = table;
        memset(&backend, 0, sizeof(backend));
        memcpy(&backend, table, inner_backend->struct_size);
        backend.struct_size = sizeof(backend); /* what it has not is NULL, up to today's end */
        backend.op_program = op_program;
        table = &backend;
    } else if (table && is(id, FRIT_FUSER_TABLE)) {
        inner_fusers = table;
        memset(&fusers, 0, sizeof(fusers));
        memcpy(&fusers, table, inner_fusers->struct_size);
        fusers.struct_size = sizeof(fusers);
        fusers.prototypes = prototypes;
        fusers.finish = finish;
        table = &fusers;
    }
    return table && is(id, table_name) ? resize(table) : table;
}

FRIT_EXTERN_C __attribute__((visibility("default"))) int32_t
frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome);

/* Without the environment the welcome has no magic, and the host refuses the plugin. */
int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome)
{
    const char *path = getenv("RESIZED_PLUGIN");
    const char *bytes = getenv("RESIZED_BYTES");
    frit_plugin_entry entry;
    void *object;
    int32_t status;

    table_name = getenv("RESIZED_TABLE");
    object = path && bytes && table_name ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!object)
        return FRIT_INVALID;
    restore_program_table();
    table_bytes = (uint32_t)strtoul(bytes, NULL, 10);
    *(void **)(&entry) = dlsym(object, FRIT_PLUGIN_ENTRY); /* a function by contract */
    status = entry(hello, welcome);
    if (status || !welcome->plugin)
        return status;
    inner = welcome->plugin;
    outer = *inner;
    outer.open = plugin_open;
    outer.get_interface = plugin_interface;
    welcome->plugin = &outer;
    return status;
}
