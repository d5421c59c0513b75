/* SPDX-License-Identifier: Apache-2.0 */
/* What the entry of every plugin of ours must do before there is a host: it negotiates with hosts
 * of other versions, and does nothing else. */
#include "unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <frit/plugin.h>

#include "threads.h"

enum { PATH = 600, POISON = 0xa5, PLUGINS = 16 };

static const uint64_t entry_ns = 1000000; /* the fastest of several calls */

struct entry {
    char path[PATH];
    void *object;
    frit_plugin_entry call;
};

static struct entry entries[PLUGINS];
static size_t n_entries;

static const frit_hello today = {.struct_size = sizeof(today),
                                 .magic = FRIT_HELLO_MAGIC,
                                 .abi_min = FRIT_ABI_MIN,
                                 .abi_max = FRIT_ABI_MAX,
                                 .sanitizer = FRIT_SANITIZER};

static size_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void load(struct entry *entry)
{
    entry->object = dlopen(entry->path, RTLD_NOW | RTLD_LOCAL);
    if (!entry->object)
        fail_msg("%s", dlerror());
    *(void **)(&entry->call) = dlsym(entry->object, FRIT_PLUGIN_ENTRY);
    assert_non_null(entry->call);
}

static int load_all(void **state)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    const struct dirent *file;
    char path[PATH];
    DIR *folder;

    (void)state;
    snprintf(path, sizeof(path), "%s/lib/frit/plugins", build ? build : "");
    folder = opendir(path);
    if (!folder)
        return -1;
    while ((file = readdir(folder)) && n_entries < PLUGINS)
        if (fnmatch("libfrit-*.so", file->d_name, 0) == 0)
            snprintf(entries[n_entries++].path, PATH, "%.300s/%.200s", path, file->d_name);
    closedir(folder);
    return n_entries ? 0 : -1;
}

/* Loading and the entry open nothing and start nothing. */
static void it_only_negotiates(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_entries; i++) {
        const size_t descriptors = count_descriptors();
        const uint32_t threads = count_threads();
        frit_welcome welcome = {.struct_size = sizeof(welcome)};

        load(&entries[i]);
        assert_int_equal(entries[i].call(&today, &welcome), FRIT_OK);
        assert_int_equal(welcome.magic, FRIT_WELCOME_MAGIC);
        assert_int_equal(welcome.abi_chosen, FRIT_ABI_MAX);
        assert_non_null(welcome.plugin);
        assert_int_equal(count_descriptors(), descriptors);
        assert_int_equal(count_threads(), threads);
    }
}

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void it_is_called_again_and_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_entries; i++) {
        const frit_plugin *plugin = NULL;
        uint64_t fastest = UINT64_MAX;

        for (int k = 0; k < 5; k++) {
            frit_welcome welcome = {.struct_size = sizeof(welcome)};
            const uint64_t begun = now_ns();

            assert_int_equal(entries[i].call(&today, &welcome), FRIT_OK);
            fastest = now_ns() - begun < fastest ? now_ns() - begun : fastest;
            assert_true(!plugin || plugin == welcome.plugin);
            plugin = welcome.plugin;
        }
        assert_true(fastest < entry_ns);
    }
}

static void expect_range(const struct entry *entry, uint32_t low, uint32_t high, int32_t status)
{
    frit_welcome welcome = {.struct_size = sizeof(welcome)};
    frit_hello hello = today;

    hello.abi_min = low;
    hello.abi_max = high;
    assert_int_equal(entry->call(&hello, &welcome), status);
    assert_int_equal(welcome.magic, FRIT_WELCOME_MAGIC);
    assert_int_equal(welcome.abi_min, FRIT_ABI_MIN); /* its own, so that the host can say it */
    assert_int_equal(welcome.abi_max, FRIT_ABI_MAX);
    assert_int_equal(welcome.abi_chosen, status ? 0 : FRIT_ABI_MAX);
    assert_int_equal(welcome.plugin != NULL, status == FRIT_OK);
}

static void hosts_of_other_versions(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_entries; i++) {
        expect_range(&entries[i], FRIT_ABI(0, 0), FRIT_ABI(0, 1), FRIT_INCOMPATIBLE);
        expect_range(&entries[i], FRIT_ABI(7, 0), FRIT_ABI(7, 9), FRIT_INCOMPATIBLE);
        expect_range(&entries[i], FRIT_ABI_MIN, FRIT_ABI(7, 9), FRIT_OK);
        expect_range(&entries[i], 0, UINT32_MAX, FRIT_OK);
    }
}

/* A page of poison, with `bytes` that end where the next one cannot be read. */
static void *at_the_end(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED);
    memset(pages, POISON, page);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    return pages + page - bytes;
}

static void structs_of_other_sizes(void **state)
{
    frit_hello *hello = at_the_end(sizeof(*hello)), *larger = at_the_end(4 * sizeof(*larger));
    frit_welcome *welcome = at_the_end(sizeof(*welcome)), small = {.struct_size = 16};

    (void)state;
    *hello = today;
    *larger = today;
    larger->struct_size = 4 * sizeof(*larger); /* poison behind what is known */
    for (size_t i = 0; i < n_entries; i++) {
        *welcome = (frit_welcome){.struct_size = sizeof(*welcome)};
        assert_int_equal(entries[i].call(hello, welcome), FRIT_OK);
        assert_int_equal(entries[i].call(larger, welcome), FRIT_OK);
        assert_int_equal(entries[i].call(hello, &small), FRIT_INVALID);
        assert_int_equal(small.magic, 0);
        hello->struct_size = 8;
        assert_int_equal(entries[i].call(hello, welcome), FRIT_INVALID);
        *hello = today;
        hello->magic++;
        assert_int_equal(entries[i].call(hello, welcome), FRIT_INVALID);
        *hello = today;
        assert_int_equal(entries[i].call(NULL, welcome), FRIT_INVALID);
        assert_int_equal(entries[i].call(hello, NULL), FRIT_INVALID);
    }
}

/* The file stays mapped, whoever closes it. */
static void closing_the_file_does_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_entries; i++) {
        frit_welcome welcome = {.struct_size = sizeof(welcome)};

        assert_int_equal(dlclose(entries[i].object), 0);
        assert_int_equal(entries[i].call(&today, &welcome), FRIT_OK);
        assert_true(welcome.plugin->id.len > 0 && welcome.plugin->id.ptr[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_only_negotiates),
        cmocka_unit_test(it_is_called_again_and_at_once),
        cmocka_unit_test(hosts_of_other_versions),
        cmocka_unit_test(structs_of_other_sizes),
        cmocka_unit_test(closing_the_file_does_no_harm), /* last */
    };

    return cmocka_run_group_tests(tests, load_all, NULL);
}
