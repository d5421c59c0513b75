/* SPDX-License-Identifier: Apache-2.0 */
#include "product_call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static struct fake_gpu *runtime;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_runtime(void)
{
    static const char *const names[] = {FAKE_PICK("amdhip64-6", "cuda"),
                                        FAKE_PICK("amdhip64-5", "cuda")};
    char path[1024];
    Dl_info self;

    for (size_t i = 0; i < sizeof names / sizeof *names && !runtime; i++) {
        const char *slash;
        void *library;

        if (!dladdr(&once, &self) || !(slash = strrchr(self.dli_fname, '/')))
            break;
        snprintf(path, sizeof path, "%.*s/libfake-%s.so", (int)(slash - self.dli_fname),
                 self.dli_fname, names[i]);
        library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        runtime = library ? dlsym(library, FAKE_GPU) : NULL;
    }
    if (!runtime)
        abort_wrong_call("a library for products without its runtime");
}

struct fake_gpu *product_runtime(void)
{
    pthread_once(&once, find_runtime);
    return runtime;
}

void must_be(bool is, const char *what)
{
    if (!is)
        abort_wrong_call("a product: %s", what);
}

/* FNV-1a of 64-bit numbers. */
uint64_t product_hash(const struct product *p, uint64_t other)
{
    const struct matrix *const matrices[] = {&p->a, &p->b, &p->d};
    uint64_t hash = 0xcbf29ce484222325;
    uint64_t numbers[5 + 3 * 3] = {(uint64_t)(p->a.type * 16 + p->d.type), (uint64_t)p->k,
                                   (uint64_t)p->batches, other, (uint64_t)fake_gpu.patch};
    uint32_t n = 5;

    for (int i = 0; i < 3; i++) {
        numbers[n++] = matrices[i]->rows * 2 + matrices[i]->transposed;
        numbers[n++] = (uint64_t)matrices[i]->leading;
        numbers[n++] = (uint64_t)matrices[i]->batch_step;
    }
    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ numbers[i]) * 0x100000001b3;
    return hash ^ hash >> 32;
}

uint64_t product_workspace(uint64_t hash)
{
    return hash % 3 == 0 ? 256 + hash % 5000 : 0;
}

void product_check_memory(const struct product *p)
{
    enum { WORKSPACE_ALIGN = 16 };

    must_be(product_has_matrix(p, &p->a), "a is not all in memory of the device");
    must_be(product_has_matrix(p, &p->b), "b is not all in memory of the device");
    must_be(product_has_matrix(p, &p->d), "d is not all in memory of the device");
    must_be(!p->workspace_bytes || (p->workspace % WORKSPACE_ALIGN == 0 &&
                                    p->has_memory(p->workspace, p->workspace_bytes)),
            "the workspace is not in memory of the device");
}

static bool is_number(int type, const void *at, double number)
{
    float f32;
    double f64;

    memcpy(&f32, at, sizeof f32);
    if (type != PRODUCT_F64)
        return (double)f32 == number;
    memcpy(&f64, at, sizeof f64);
    return f64 == number;
}

void product_check_scalars(const struct product *p, const void *alpha, const void *beta)
{
    must_be(is_number(p->d.type, alpha, 1) && is_number(p->d.type, beta, 0),
            "alpha is not 1, beta not 0");
}

void product_count(const struct product *p)
{
    static const char *const words[FAKE_PRODUCT_KINDS] = {"product",    "batches",   "bias",
                                                          "transposed", "workspace", "tf32"};
    const bool has[FAKE_PRODUCT_KINDS] = {true,
                                          p->batches > 1,
                                          p->bias != 0,
                                          p->a.transposed || p->b.transposed,
                                          p->workspace_bytes != 0,
                                          p->is_tf32};
    const char *path = getenv("FAKE_GPU_PRODUCTS");
    FILE *file = path ? fopen(path, "a") : NULL;

    for (int i = 0; i < FAKE_PRODUCT_KINDS; i++) {
        fake_gpu.products[i] += has[i];
        if (file)
            fprintf(file, "%s ", has[i] ? words[i] : "-");
    }
    if (file) {
        fprintf(file, "type %d %d\n", p->a.type, p->d.type);
        fclose(file);
    }
}
