/* SPDX-License-Identifier: Apache-2.0 */
/* rocBLAS.  Its stream and workspace are states of the handle, so products are enqueued one after
 * another.  It has neither epilogues nor alignments, and chooses its algorithms when it enqueues.
 */
#include <dlfcn.h>
#include <limits.h>

#include <frit/types.h>

#include "product.h"
#include "product_library.h"

enum {
    TYPE_F16 = 150,
    TYPE_F32 = 151,
    TYPE_F64 = 152,
    TYPE_BF16 = 168,
    OPERATION_NONE = 111,
    OPERATION_TRANSPOSE = 112,
    ATOMICS_NOT_ALLOWED = 0,
    ALGORITHM_STANDARD = 0
};

/* Results that are no errors. */
enum { PERFORMANCE_DEGRADED = 7, SIZE_INCREASED = 9, SIZE_UNCHANGED = 10 };

/* Of every product: with a workspace the library allocates no memory. */
enum { MIN_WORKSPACE_BYTES = 256 };

/* ---- the library ---- */

static bool load(struct products *products, void *library)
{
    struct rocblas_api *api = &products->rocblas;
    bool has_all = true;

#define ROCBLAS(member, name, ...)                  \
    *(void **)&api->member = dlsym(library, #name); \
    has_all &= api->member != NULL;
#include "syms.def"
    return has_all;
}

static gpu_result destroy(struct products *products, void *handle)
{
    return products->rocblas.Destroy(handle);
}

/* Without atomics sums have the same order in each run.  Without a workspace the handle holds no
 * memory. */
static gpu_result create(struct products *products, void **handle)
{
    const struct rocblas_api *api = &products->rocblas;
    gpu_result result = api->Create(handle);

    if (result)
        return result;
    result = api->SetAtomics(*handle, ATOMICS_NOT_ALLOWED);
    if (!result)
        result = api->SetWorkspace(*handle, NULL, 0);
    if (result) {
        (void)api->Destroy(*handle);
        *handle = NULL;
    }
    return result;
}

static gpu_result write_version(struct products *products, char *to, size_t capacity)
{
    return products->rocblas.GetVersion(to, capacity);
}

/* ---- products ---- */

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

static int operation_of(const struct product_matrix *matrix)
{
    return matrix->transposed ? OPERATION_TRANSPOSE : OPERATION_NONE;
}

static gpu_result multiply(struct products *products, const struct product_problem *p,
                           const struct product_addresses *at)
{
    static const float one = 1, zero = 0;
    static const double one64 = 1, zero64 = 0;
    const bool is_f64 = p->dtype == FRIT_F64;
    const int type = type_of(p->dtype), result = type_of(p->result);

    return products->rocblas.Multiply(
        products->handle, operation_of(&p->a), operation_of(&p->b), (int)p->m, (int)p->n, (int)p->k,
        is_f64 ? (const void *)&one64 : &one, (const void *)at->a, type, (int)p->a.step,
        p->a.batch_step, (const void *)at->b, type, (int)p->b.step, p->b.batch_step,
        is_f64 ? (const void *)&zero64 : &zero, (const void *)at->c, result, (int)p->c.step,
        p->c.batch_step, (void *)at->c, result, (int)p->c.step, p->c.batch_step, (int)p->batches,
        is_f64 ? TYPE_F64 : TYPE_F32, ALGORITHM_STANDARD, 0, 0);
}

/* Within a query the library computes nothing, but checks its arguments. */
static gpu_result query_workspace(struct products *products, const struct product_problem *p,
                                  size_t *bytes)
{
    static const struct product_addresses unused = {.a = 256, .b = 512, .c = 768};
    const struct rocblas_api *api = &products->rocblas;
    gpu_result result = api->StartQuery(products->handle), ended;

    if (result)
        return result;
    result = multiply(products, p, &unused);
    if (result == SIZE_INCREASED || result == SIZE_UNCHANGED)
        result = 0;
    ended = api->StopQuery(products->handle, bytes);
    return result ? result : ended;
}

static gpu_result make_plan(struct products *products, struct product_plan *plan, bool *found)
{
    const struct product_problem *p = &plan->problem;
    size_t bytes = 0;
    gpu_result result;

    if (p->has_bias || p->is_reduced || p->a.step > INT32_MAX || p->b.step > INT32_MAX ||
        p->c.step > INT32_MAX)
        return 0;
    pthread_mutex_lock(&products->lock);
    result = query_workspace(products, p, &bytes);
    pthread_mutex_unlock(&products->lock);
    plan->workspace_bytes = bytes < MIN_WORKSPACE_BYTES ? MIN_WORKSPACE_BYTES : bytes;
    *found = true;
    return result;
}

static void release(struct products *products, struct product_plan *plan)
{
    (void)products;
    (void)plan;
}

static gpu_result enqueue(struct products *products, struct product_plan *plan,
                          const struct product_addresses *at, gpu_stream stream)
{
    const struct rocblas_api *api = &products->rocblas;
    gpu_result result;

    pthread_mutex_lock(&products->lock);
    result = api->SetStream(products->handle, stream);
    if (!result)
        result = api->SetWorkspace(products->handle, (void *)at->workspace, plan->workspace_bytes);
    if (!result)
        result = multiply(products, &plan->problem, at);
    pthread_mutex_unlock(&products->lock);
    return result == PERFORMANCE_DEGRADED ? 0 : result;
}

const struct product_functions product_rocblas = {
    .plan_bytes = sizeof(struct product_plan),
    .load = load,
    .create = create,
    .destroy = destroy,
    .write_version = write_version,
    .plan = make_plan,
    .release = release,
    .enqueue = enqueue,
};
