/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fuse/product_rig.h"

#include <string.h>

/* ---- the library ---- */

static frit_status product_plan(void *self, struct kernels_product_launch *out, frit_err *err)
{
    struct library *library = self;
    const struct kernels_product *product = &out->product;

    (void)err;
    library->n_calls++;
    assert_true(product->m > 0 && product->n > 0 && product->k > 0);
    assert_true(product->batch[0] > 0 && product->batch[1] > 0 && product->align > 0);
    if (library->refusal)
        return library->refusal;
    if (product->is_reduced && library->reduced_refusal)
        return library->reduced_refusal;
    out->plan = malloc(1); /* the leak checker and free find what is not released once */
    if (!out->plan)
        return FRIT_NO_HOST_MEMORY;
    library->n_plans++;
    out->workspace_bytes = PRODUCT_WORKSPACE_BYTES;
    out->algorithm = library->algorithm;
    return FRIT_OK;
}

static void product_release(void *self, void *plan)
{
    struct library *library = self;

    library->n_released++;
    free(plan);
}

int product_setup(void **state)
{
    struct library *library = calloc(1, sizeof(*library));

    assert_non_null(library);
    rig_init(&library->rig);
    library->rig.device.library = LIBRARY;
    library->rig.device.product_plan = product_plan;
    library->rig.device.product_release = product_release;
    assert_ptr_equal(library->rig.device.self, library);
    *state = library;
    return 0;
}

int product_teardown(void **state)
{
    struct library *library = *state;

    assert_int_equal(library->n_plans, library->n_released);
    rig_fini(&library->rig);
    free(library);
    return 0;
}

/* ---- programs ---- */

/* 0 and 1 stand for themselves, others for their place in `extents`. */
static uint32_t class_of(int64_t extents[16], int64_t extent)
{
    uint32_t i = 2;

    if (extent < 2)
        return (uint32_t)extent;
    while (extents[i] && extents[i] != extent)
        i++;
    extents[i] = extent;
    return i;
}

static void sign(frit_arg_sig *arg, const struct tensor *t, bool is_result)
{
    const uint32_t dtype = t->dtype ? t->dtype : FRIT_F32;
    int64_t step = 1;
    bool dense = true;

    *arg = (frit_arg_sig){.dtype = dtype,
                          .rank = t->rank,
                          .align_log2 = 6,
                          .flags = is_result ? FRIT_ARG_WRITE : FRIT_ARG_READ};
    for (uint32_t d = t->rank; d-- > 0; step *= t->dims[d]) {
        arg->dims[d] = t->dims[d];
        arg->strides[d] = step;
        dense &= t->strides[d] == 0;
    }
    if (!dense)
        memcpy(arg->strides, t->strides, t->rank * sizeof(*arg->strides));
}

frit_status product_make(struct library *library, const struct row *row, struct op_program *out)
{
    int64_t extents[16] = {0};
    frit_operand operands[4] = {{0}};
    const frit_op_desc op = {.struct_size = FRIT_END_OF(frit_op_desc, dead),
                             .id = row->id,
                             .rev = 1,
                             .n_in = row->n_in,
                             .n_out = 1,
                             .operand_stride = sizeof(frit_operand),
                             .in = operands,
                             .out = operands + row->n_in};

    *out = (struct op_program){.program = {.struct_size = sizeof(out->program)}};
    rig_signature(&out->sig, row->n_in, 1, 0, 0, NULL);
    for (uint32_t i = 0; i <= row->n_in; i++) {
        const struct tensor *t = &row->tensor[i];

        out->sig.args[i] = (frit_arg_sig){0};
        if (!t->rank)
            continue;
        operands[i] = (frit_operand){.kind = FRIT_OPERAND_TENSOR,
                                     .dtype = t->dtype ? t->dtype : FRIT_F32,
                                     .value = i,
                                     .rank = t->rank};
        for (uint32_t d = 0; d < t->rank; d++)
            operands[i].extent[d] = class_of(extents, t->dims[d]);
        sign(&out->sig.args[i], t, i == row->n_in);
    }
    return kernels_op(&library->rig.device, &op, &out->program, NULL);
}

/* Number of a candidate, which is not the first one. */
static uint32_t find_candidate(const frit_program *program, const char *identity,
                               uint32_t numeric_class)
{
    frit_program_info info = {.struct_size = sizeof(info)};
    uint32_t found = UINT32_MAX;

    assert_int_equal(program->table->describe(program->self, &info, NULL), FRIT_OK);
    for (uint32_t i = 0; i < info.n_candidates; i++)
        if (info.candidates[i].identity.len == strlen(identity) &&
            memcmp(info.candidates[i].identity.ptr, identity, strlen(identity)) == 0) {
            assert_true(i > 0);
            assert_int_equal(info.candidates[i].numeric_class, numeric_class);
            found = i;
        }
    return found;
}

uint32_t product_candidate(const frit_program *program)
{
    return find_candidate(program, LIBRARY, FRIT_NUMERIC_REORDERED);
}

uint32_t product_reduced_candidate(const frit_program *program)
{
    return find_candidate(program, REDUCED_LIBRARY, FRIT_NUMERIC_REDUCED);
}

frit_status product_prepare(struct op_program *p, uint32_t candidate)
{
    frit_status st;

    p->spec = (frit_launch_spec){.struct_size = sizeof(p->spec)};
    p->variant = (frit_variant){.struct_size = sizeof(p->variant)};
    st = p->program.table->prepare(p->program.self, candidate, &p->sig.sig, &p->spec, &p->variant,
                                   NULL);
    if (st != FRIT_PREPARE_NEEDS_COMPILE)
        return st;
    return p->program.table->compile(p->program.self, candidate, &p->variant, NULL, NULL);
}

void product_launch(struct op_program *p, float *const *args)
{
    float *none[RIG_ARGS] = {0};
    const uint32_t n = p->sig.sig.n_in + p->sig.sig.n_out;

    rig_bind(&p->launch, &p->program, &p->spec, args ? args : none, n, PRODUCT_ELEMENTS, NULL, 0);
    assert_int_equal(kernels_launch(&p->launch.launch, p->words, RIG_WORDS, &p->kernel, NULL),
                     FRIT_OK);
}
