/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt and hipBLASLt on the streams of the fake runtime.  A call that the vendors leave
 * undefined, or refuse because its caller has made a mistake, ends the process; what a correct
 * caller has to expect is returned. */
#include <stdlib.h>
#include <string.h>

#include "product_call.h"
#include "product_run.h"
#include "runtime.h"

#define LT(member, hip, cuda, ...) DECLARE(member, FAKE_PICK(hip, cuda), __VA_ARGS__)
#define ABSENT                     FAKE_ABSENT
#include "hip/syms.def"

/* Numbers of the libraries.  hipBLASLt has no attributes for alignments and reductions. */
enum {
    COMPUTE_F32 = FAKE_PICK(2, 68),
    COMPUTE_TF32 = FAKE_PICK(6, 77),
    COMPUTE_F64 = FAKE_PICK(7, 70),
    OP_N = FAKE_PICK(111, 0),
    OP_T = FAKE_PICK(112, 1),
    DESC_OP_A = FAKE_PICK(0, 3),
    DESC_OP_B = FAKE_PICK(1, 4),
    DESC_EPILOGUE = FAKE_PICK(2, 7),
    DESC_BIAS = FAKE_PICK(3, 8),
    LAYOUT_BATCHES = FAKE_PICK(0, 5),
    LAYOUT_BATCH_STEP = FAKE_PICK(1, 6),
    PREFERENCE_WORKSPACE = 1,
    PREFERENCE_REDUCTIONS = FAKE_PICK(1001, 3),
    REDUCE_IN_COMPUTE_TYPE = 2,
    REDUCE_IN_ANY = 7,
    PREFERENCE_ALIGN = FAKE_PICK(1000, 5), /* of a; those of b, c and d follow */
    USUAL_ALIGN_LOG2 = FAKE_PICK(0, 8),
    EPILOGUE_DEFAULT = 1,
    EPILOGUE_BIAS = 4,
    NOT_SUPPORTED = FAKE_PICK(7, 15) /* a result */
};

/* A heuristic's result; the algorithm is the part that Matmul takes. */
struct algorithm {
    uint64_t problem; /* hash of what it was found for */
    uint8_t align_log2[4];
    uint32_t magic;
#ifdef FAKE_HIP
    uint64_t max_workspace;
#else
    uint64_t reserved[6];
#endif
};

struct heuristic_result {
    struct algorithm algorithm;
    uint64_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

_Static_assert(sizeof(struct heuristic_result) == FAKE_PICK(56, 96), "");

/* ---- objects ---- */

enum object_kind { HANDLE = 0x48414e44, DESC, LAYOUT, PREFERENCE };
enum { MAGIC = 0x414c474f, ALIGNS = 4, MAX_ALIGN_LOG2 = 8 };

struct object {
    uint32_t kind; /* 0: destroyed */
    union {
        struct {
            void *context; /* the thread's that created it */
        } handle;
        struct {
            int compute, op_a, op_b, epilogue;
            uint64_t bias;
            pthread_t setter; /* of the bias */
        } desc;
        struct {
            struct matrix matrix;
            int32_t batches;
        } layout;
        struct {
            uint64_t workspace_bytes;
            uint8_t align_log2[ALIGNS];
            int reductions; /* a mask */
        } preference;
    };
};

/* ---- calls ---- */

static gpu_result create(const char *name, enum object_kind kind, const struct object *from,
                         void **out)
{
    gpu_result result = call_begin(name);
    struct object *made;

    if (result)
        return result;
    made = must_alloc(sizeof *made);
    *made = *from;
    made->kind = kind;
    *out = made;
    fake_gpu.alive[FAKE_PRODUCT]++;
    return GPU_SUCCESS;
}

static struct object *use(void *object, enum object_kind kind)
{
    struct object *used = object;

    if (!used || used->kind != kind)
        abort_wrong_call("%p is not an object of kind %d of the library for products", object,
                         (int)kind);
    return used;
}

/* What is destroyed is destroyed even if the call reports an error. */
static gpu_result destroy(const char *name, void *object, enum object_kind kind)
{
    gpu_result result = call_begin(name);

    use(object, kind)->kind = 0;
    free(object);
    fake_gpu.alive[FAKE_PRODUCT]--;
    return result;
}

/* Copies an attribute, which must have this size. */
static void take(void *to, size_t size, const void *from, size_t bytes)
{
    must_be(from && bytes == size, "an attribute of another size");
    memcpy(to, from, size);
}

static int take_i32(const void *from, size_t bytes)
{
    int32_t value;

    take(&value, sizeof value, from, bytes);
    return value;
}

gpu_result fake_Create(void **out)
{
    must_be(product_runtime()->current(), "no current device");
    return create("Create", HANDLE, &(struct object){.handle = {product_runtime()->current()}},
                  out);
}

/* 1.2 or 13.1, and the last number that is set. */
#ifdef FAKE_HIP
gpu_result fake_GetVersion(void *handle, int *version)
{
    gpu_result result = call_begin("GetVersion");

    (void)use(handle, HANDLE);
    *version = 100200 + fake_gpu.patch;
    return result;
}
#else
gpu_result fake_GetProperty(int property, int *value)
{
    gpu_result result = call_begin("GetProperty");

    must_be(property >= 0 && property < 3, "an unknown property");
    *value = property == 0 ? 13 : property == 1 ? 1 : fake_gpu.patch;
    return result;
}
#endif

gpu_result fake_Destroy(void *handle)
{
    must_be(use(handle, HANDLE)->handle.context == product_runtime()->current(),
            "another current device");
    return destroy("Destroy", handle, HANDLE);
}

gpu_result fake_DescCreate(void **out, int compute, int scale)
{
    must_be(((compute == COMPUTE_F32 || compute == COMPUTE_TF32) && scale == PRODUCT_F32) ||
                (compute == COMPUTE_F64 && scale == PRODUCT_F64),
            "unknown types of a description");
    return create(
        "DescCreate", DESC,
        &(struct object){
            .desc = {.compute = compute, .op_a = OP_N, .op_b = OP_N, .epilogue = EPILOGUE_DEFAULT}},
        out);
}

gpu_result fake_DescDestroy(void *desc)
{
    return destroy("DescDestroy", desc, DESC);
}

gpu_result fake_DescSetAttribute(void *desc, int attribute, const void *value, size_t bytes)
{
    struct object *o = use(desc, DESC);
    gpu_result result = call_begin("DescSetAttribute");

    if (result)
        return result;
    switch (attribute) {
    case DESC_OP_A:
    case DESC_OP_B:
        *(attribute == DESC_OP_A ? &o->desc.op_a : &o->desc.op_b) = take_i32(value, bytes);
        must_be((o->desc.op_a == OP_N || o->desc.op_a == OP_T) &&
                    (o->desc.op_b == OP_N || o->desc.op_b == OP_T),
                "neither transposed nor not");
        break;
    case DESC_EPILOGUE:
        o->desc.epilogue = take_i32(value, bytes);
        must_be(o->desc.epilogue == EPILOGUE_DEFAULT || o->desc.epilogue == EPILOGUE_BIAS,
                "an unknown epilogue");
        break;
    case DESC_BIAS:
        take(&o->desc.bias, sizeof o->desc.bias, value, bytes);
        o->desc.setter = pthread_self();
        break;
    default:
        abort_wrong_call("a product: attribute %d of a description", attribute);
    }
    return GPU_SUCCESS;
}

gpu_result fake_LayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t leading)
{
    const struct matrix matrix = {
        .rows = rows, .columns = columns, .leading = leading, .type = type};

    must_be(product_type_bytes(type), "an unknown type");
    must_be(rows && columns && rows <= INT32_MAX && columns <= INT32_MAX, "extents of a layout");
    must_be(leading > 0 && (uint64_t)leading >= rows, "columns that overlap");
    return create("LayoutCreate", LAYOUT, &(struct object){.layout = {matrix, 1}}, out);
}

gpu_result fake_LayoutDestroy(void *layout)
{
    return destroy("LayoutDestroy", layout, LAYOUT);
}

gpu_result fake_LayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes)
{
    struct object *o = use(layout, LAYOUT);
    gpu_result result = call_begin("LayoutSetAttribute");

    if (result)
        return result;
    if (attribute == LAYOUT_BATCHES) {
        o->layout.batches = take_i32(value, bytes);
        must_be(o->layout.batches > 0, "no batches");
    } else if (attribute == LAYOUT_BATCH_STEP) {
        take(&o->layout.matrix.batch_step, sizeof o->layout.matrix.batch_step, value, bytes);
        must_be(o->layout.matrix.batch_step >= 0, "a negative step between batches");
    } else {
        abort_wrong_call("a product: attribute %d of a layout", attribute);
    }
    return GPU_SUCCESS;
}

gpu_result fake_PreferenceCreate(void **out)
{
    struct object from = {.preference = {.reductions = REDUCE_IN_ANY}};

    memset(from.preference.align_log2, USUAL_ALIGN_LOG2, ALIGNS);
    return create("PreferenceCreate", PREFERENCE, &from, out);
}

gpu_result fake_PreferenceDestroy(void *preference)
{
    return destroy("PreferenceDestroy", preference, PREFERENCE);
}

gpu_result fake_PreferenceSetAttribute(void *preference, int attribute, const void *value,
                                       size_t bytes)
{
    struct object *o = use(preference, PREFERENCE);
    gpu_result result = call_begin("PreferenceSetAttribute");

    if (result)
        return result;
    if (attribute == PREFERENCE_WORKSPACE) {
        take(&o->preference.workspace_bytes, sizeof o->preference.workspace_bytes, value, bytes);
    } else if (attribute == PREFERENCE_REDUCTIONS) {
        o->preference.reductions = take_i32(value, bytes);
    } else if (attribute >= PREFERENCE_ALIGN && attribute < PREFERENCE_ALIGN + ALIGNS) {
        const int align = take_i32(value, bytes);

        must_be(align > 0 && align <= 1 << MAX_ALIGN_LOG2 && !(align & (align - 1)),
                "an alignment that is not a power of two");
        o->preference.align_log2[attribute - PREFERENCE_ALIGN] =
            (uint8_t)__builtin_ctz((unsigned)align);
    } else {
        abort_wrong_call("a product: attribute %d of a preference", attribute);
    }
    return GPU_SUCCESS;
}

/* ---- products ---- */

/* What a description and layouts say. */
static struct product product_of(const struct object *desc, const struct object *a,
                                 const struct object *b, const struct object *c,
                                 const struct object *d)
{
    struct product p = {.batches = d->layout.batches,
                        .a = a->layout.matrix,
                        .b = b->layout.matrix,
                        .d = d->layout.matrix,
                        .has_memory = product_runtime()->has_memory};

    p.is_tf32 = desc->desc.compute == COMPUTE_TF32;
    p.a.transposed = desc->desc.op_a == OP_T;
    p.b.transposed = desc->desc.op_b == OP_T;
    p.m = (int64_t)d->layout.matrix.rows;
    p.n = (int64_t)d->layout.matrix.columns;
    p.k = (int64_t)(p.a.transposed ? p.a.rows : p.a.columns);
    must_be(c == d, "c and d have different layouts");
    must_be(p.a.type == p.b.type, "a and b of several types");
    must_be(p.d.type == p.a.type || (p.d.type == PRODUCT_F32 && p.a.type != PRODUCT_F64),
            "a result of another type");
    must_be(!p.is_tf32 || p.a.type == PRODUCT_F32, "other operands than f32 as tf32");
    must_be((p.d.type == PRODUCT_F64) == (desc->desc.compute == COMPUTE_F64), "the type of sums");
    must_be(a->layout.batches == p.batches && b->layout.batches == p.batches,
            "several numbers of batches");
    must_be((int64_t)(p.a.transposed ? p.a.columns : p.a.rows) == p.m, "rows of a");
    must_be((int64_t)(p.b.transposed ? p.b.columns : p.b.rows) == p.k, "rows of b");
    must_be((int64_t)(p.b.transposed ? p.b.rows : p.b.columns) == p.n, "columns of b");
    must_be(p.batches == 1 || p.d.batch_step > 0, "batches with the same result");
    return p;
}

/* Hash of what an algorithm depends on. */
static uint64_t hash_of(const struct product *p, const struct object *desc)
{
    return product_hash(p, (uint64_t)desc->desc.epilogue * 1000 + (uint64_t)desc->desc.compute);
}

/* cuBLASLt has no bias in f64. */
gpu_result fake_GetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                             void *preference, int requested, void *results, int *found)
{
    gpu_result result = call_begin("GetHeuristic");
    const struct object *description = use(desc, DESC), *preferred = use(preference, PREFERENCE);
    const struct product p =
        product_of(description, use(a, LAYOUT), use(b, LAYOUT), use(c, LAYOUT), use(d, LAYOUT));
    struct heuristic_result out = {.state = fake_gpu.algorithm_state};

    must_be(use(handle, HANDLE)->handle.context == product_runtime()->current(),
            "another current device");
    must_be(FAKE_PICK(true, false) || product_type_bytes(p.d.type) > 2 ||
                preferred->preference.reductions == REDUCE_IN_COMPUTE_TYPE,
            "parts of sums may be rounded to 16 bits");
    must_be(requested > 0 && results && found, "no place for results");
    *found = 0;
    if (result)
        return result;
    if (fake_gpu.has_no_algorithm || (p.is_tf32 && fake_gpu.has_no_tf32) ||
        (p.d.type == PRODUCT_F64 && description->desc.epilogue == EPILOGUE_BIAS))
        return NOT_SUPPORTED;
    out.algorithm.problem = hash_of(&p, description);
    out.algorithm.magic = MAGIC;
    memcpy(out.algorithm.align_log2, preferred->preference.align_log2, ALIGNS);
    out.workspace_bytes = product_workspace(out.algorithm.problem);
    if (out.workspace_bytes > preferred->preference.workspace_bytes)
        return GPU_SUCCESS; /* none was found */
    memcpy(results, &out, sizeof out);
    *found = 1;
    return GPU_SUCCESS;
}

static void check_aligned(const struct product *p, const struct algorithm *algorithm)
{
    const struct matrix *const matrices[] = {&p->a, &p->b, &p->d};

    for (int i = 0; i < 3; i++)
        must_be(matrices[i]->at % product_type_bytes(matrices[i]->type) == 0 &&
                    matrices[i]->at % (UINT64_C(1) << algorithm->align_log2[i]) == 0,
                "an address is less aligned than the preference says");
}

static void check_bias(const struct product *p, const struct object *desc)
{
    must_be((p->bias != 0) == (desc->desc.epilogue == EPILOGUE_BIAS),
            "a bias without its epilogue");
    must_be(!p->bias || pthread_equal(desc->desc.setter, pthread_self()),
            "a bias that another thread has set");
    must_be(!p->bias || p->has_memory(p->bias, (uint64_t)p->m * product_type_bytes(p->d.type)),
            "the bias is not all in memory of the device");
}

gpu_result fake_Matmul(void *handle, void *desc, const void *alpha, const void *a, void *layout_a,
                       const void *b, void *layout_b, const void *beta, const void *c,
                       void *layout_c, void *d, void *layout_d, const void *algorithm,
                       void *workspace, size_t workspace_bytes, gpu_stream stream)
{
    gpu_result result = call_begin("Matmul");
    const struct object *description = use(desc, DESC);
    struct product p = product_of(description, use(layout_a, LAYOUT), use(layout_b, LAYOUT),
                                  use(layout_c, LAYOUT), use(layout_d, LAYOUT));
    struct algorithm chosen;

    must_be(use(handle, HANDLE)->handle.context == product_runtime()->current(),
            "another current device");
    product_check_scalars(&p, alpha, beta);
    must_be(algorithm && c == d, "no algorithm, or c is not d");
    memcpy(&chosen, algorithm, sizeof chosen);
    must_be(chosen.magic == MAGIC && chosen.problem == hash_of(&p, description),
            "an algorithm for something else");
    p.a.at = (uintptr_t)a;
    p.b.at = (uintptr_t)b;
    p.d.at = (uintptr_t)d;
    p.bias = description->desc.bias;
    p.workspace = (uintptr_t)workspace;
    p.workspace_bytes = product_workspace(chosen.problem);
    must_be(workspace_bytes >= p.workspace_bytes, "a workspace that is too small");
    check_aligned(&p, &chosen);
    check_bias(&p, description);
    product_check_memory(&p);
    if (result)
        return result;
    product_count(&p);
    return product_runtime()->enqueue(stream, product_run, &p, sizeof p);
}
