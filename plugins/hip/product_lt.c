/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt and hipBLASLt, which have the same functions.  vendor.lt has their numbers. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <frit/types.h>

#include "plugin.h"
#include "product.h"
#include "product_library.h"
#include "vendor.h"

enum {
    MAX_WORKSPACE_BYTES = 32 << 20,
    MAX_RESULT_BYTES = 128, /* of a heuristic's result */
    TYPE_F32 = 0,
    TYPE_F64 = 1,
    TYPE_F16 = 2,
    TYPE_BF16 = 14,    /* of both vendors */
    EPILOGUE_BIAS = 4, /* likewise */
    REDUCE_IN_COMPUTE_TYPE = 2
};

struct lt_plan {
    struct product_plan plan;
    void *desc, *a, *b, *c; /* description and layouts */
    pthread_mutex_t lock;   /* of the description's bias */
    bool has_lock;
    uint64_t algorithm[MAX_RESULT_BYTES / sizeof(uint64_t)];
};

/* ---- the library ---- */

/* NULL, also if the vendor has no such function. */
static void *find(void *library, const char *hip, const char *cuda)
{
    const char *name = vendor.dialect == CTEXT_HIP ? hip : cuda;

    return *name ? dlsym(library, name) : NULL;
}

static bool load(struct products *products, void *library)
{
    struct lt_api *api = &products->lt;
    bool has_all = true;

#define LT(member, hip, cuda, ...)                     \
    *(void **)&api->member = find(library, hip, cuda); \
    has_all &= api->member || !*(vendor.dialect == CTEXT_HIP ? (hip) : (cuda));
#include "syms.def"
    return has_all;
}

static gpu_result create(struct products *products, void **handle)
{
    return products->lt.Create(handle);
}

static gpu_result destroy(struct products *products, void *handle)
{
    return products->lt.Destroy(handle);
}

/* HIP's library needs a handle for that. */
static gpu_result write_version(struct products *products, char *to, size_t capacity)
{
    const struct lt_api *api = &products->lt;
    int version[3] = {0}, number = 0;
    gpu_result result = api->GetProperty ? 0 : products_need_handle(products);

    for (int i = 0; i < 3 && api->GetProperty && !result; i++)
        result = api->GetProperty(i, &version[i]);
    if (!api->GetProperty && !result) {
        result = api->GetVersion(products->handle, &number);
        version[0] = number / 100000;
        version[1] = number / 100 % 1000;
        version[2] = number % 100;
    }
    snprintf(to, capacity, "%d.%d.%d", version[0], version[1], version[2]);
    return result;
}

/* ---- plans ---- */

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

static gpu_result make_layout(const struct lt_api *api, void **out, uint32_t dtype,
                              const struct product_matrix *matrix, int64_t batches)
{
    const int32_t count = (int32_t)batches;
    gpu_result result =
        api->LayoutCreate(out, type_of(dtype), matrix->rows, matrix->columns, matrix->step);

    if (batches == 1 || result)
        return result;
    result = api->LayoutSetAttribute(*out, vendor.lt->layout_batches, &count, sizeof count);
    return result ? result
                  : api->LayoutSetAttribute(*out, vendor.lt->layout_batch_step, &matrix->batch_step,
                                            sizeof matrix->batch_step);
}

static gpu_result make_layouts(const struct lt_api *api, struct lt_plan *plan)
{
    const struct product_problem *p = &plan->plan.problem;
    gpu_result result = make_layout(api, &plan->a, p->dtype, &p->a, p->batches);

    if (!result)
        result = make_layout(api, &plan->b, p->dtype, &p->b, p->batches);
    return result ? result : make_layout(api, &plan->c, p->result, &p->c, p->batches);
}

static gpu_result set_number(const struct lt_api *api, void *desc, int attribute, int number)
{
    const int32_t value = number;

    return api->DescSetAttribute(desc, attribute, &value, sizeof value);
}

static int compute_of(const struct product_problem *p)
{
    if (p->dtype == FRIT_F64)
        return vendor.lt->compute_f64;
    return p->is_reduced ? vendor.lt->compute_tf32 : vendor.lt->compute_f32;
}

static gpu_result make_desc(const struct lt_api *api, struct lt_plan *plan)
{
    const struct product_problem *p = &plan->plan.problem;
    const struct lt_numbers *v = vendor.lt;
    gpu_result result =
        api->DescCreate(&plan->desc, compute_of(p), p->dtype == FRIT_F64 ? TYPE_F64 : TYPE_F32);

    if (!result)
        result = set_number(api, plan->desc, v->desc_op_a, p->a.transposed ? v->op_t : v->op_n);
    if (!result)
        result = set_number(api, plan->desc, v->desc_op_b, p->b.transposed ? v->op_t : v->op_n);
    if (!result && p->has_bias)
        result = set_number(api, plan->desc, v->desc_epilogue, EPILOGUE_BIAS);
    return result;
}

/* Parts of sums are never added up in a result's 16 bits. */
static gpu_result set_preference(const struct lt_api *api, void *preference,
                                 const struct product_problem *p)
{
    const struct lt_numbers *v = vendor.lt;
    const uint64_t workspace = MAX_WORKSPACE_BYTES;
    const uint32_t reductions = REDUCE_IN_COMPUTE_TYPE;
    gpu_result result =
        api->PreferenceSetAttribute(preference, v->max_workspace, &workspace, sizeof workspace);

    if (!result && v->reductions && frit_storage_bytes(p->result, 1) < sizeof(float))
        result =
            api->PreferenceSetAttribute(preference, v->reductions, &reductions, sizeof reductions);
    for (uint32_t i = 0; v->min_aligns && i < 4 && !result; i++)
        result = api->PreferenceSetAttribute(preference, v->min_aligns + (int)i, &p->align,
                                             sizeof p->align);
    return result;
}

/* The library's first choice; *found is 0 if there is none. */
static gpu_result find_algorithm(const struct lt_api *api, void *handle, struct lt_plan *plan,
                                 int *found)
{
    void *preference = NULL;
    const char *const best = (const char *)plan->algorithm;
    int32_t state;
    gpu_result result = api->PreferenceCreate(&preference);

    *found = 0;
    if (!result)
        result = set_preference(api, preference, &plan->plan.problem);
    if (!result)
        result = api->GetHeuristic(handle, plan->desc, plan->a, plan->b, plan->c, plan->c,
                                   preference, 1, plan->algorithm, found);
    if (preference)
        (void)api->PreferenceDestroy(preference);
    memcpy(&plan->plan.workspace_bytes, best + vendor.lt->result_workspace,
           sizeof plan->plan.workspace_bytes);
    memcpy(&state, best + vendor.lt->result_state, sizeof state);
    return result ? result : state;
}

static gpu_result make_plan(struct products *products, struct product_plan *base, bool *found)
{
    const struct lt_api *api = &products->lt;
    struct lt_plan *plan = (struct lt_plan *)base;
    int n_found = 0;
    gpu_result result;

    plan->has_lock = !pthread_mutex_init(&plan->lock, NULL);
    if (!plan->has_lock)
        return 0;
    result = make_desc(api, plan);
    if (!result)
        result = make_layouts(api, plan);
    if (!result)
        result = find_algorithm(api, products->handle, plan, &n_found);
    base->algorithm = hip_checksum(plan->algorithm, vendor.lt->result_workspace);
    *found = n_found > 0;
    return result;
}

static void release(struct products *products, struct product_plan *base)
{
    const struct lt_api *api = &products->lt;
    struct lt_plan *plan = (struct lt_plan *)base;

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
}

/* ---- launches ---- */

static gpu_result multiply(struct products *products, const struct lt_plan *plan,
                           const struct product_addresses *at, gpu_stream stream)
{
    static const float one = 1, zero = 0;
    static const double one64 = 1, zero64 = 0;
    const bool is_f64 = plan->plan.problem.dtype == FRIT_F64;
    void *c = (void *)at->c;

    return products->lt.Matmul(
        products->handle, plan->desc, is_f64 ? (const void *)&one64 : &one, (const void *)at->a,
        plan->a, (const void *)at->b, plan->b, is_f64 ? (const void *)&zero64 : &zero, c, plan->c,
        c, plan->c, plan->algorithm, (void *)at->workspace, plan->plan.workspace_bytes, stream);
}

/* The bias is a part of the description, so products of one plan with a bias are enqueued one after
 * another. */
static gpu_result enqueue(struct products *products, struct product_plan *base,
                          const struct product_addresses *at, gpu_stream stream)
{
    struct lt_plan *plan = (struct lt_plan *)base;
    gpu_result result;

    if (!at->bias)
        return multiply(products, plan, at, stream);
    pthread_mutex_lock(&plan->lock);
    result =
        products->lt.DescSetAttribute(plan->desc, vendor.lt->desc_bias, &at->bias, sizeof at->bias);
    if (!result)
        result = multiply(products, plan, at, stream);
    pthread_mutex_unlock(&plan->lock);
    return result;
}

const struct product_functions product_lt = {
    .plan_bytes = sizeof(struct lt_plan),
    .can_reduce = true,
    .load = load,
    .create = create,
    .destroy = destroy,
    .write_version = write_version,
    .plan = make_plan,
    .release = release,
    .enqueue = enqueue,
};
