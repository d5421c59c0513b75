/* SPDX-License-Identifier: Apache-2.0 */
#include "plugins/load.h"

#include <dlfcn.h>
#include <stdio.h>

#include "unit.h"

__attribute__((weak)) int32_t frit_plugin_entry_v1(const frit_hello *hello, frit_welcome *welcome);

static frit_plugin_entry find_entry(const char *name)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    frit_plugin_entry entry = frit_plugin_entry_v1;
    char path[512];
    void *library;

    if (entry)
        return entry;
    snprintf(path, sizeof path, "%s/lib/frit/plugins/libfrit-%s.so", build ? build : "build", name);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    *(void **)&entry = dlsym(library, FRIT_PLUGIN_ENTRY);
    assert_non_null(entry);
    return entry;
}

const frit_plugin *load_plugin(const char *name)
{
    const frit_hello hello = {sizeof hello, FRIT_HELLO_MAGIC, FRIT_ABI_MIN,
                              FRIT_ABI_MAX, FRIT_SANITIZER,   0};
    frit_welcome welcome = {.struct_size = sizeof welcome};

    assert_int_equal(find_entry(name)(&hello, &welcome), FRIT_OK);
    return welcome.plugin;
}
