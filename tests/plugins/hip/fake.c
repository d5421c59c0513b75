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

static void write_path(char path[512], const char *name)
{
    const char *build = getenv("FRIT_TEST_BUILD");

    snprintf(path, 512, "%s/tests/fake/%s", build ? build : "build", name);
}

static void *open_library(const char *name)
{
    char path[512];
    void *library;

    write_path(path, name);
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

struct fake_gpu *fake_load(const char *name)
{
    return find(name, FAKE_GPU);
}

struct fake_gpu *fake_open(void)
{
    return find(RIG_LIBRARY, FAKE_GPU);
}

struct fake_gpu *fake_open_compiler(void)
{
    return find(*RIG_COMPILER ? RIG_COMPILER : RIG_LIBRARY, FAKE_GPU);
}

#ifndef RIG_PRODUCTS
#define RIG_PRODUCTS NULL
#endif

/* The first of the driver's, or RIG_PRODUCTS. */
const struct fake_products *fake_products(void)
{
    static const struct fake_products cublaslt = {
        "cublaslt", "libfake-cublasLt.so", NULL, "13.1.", "", true, true, false, 2};
    static const struct fake_products hip[] = {
        {"hipblaslt", "libfake-hipblaslt.so", NULL, "1.2.", "", true, true, false, 2},
        {"rocblas", "libfake-rocblas.so", NULL, "4.2.", ".0f1e2d", false, false, true, 3}};
    static struct fake_products chosen;
    static char path[512];
    const char *name = RIG_PRODUCTS;

    chosen = fake_is_cuda() ? cublaslt : hip[name && strcmp(name, hip[1].name) == 0];
    write_path(path, chosen.library);
    chosen.file = path;
    return &chosen;
}

struct fake_gpu *fake_open_products(void)
{
    return find(fake_products()->library, FAKE_GPU);
}

void fake_write_identity(char to[64], bool is_reduced)
{
    const struct fake_products *products = fake_products();

    snprintf(to, 64, "%s %s%d%s%s", products->name, products->version,
             (int)fake_open_products()->patch, products->behind, is_reduced ? " tf32" : "");
}

void *fake_find(const char *hip, const char *cuda)
{
    return find(RIG_LIBRARY, fake_is_cuda() ? cuda : hip);
}

void fake_expect_nothing_alive(void)
{
    static const char *const names[FAKE_KINDS] = {
        "memory", "pinned memory",     "streams",  "events",   "modules",
        "graphs", "executable graphs", "programs", "contexts", "objects for products"};
    const struct fake_gpu *libraries[] = {fake_open(), fake_open_compiler(), fake_open_products()};

    for (int i = 0; i < 3; i++)
        for (int kind = 0; kind < FAKE_KINDS; kind++)
            if (libraries[i]->alive[kind])
                fail_msg("%lld %s are left", (long long)libraries[i]->alive[kind], names[kind]);
}
