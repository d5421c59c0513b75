/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

bool fake_is_cuda(void)
{
    return strcmp(RIG_DRIVER, "cuda") == 0;
}

static void *open_library(const char *name)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    char path[512];
    void *library;

    snprintf(path, sizeof path, "%s/tests/fake/%s", build ? build : "build", name);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

static void *find(const char *library, const char *name)
{
    void *found = dlsym(open_library(library), name);

    assert_non_null(found);
    return found;
}

struct fake_gpu *fake_open(void)
{
    return find(RIG_LIBRARY, FAKE_GPU);
}

struct fake_gpu *fake_open_compiler(void)
{
    return find(*RIG_COMPILER ? RIG_COMPILER : RIG_LIBRARY, FAKE_GPU);
}

void *fake_find(const char *hip, const char *cuda)
{
    return find(RIG_LIBRARY, fake_is_cuda() ? cuda : hip);
}

void fake_expect_nothing_alive(void)
{
    static const char *const names[FAKE_KINDS] = {
        "memory", "pinned memory",     "streams",  "events",  "modules",
        "graphs", "executable graphs", "programs", "contexts"};
    const struct fake_gpu *libraries[] = {fake_open(), fake_open_compiler()};

    for (int i = 0; i < 2; i++)
        for (int kind = 0; kind < FAKE_KINDS; kind++)
            if (libraries[i]->alive[kind])
                fail_msg("%lld %s are left", (long long)libraries[i]->alive[kind], names[kind]);
}
