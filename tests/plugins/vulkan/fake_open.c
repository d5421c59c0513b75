/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_open.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../gpu/rig.h"

struct fake_loader *fake;
char fake_path[512];

int fake_open(void **state)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    void *library;

    (void)state;
    snprintf(fake_path, sizeof fake_path, "%s/tests/fake/libfake-vulkan.so",
             build ? build : "build");
    library = dlopen(fake_path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    fake = dlsym(library, "fake_loader");
    assert_non_null(fake);
    return 0;
}
