/* SPDX-License-Identifier: Apache-2.0 */
/* rocBLAS on the streams of the fake runtime, with the rules of lt.c.  A product for which the
 * handle has no workspace ends the process, since the library would allocate one. */
#include <stdio.h>
#include <stdlib.h>

#include "product_call.h"
#include "product_run.h"
#include "runtime.h"

#define ROCBLAS(member, name, ...) DECLARE(member, #name, __VA_ARGS__)
#include "hip/syms.def"

enum { OPERATION_NONE = 111, OPERATION_TRANSPOSE = 112 };

/* Results. */
enum { NOT_IMPLEMENTED = 2, SIZE_INCREASED = 9, SIZE_UNCHANGED = 10 };

struct handle {
    void *context; /* the thread's that created it */
    gpu_stream stream;
    pthread_t setter; /* of the stream and the workspace */
    uint64_t workspace, workspace_bytes;
    bool has_atomics, is_query;
    size_t query_bytes;
};

static struct handle *use(void *handle)
{
    struct handle *used = handle;

    must_be(used && used->context == product_runtime()->current(), "another current device");
    return used;
}

gpu_result fake_Create(void **out)
{
    gpu_result result = call_begin("Create");
    struct handle *made;

    must_be(product_runtime()->current(), "no current device");
    if (result)
        return result;
    made = must_alloc(sizeof *made);
    *made = (struct handle){.context = product_runtime()->current(), .has_atomics = true};
    *out = made;
    fake_gpu.alive[FAKE_PRODUCT]++;
    return GPU_SUCCESS;
}

gpu_result fake_Destroy(void *handle)
{
    gpu_result result = call_begin("Destroy");

    must_be(!use(handle)->is_query, "destroyed within a query");
    free(handle);
    fake_gpu.alive[FAKE_PRODUCT]--;
    return result;
}

gpu_result fake_GetVersion(char *to, size_t bytes)
{
    gpu_result result = call_begin("GetVersion");

    if (!result)
        snprintf(to, bytes, "4.2.%d.0f1e2d", fake_gpu.patch);
    return result;
}

gpu_result fake_SetStream(void *handle, gpu_stream stream)
{
    struct handle *h = use(handle);
    gpu_result result = call_begin("SetStream");

    if (result)
        return result;
    h->stream = stream;
    h->setter = pthread_self();
    return GPU_SUCCESS;
}

gpu_result fake_SetWorkspace(void *handle, void *workspace, size_t bytes)
{
    struct handle *h = use(handle);
    gpu_result result = call_begin("SetWorkspace");

    must_be((workspace != NULL) == (bytes != 0), "a workspace without its size");
    if (result)
        return result;
    h->workspace = (uintptr_t)workspace;
    h->workspace_bytes = bytes;
    h->setter = pthread_self();
    return GPU_SUCCESS;
}

gpu_result fake_SetAtomics(void *handle, int mode)
{
    struct handle *h = use(handle);
    gpu_result result = call_begin("SetAtomics");

    must_be(mode == 0 || mode == 1, "an unknown mode of atomics");
    if (!result)
        h->has_atomics = mode;
    return result;
}

gpu_result fake_StartQuery(void *handle)
{
    struct handle *h = use(handle);
    gpu_result result = call_begin("StartQuery");

    must_be(!h->is_query, "a query within a query");
    if (result)
        return result;
    h->is_query = true;
    h->query_bytes = 0;
    return GPU_SUCCESS;
}

/* What ends a query ends it even if the call reports an error. */
gpu_result fake_StopQuery(void *handle, size_t *bytes)
{
    struct handle *h = use(handle);
    gpu_result result = call_begin("StopQuery");

    must_be(h->is_query, "no query");
    h->is_query = false;
    *bytes = h->query_bytes;
    return result;
}

/* ---- products ---- */

static int type_of(int datatype)
{
    switch (datatype) {
    case 150:
        return PRODUCT_F16;
    case 151:
        return PRODUCT_F32;
    case 152:
        return PRODUCT_F64;
    case 168:
        return PRODUCT_BF16;
    default:
        abort_wrong_call("a product: type %d", datatype);
    }
}

/* A matrix that op() makes `rows` x `columns`. */
static struct matrix matrix_of(int operation, int rows, int columns, const void *at, int type,
                               int leading, int64_t batch_step)
{
    const bool transposed = operation == OPERATION_TRANSPOSE;
    const struct matrix matrix = {.at = (uintptr_t)at,
                                  .rows = (uint64_t)(transposed ? columns : rows),
                                  .columns = (uint64_t)(transposed ? rows : columns),
                                  .leading = leading,
                                  .batch_step = batch_step,
                                  .type = type_of(type),
                                  .transposed = transposed};

    must_be(transposed || operation == OPERATION_NONE, "neither transposed nor not");
    must_be(rows > 0 && columns > 0, "extents of a matrix");
    must_be(leading > 0 && (uint64_t)leading >= matrix.rows, "columns that overlap");
    must_be(at, "a matrix without an address");
    must_be(batch_step >= 0, "a negative step between batches");
    return matrix;
}

static void check_types(const struct product *p, int compute)
{
    must_be(p->a.type == p->b.type, "a and b of several types");
    must_be(p->d.type == p->a.type || (p->d.type == PRODUCT_F32 && p->a.type != PRODUCT_F64),
            "a result of another type");
    must_be(type_of(compute) == (p->d.type == PRODUCT_F64 ? PRODUCT_F64 : PRODUCT_F32),
            "the type of sums");
}

/* Raises the handle's size to that of the product. */
static gpu_result grow_query(struct handle *h, uint64_t bytes)
{
    if (fake_gpu.has_no_algorithm)
        return NOT_IMPLEMENTED;
    if (bytes <= h->query_bytes)
        return SIZE_UNCHANGED;
    h->query_bytes = bytes;
    return SIZE_INCREASED;
}

static gpu_result enqueue(struct handle *h, struct product *p)
{
    const uint64_t bytes = product_workspace(product_hash(p, 0));
    gpu_result result;

    must_be(pthread_equal(h->setter, pthread_self()),
            "a stream or workspace that another thread has set");
    must_be(!h->has_atomics, "sums whose order varies");
    must_be(h->workspace_bytes >= bytes && h->workspace, "without the workspace that it needs");
    p->workspace = h->workspace;
    p->workspace_bytes = bytes;
    product_check_memory(p);
    must_be(p->has_memory(h->workspace, h->workspace_bytes), "a workspace that is no memory");
    product_count(p);
    result = product_runtime()->enqueue(h->stream, product_run, p, sizeof *p);
    return result ? result : fake_gpu.algorithm_state;
}

gpu_result fake_Multiply(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                         const void *a, int type_a, int leading_a, int64_t step_a, const void *b,
                         int type_b, int leading_b, int64_t step_b, const void *beta, const void *c,
                         int type_c, int leading_c, int64_t step_c, void *d, int type_d,
                         int leading_d, int64_t step_d, int batches, int compute, int algorithm,
                         int solution, unsigned flags)
{
    struct handle *h = use(handle);
    gpu_result result = call_begin("Multiply");
    struct product p = {.m = m,
                        .n = n,
                        .k = k,
                        .batches = batches,
                        .a = matrix_of(op_a, m, k, a, type_a, leading_a, step_a),
                        .b = matrix_of(op_b, k, n, b, type_b, leading_b, step_b),
                        .d = matrix_of(OPERATION_NONE, m, n, d, type_d, leading_d, step_d),
                        .has_memory = product_runtime()->has_memory};

    must_be(c == d && type_c == type_d && leading_c == leading_d && step_c == step_d, "c is not d");
    must_be(batches > 0 && (batches == 1 || step_d > 0), "batches with the same result");
    must_be(algorithm == 0 && solution == 0 && flags == 0, "a chosen algorithm, or flags");
    check_types(&p, compute);
    product_check_scalars(&p, alpha, beta);
    if (result)
        return result;
    return h->is_query ? grow_query(h, product_workspace(product_hash(&p, 0))) : enqueue(h, &p);
}
