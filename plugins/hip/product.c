/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries store matrices by columns.  A product of matrices that are stored by rows is computed
 * as the transposed one: c' = b' a'.  So a library's a is the second operand, its b the first, and
 * its m the number of columns. */
#include "product.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#include "adapter.h"
#include "device.h"
#include "gpu/arg_block.h"
#include "kernels.h"
#include "launch.h"
#include "plugin.h"
#include "product_library.h"
#include "scope.h"
#include "vendor.h"

/* ---- the library ---- */

gpu_result products_need_handle(struct products *products)
{
    gpu_result result = 0;

    pthread_mutex_lock(&products->lock);
    if (!products->handle)
        result = products->library->functions->create(products, &products->handle);
    pthread_mutex_unlock(&products->lock);
    return result;
}

static void close_handle(struct products *products)
{
    if (products->handle)
        (void)products->library->functions->destroy(products, products->handle);
    products->handle = NULL;
}

/* The algorithm is the library's own choice, which follows from its version. */
static bool name_library(struct products *products)
{
    enum { VERSION_BYTES = 40 };
    const char *name = products->library->name;
    char version[VERSION_BYTES] = "";

    if (products->library->functions->write_version(products, version, sizeof version))
        return false;
    snprintf(products->identity, sizeof products->identity, "%.16s %.39s", name, version);
    snprintf(products->reduced_identity, sizeof products->reduced_identity, "%.16s %.39s tf32",
             name, version);
    return true;
}

/* Loads a library by `file`, or if that is "" the first of its files that opens. */
static bool load_library(struct products *products, const struct product_library *library,
                         const char *file)
{
    const char *const given[] = {file, NULL};
    void *opened = NULL;

    for (const char *const *name = *file ? given : library->files; *name && !opened; name++)
        opened = dlopen(*name, RTLD_LAZY | RTLD_LOCAL); /* never closed */
    return opened && library->functions->load(products, opened);
}

/* Sets `library` to the first one from `from` on that loads and that the option allows: it is
 * empty, a library's name, or the name of a file, which contains the library's. */
static void load_first(struct device *device, const struct product_library *from)
{
    struct products *products = &device->products;
    const frit_str chosen = device->instance->options.products;
    char option[256];
    const char *slash;

    snprintf(option, sizeof option, "%.*s", (int)chosen.len, chosen.ptr ? chosen.ptr : "");
    slash = strrchr(option, '/');
    for (products->library = from; products->library->name; products->library++) {
        const char *name = products->library->name;

        if ((!*option || strcasestr(slash ? slash : option, name)) &&
            load_library(products, products->library, strcmp(option, name) == 0 ? "" : option))
            return;
    }
    products->library = NULL;
}

static void *load_any(void *arg)
{
    load_first(arg, vendor.product_libraries);
    return NULL;
}

static bool is_wanted(const struct device *device)
{
    return !plug_is(device->instance->options.products, FRIT_STR("none"));
}

void products_load(struct device *device)
{
    struct products *products = &device->products;

    products->is_loading = is_wanted(device) && !thread_start(&products->loader, load_any, device);
}

void products_wait(struct device *device)
{
    if (device->products.is_loading)
        pthread_join(device->products.loader, NULL);
    device->products.is_loading = false;
}

static frit_status product_plan(void *self, struct kernels_product_launch *out, frit_err *err);
static void product_release(void *self, void *plan);

void products_open(struct device *device)
{
    struct products *products = &device->products;

    if (!is_wanted(device) || pthread_mutex_init(&products->lock, NULL))
        return;
    products->has_lock = true;
    if (!products->is_loading)
        load_any(device);
    products_wait(device);
    while (products->library && !name_library(products)) {
        close_handle(products);
        load_first(device, products->library + 1);
    }
    if (!products->library)
        return;
    device->kernels.library = products->identity;
    if (products->library->functions->can_reduce)
        device->kernels.reduced_library = products->reduced_identity;
    device->kernels.product_plan = product_plan;
    device->kernels.product_release = product_release;
}

void products_close(struct device *device)
{
    struct products *products = &device->products;

    close_handle(products);
    if (products->has_lock)
        pthread_mutex_destroy(&products->lock);
}

/* ---- problems ---- */

/* The matrix op(x) of `rows` x `columns`; `along_rows` and `along_columns` are its steps.  False:
 * it has none. */
static bool find_matrix(int64_t rows, int64_t columns, int64_t along_rows, int64_t along_columns,
                        struct product_matrix *out)
{
    const bool plain = along_rows == 1 || rows == 1;

    if (!plain && along_columns != 1 && columns != 1)
        return false;
    *out = (struct product_matrix){.rows = (uint64_t)(plain ? rows : columns),
                                   .columns = (uint64_t)(plain ? columns : rows),
                                   .step = plain ? along_columns : along_rows,
                                   .transposed = !plain};
    if (out->columns == 1 && out->step < (int64_t)out->rows)
        out->step = (int64_t)out->rows;
    return out->step >= (int64_t)out->rows && (plain ? columns == 1 || along_columns > 0 : true);
}

/* Which of the batches are one call: the innermost with more than one. */
static uint32_t strided_batch(const struct kernels_product *p)
{
    return p->batch[1] > 1 ? 1 : 0;
}

/* The one place that decides between the library and the kernels of the kernel compiler, until
 * candidates are measured: products with few multiplications, for which a kernel is better, or with
 * more than MAX_LOOPS calls, are left to the kernels. */
static bool is_worthwhile(const struct device *device, const struct kernels_product *p)
{
    enum { MAX_LOOPS = 64 };
    const double n =
        (double)p->m * (double)p->n * (double)p->k * (double)p->batch[0] * (double)p->batch[1];

    return n >= (double)device->instance->options.min_product &&
           (!strided_batch(p) || p->batch[0] <= MAX_LOOPS) &&
           p->batch[strided_batch(p)] <= INT32_MAX && p->m <= INT32_MAX && p->n <= INT32_MAX &&
           p->k <= INT32_MAX;
}

/* The libraries do not define negative steps between batches. */
static bool has_forward_batches(const struct kernels_product *p)
{
    const uint32_t i = strided_batch(p);

    return p->batch[i] == 1 || (p->a.batch[i] >= 0 && p->b.batch[i] >= 0 && p->c.batch[i] >= 0);
}

/* False: libraries have no such product. */
static bool find_problem(const struct kernels_product *p, struct product_problem *out)
{
    const uint32_t i = strided_batch(p);

    *out = (struct product_problem){.dtype = p->dtype,
                                    .result = p->result,
                                    .has_bias = p->has_bias,
                                    .is_reduced = p->is_reduced,
                                    .align = p->align,
                                    .m = p->n,
                                    .n = p->m,
                                    .k = p->k,
                                    .batches = p->batch[i]};
    if (!has_forward_batches(p) || (p->n > 1 && p->c.column != 1) ||
        !find_matrix(p->n, p->k, p->b.column, p->b.row, &out->a) ||
        !find_matrix(p->k, p->m, p->a.column, p->a.row, &out->b))
        return false;
    out->c = (struct product_matrix){
        .rows = (uint64_t)p->n, .columns = (uint64_t)p->m, .step = p->m > 1 ? p->c.row : p->n};
    out->a.batch_step = p->b.batch[i];
    out->b.batch_step = p->a.batch[i];
    out->c.batch_step = p->c.batch[i];
    return true;
}

/* ---- plans ---- */

static void product_release(void *self, void *plan)
{
    struct device *device = self;

    device->products.library->functions->release(&device->products, plan);
    hip_free(device->instance, plan);
}

/* Products of the outer batch are enqueued one by one. */
static void set_loops(struct product_plan *plan, const struct kernels_product *p)
{
    const uint64_t each = frit_storage_bytes(p->dtype, 1);

    plan->n_loops = strided_batch(p) ? p->batch[0] : 1;
    plan->step_a = (uint64_t)p->b.batch[0] * each;
    plan->step_b = (uint64_t)p->a.batch[0] * each;
    plan->step_c = (uint64_t)p->c.batch[0] * frit_storage_bytes(p->result, 1);
}

static frit_status choose(struct device *device, struct product_plan *plan, frit_err *err)
{
    struct products *products = &device->products;
    bool found = false;
    struct scope scope;
    gpu_result result;
    frit_status status = scope_enter(device, &scope, err);

    if (status)
        return status;
    result = products_need_handle(products);
    if (!result)
        result = products->library->functions->plan(products, plan, &found);
    scope_leave(device, &scope);
    return !result && found ? FRIT_OK
                            : plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                                        "%s has no algorithm for a product: error %d",
                                        products->identity, result);
}

static frit_status product_plan(void *self, struct kernels_product_launch *out, frit_err *err)
{
    struct device *device = self;
    struct product_problem problem;
    struct product_plan *plan;
    frit_status status;

    if (!is_worthwhile(device, &out->product) || !find_problem(&out->product, &problem))
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "the product is left to kernels");
    plan = hip_alloc(device->instance, device->products.library->functions->plan_bytes);
    if (!plan)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a product");
    plan->problem = problem;
    set_loops(plan, &out->product);
    status = choose(device, plan, err);
    if (status) {
        product_release(device, plan);
        return status;
    }
    out->plan = plan;
    out->workspace_bytes = plan->workspace_bytes;
    out->algorithm = plan->algorithm;
    return FRIT_OK;
}

/* ---- launches ---- */

frit_status product_enqueue(const struct launch_target *target,
                            const struct kernels_product_launch *product, const uint64_t *words,
                            frit_err *err)
{
    struct products *products = &target->device->products;
    struct product_plan *plan = product->plan;
    struct product_addresses at = {.a = words[PRODUCT_B],
                                   .b = words[PRODUCT_A],
                                   .c = words[PRODUCT_C],
                                   .bias = words[PRODUCT_BIAS],
                                   .workspace = words[PRODUCT_WORKSPACE]};
    gpu_result result = 0;

    for (int64_t i = 0; i < plan->n_loops && !result; i++) {
        result = products->library->functions->enqueue(products, plan, &at, target->stream);
        at.a += plan->step_a;
        at.b += plan->step_b;
        at.c += plan->step_c;
    }
    return result ? plug_fail(&target->device->instance->plug, err, FRIT_INTERNAL,
                              "%s: a product failed with error %d", products->identity, result)
                  : FRIT_OK;
}
