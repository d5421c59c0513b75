/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of the libraries are stored by columns.  A product of matrices that are stored by rows
 * is computed as the transposed one: c' = b' a', in which b comes first and n is the number of
 * rows. */
#include "product.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "device.h"
#include "gpu/arg_block.h"
#include "kernels.h"
#include "launch.h"
#include "plugin.h"
#include "scope.h"
#include "vendor.h"

enum {
    MAX_WORKSPACE_BYTES = 32 << 20,
    MAX_RESULT_BYTES = 128, /* of a heuristic's result */
    TYPE_F32 = 0,
    TYPE_F64 = 1,
    TYPE_F16 = 2,
    TYPE_BF16 = 14,   /* of both vendors */
    EPILOGUE_BIAS = 4 /* likewise */
};

struct plan {
    void *desc;           /* description */
    pthread_mutex_t lock; /* of the description's bias, see enqueue_all */
    bool has_lock;
    void *b, *a, *c; /* layouts, in the order of the library */
    uint64_t algorithm[MAX_RESULT_BYTES / sizeof(uint64_t)];
    uint64_t workspace_bytes;
    int64_t n_loops;                 /* products that are enqueued one by one */
    uint64_t step_a, step_b, step_c; /* bytes between their operands */
    bool is_f64;
};

/* ---- the library ---- */

/* NULL, also if the vendor has no such function. */
static void *find(void *library, const char *hip, const char *cuda)
{
    const char *name = vendor.dialect == CTEXT_HIP ? hip : cuda;

    return *name ? dlsym(library, name) : NULL;
}

/* Whether the library has all functions. */
static bool load_functions(struct products_api *api, void *library)
{
    bool has_all = true;

#define PRODUCTS(member, hip, cuda, ...)               \
    *(void **)&api->member = find(library, hip, cuda); \
    has_all &= api->member || !*(vendor.dialect == CTEXT_HIP ? (hip) : (cuda));
#include "syms.def"
    return has_all;
}

static frit_status open_handle(struct device *device, void **out, frit_err *err);

/* Sets major, minor and patch.  HIP's library needs a handle for that. */
static bool read_version(struct device *device, int out[3])
{
    const struct products_api *api = &device->products.api;
    void *handle;
    int number;

    if (api->GetProperty)
        return !api->GetProperty(0, &out[0]) && !api->GetProperty(1, &out[1]) &&
               !api->GetProperty(2, &out[2]);
    if (open_handle(device, &handle, NULL) || api->GetVersion(handle, &number))
        return false;
    out[0] = number / 100000;
    out[1] = number / 100 % 1000;
    out[2] = number % 100;
    return true;
}

/* The algorithm is the first one of the library's heuristic, which its version decides. */
static void name_library(struct products *products, const int version[3])
{
    const char *name = vendor.products->name;

    snprintf(products->identity, sizeof products->identity, "%s %d.%d.%d", name, version[0],
             version[1], version[2]);
    snprintf(products->reduced_identity, sizeof products->reduced_identity, "%s %d.%d.%d tf32",
             name, version[0], version[1], version[2]);
}

/* Sets the device's library; it remains NULL if none is installed. */
static void *load_library(void *arg)
{
    struct device *device = arg;
    struct products *products = &device->products;
    const frit_str chosen = device->instance->options.products;
    char file[256];

    snprintf(file, sizeof file, "%.*s", (int)chosen.len, chosen.ptr ? chosen.ptr : "");
    if (chosen.len)
        products->library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    for (const char *const *name = vendor.products->libraries;
         *name && !products->library && !chosen.len; name++)
        products->library = dlopen(*name, RTLD_LAZY | RTLD_LOCAL);
    return NULL;
}

static bool is_wanted(const struct device *device)
{
    return !plug_is(device->instance->options.products, FRIT_STR("none"));
}

void products_load(struct device *device)
{
    struct products *products = &device->products;

    products->is_loading =
        is_wanted(device) && !pthread_create(&products->loader, NULL, load_library, device);
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
    int version[3];

    if (!is_wanted(device) || pthread_mutex_init(&products->lock, NULL))
        return;
    products->has_lock = true;
    if (!products->is_loading)
        load_library(device);
    products_wait(device);
    if (!products->library || !load_functions(&products->api, products->library) ||
        !read_version(device, version))
        return;
    name_library(products, version);
    device->kernels.library = products->identity;
    device->kernels.reduced_library = products->reduced_identity;
    device->kernels.product_plan = product_plan;
    device->kernels.product_release = product_release;
}

void products_close(struct device *device)
{
    struct products *products = &device->products;

    if (products->handle)
        (void)products->api.Destroy(products->handle);
    if (products->has_lock)
        pthread_mutex_destroy(&products->lock);
}

/* The handle, created by the first call.  The device must be entered. */
static frit_status open_handle(struct device *device, void **out, frit_err *err)
{
    struct products *products = &device->products;
    gpu_result result = 0;

    pthread_mutex_lock(&products->lock);
    if (!products->handle)
        result = products->api.Create(&products->handle);
    *out = products->handle;
    pthread_mutex_unlock(&products->lock);
    return result ? plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                              "%s cannot be used: error %d", products->identity, result)
                  : FRIT_OK;
}

/* ---- forms ---- */

/* A matrix as the library sees it: `transposed` if its rows are what the library takes for
 * columns. */
struct form {
    uint64_t rows, columns;
    int64_t step; /* between columns */
    bool transposed;
};

/* The form of a matrix of which the library wants `rows` x `columns`; `along_rows` and
 * `along_columns` are its steps.  False: it has none. */
static bool find_form(int64_t rows, int64_t columns, int64_t along_rows, int64_t along_columns,
                      struct form *out)
{
    const bool plain = along_rows == 1 || rows == 1;

    if (!plain && along_columns != 1 && columns != 1)
        return false;
    *out = (struct form){.rows = (uint64_t)(plain ? rows : columns),
                         .columns = (uint64_t)(plain ? columns : rows),
                         .step = plain ? along_columns : along_rows,
                         .transposed = !plain};
    if (out->columns == 1 && out->step < (int64_t)out->rows)
        out->step = (int64_t)out->rows;
    return out->step >= (int64_t)out->rows && (plain ? columns == 1 || along_columns > 0 : true);
}

static int type_of(uint32_t dtype)
{
    switch (dtype) {
    case FRIT_F64:
        return TYPE_F64;
    case FRIT_F16:
        return TYPE_F16;
    case FRIT_BF16:
        return TYPE_BF16;
    default:
        return TYPE_F32;
    }
}

/* ---- plans ---- */

static void plan_destroy(struct device *device, struct plan *plan)
{
    const struct products_api *api = &device->products.api;

    if (plan->has_lock)
        pthread_mutex_destroy(&plan->lock);
    if (plan->desc)
        (void)api->DescDestroy(plan->desc);
    if (plan->a)
        (void)api->LayoutDestroy(plan->a);
    if (plan->b)
        (void)api->LayoutDestroy(plan->b);
    if (plan->c)
        (void)api->LayoutDestroy(plan->c);
    hip_free(device->instance, plan);
}

static void product_release(void *self, void *plan)
{
    plan_destroy(self, plan);
}

static gpu_result make_layout(const struct products_api *api, void **out, uint32_t dtype,
                              const struct form *form, int64_t batches, int64_t batch_step)
{
    const int32_t count = (int32_t)batches;
    gpu_result result =
        api->LayoutCreate(out, type_of(dtype), form->rows, form->columns, form->step);

    if (batches == 1 || result)
        return result;
    result = api->LayoutSetAttribute(*out, vendor.products->layout_batches, &count, sizeof count);
    return result ? result
                  : api->LayoutSetAttribute(*out, vendor.products->layout_batch_step, &batch_step,
                                            sizeof batch_step);
}

/* Which of the batches are one call: the innermost with more than one. */
static uint32_t strided_batch(const struct kernels_product *p)
{
    return p->batch[1] > 1 ? 1 : 0;
}

static gpu_result make_layouts(const struct products_api *api, const struct kernels_product *p,
                               const struct form *a, const struct form *b, struct plan *plan)
{
    const uint32_t i = strided_batch(p);
    const struct form c = {(uint64_t)p->n, (uint64_t)p->m, p->m > 1 ? p->c.row : p->n, false};
    gpu_result result = make_layout(api, &plan->b, p->dtype, b, p->batch[i], p->b.batch[i]);

    if (!result)
        result = make_layout(api, &plan->a, p->dtype, a, p->batch[i], p->a.batch[i]);
    return result ? result : make_layout(api, &plan->c, p->result, &c, p->batch[i], p->c.batch[i]);
}

static gpu_result set_number(const struct products_api *api, void *desc, int attribute, int number)
{
    const int32_t value = number;

    return api->DescSetAttribute(desc, attribute, &value, sizeof value);
}

static gpu_result make_desc(const struct products_api *api, const struct kernels_product *p,
                            const struct form *a, const struct form *b, struct plan *plan)
{
    const struct products_vendor *v = vendor.products;
    gpu_result result = api->DescCreate(&plan->desc,
                                        plan->is_f64    ? v->compute_f64
                                        : p->is_reduced ? v->compute_tf32
                                                        : v->compute_f32,
                                        plan->is_f64 ? TYPE_F64 : TYPE_F32);

    if (!result)
        result = set_number(api, plan->desc, v->desc_op_a, b->transposed ? v->op_t : v->op_n);
    if (!result)
        result = set_number(api, plan->desc, v->desc_op_b, a->transposed ? v->op_t : v->op_n);
    if (!result && p->has_bias)
        result = set_number(api, plan->desc, v->desc_epilogue, EPILOGUE_BIAS);
    return result;
}

static gpu_result set_preference(const struct products_api *api, void *preference, uint32_t align)
{
    const struct products_vendor *v = vendor.products;
    const uint64_t workspace = MAX_WORKSPACE_BYTES;
    gpu_result result =
        api->PreferenceSetAttribute(preference, v->max_workspace, &workspace, sizeof workspace);

    for (uint32_t i = 0; v->min_aligns && i < 4 && !result; i++)
        result =
            api->PreferenceSetAttribute(preference, v->min_aligns + (int)i, &align, sizeof align);
    return result;
}

/* The library's first choice; *found is 0 if there is none. */
static gpu_result find_algorithm(const struct products_api *api, void *handle, uint32_t align,
                                 struct plan *plan, int *found)
{
    void *preference = NULL;
    const char *const best = (const char *)plan->algorithm;
    int32_t state;
    gpu_result result = api->PreferenceCreate(&preference);

    *found = 0;
    if (!result)
        result = set_preference(api, preference, align);
    if (!result)
        result = api->GetHeuristic(handle, plan->desc, plan->b, plan->a, plan->c, plan->c,
                                   preference, 1, plan->algorithm, found);
    if (preference)
        (void)api->PreferenceDestroy(preference);
    memcpy(&plan->workspace_bytes, best + vendor.products->result_workspace,
           sizeof plan->workspace_bytes);
    memcpy(&state, best + vendor.products->result_state, sizeof state);
    return result ? result : state;
}

static frit_status fill_plan(struct device *device, const struct kernels_product *p,
                             const struct form *a, const struct form *b, struct plan *plan,
                             frit_err *err)
{
    const struct products_api *api = &device->products.api;
    const uint64_t each = frit_storage_bytes(p->dtype, 1);
    void *handle;
    int found = 0;
    gpu_result result;
    frit_status status = open_handle(device, &handle, err);

    if (status)
        return status;
    plan->has_lock = !pthread_mutex_init(&plan->lock, NULL);
    if (!plan->has_lock)
        return plug_fail(&device->instance->plug, err, FRIT_IO, "cannot create a mutex");
    plan->is_f64 = p->dtype == FRIT_F64;
    plan->n_loops = strided_batch(p) ? p->batch[0] : 1;
    plan->step_a = (uint64_t)p->a.batch[0] * each;
    plan->step_b = (uint64_t)p->b.batch[0] * each;
    plan->step_c = (uint64_t)p->c.batch[0] * frit_storage_bytes(p->result, 1);
    result = make_desc(api, p, a, b, plan);
    if (!result)
        result = make_layouts(api, p, a, b, plan);
    if (!result)
        result = find_algorithm(api, handle, p->align, plan, &found);
    return !result && found ? FRIT_OK
                            : plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                                        "%s has no algorithm for a product: error %d",
                                        device->products.identity, result);
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

static frit_status product_plan(void *self, struct kernels_product_launch *out, frit_err *err)
{
    struct device *device = self;
    const struct kernels_product *p = &out->product;
    struct form a, b;
    struct plan *plan;
    struct scope scope;
    frit_status status;

    if (!is_worthwhile(device, p) || !has_forward_batches(p) || (p->n > 1 && p->c.column != 1) ||
        !find_form(p->n, p->k, p->b.column, p->b.row, &b) ||
        !find_form(p->k, p->m, p->a.column, p->a.row, &a))
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "the product is left to kernels");
    plan = hip_alloc(device->instance, sizeof *plan);
    if (!plan)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a product");
    status = scope_enter(device, &scope, err);
    if (!status) {
        status = fill_plan(device, p, &a, &b, plan, err);
        scope_leave(device, &scope);
    }
    if (status) {
        plan_destroy(device, plan);
        return status;
    }
    out->plan = plan;
    out->workspace_bytes = plan->workspace_bytes;
    out->algorithm = hip_checksum(plan->algorithm, vendor.products->result_workspace);
    return FRIT_OK;
}

/* ---- launches ---- */

static gpu_result enqueue_one(const struct launch_target *target, const struct plan *plan,
                              const uint64_t *words, uint64_t number)
{
    const struct products *products = &target->device->products;
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    void *c = (void *)(words[PRODUCT_C] + number * plan->step_c);

    return products->api.Matmul(
        products->handle, plan->desc, plan->is_f64 ? (const void *)&one64 : &one,
        (const void *)(words[PRODUCT_B] + number * plan->step_b), plan->b,
        (const void *)(words[PRODUCT_A] + number * plan->step_a), plan->a,
        plan->is_f64 ? (const void *)&zero64 : &zero, c, plan->c, c, plan->c, plan->algorithm,
        (void *)words[PRODUCT_WORKSPACE], plan->workspace_bytes, target->stream);
}

/* The bias is a part of the description, so products of one plan are enqueued one after another. */
static gpu_result enqueue_all(const struct launch_target *target, struct plan *plan,
                              const uint64_t *words)
{
    const struct products_api *api = &target->device->products.api;
    const uint64_t bias = words[PRODUCT_BIAS];
    gpu_result result = 0;

    if (bias) {
        pthread_mutex_lock(&plan->lock);
        result = api->DescSetAttribute(plan->desc, vendor.products->desc_bias, &bias, sizeof bias);
    }
    for (int64_t i = 0; i < plan->n_loops && !result; i++)
        result = enqueue_one(target, plan, words, (uint64_t)i);
    if (bias)
        pthread_mutex_unlock(&plan->lock);
    return result;
}

frit_status product_enqueue(const struct launch_target *target,
                            const struct kernels_product_launch *product, const uint64_t *words,
                            frit_err *err)
{
    gpu_result result = enqueue_all(target, product->plan, words);

    return result ? plug_fail(&target->device->instance->plug, err, FRIT_INTERNAL,
                              "%s: a product failed with error %d",
                              target->device->products.identity, result)
                  : FRIT_OK;
}
