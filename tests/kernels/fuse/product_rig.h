/* SPDX-License-Identifier: Apache-2.0 */
/* A device with a library for products that computes nothing, and programs of one op. */
#ifndef TESTS_FUSE_PRODUCT_RIG_H
#define TESTS_FUSE_PRODUCT_RIG_H

#include "kernels/fuse/rig.h"

#define LIBRARY         "toy 1.0"
#define REDUCED_LIBRARY "toy 1.0 reduced"

enum { PRODUCT_WORKSPACE_BYTES = 192, PRODUCT_ELEMENTS = 1 << 14 /* of each argument */ };

struct library {
    struct rig rig;
    uint32_t n_plans, n_released; /* how many were made and released */
    uint32_t n_calls;
    frit_status refusal;         /* of every product; 0: none is refused */
    frit_status reduced_refusal; /* of every reduced one */
    uint64_t algorithm;          /* of every plan */
};

/* Fixtures of tests, whose state is a struct library.  A plan that is left fails the test. */
int product_setup(void **state);
int product_teardown(void **state);

/* An operand or result.  Strides that are all 0: it is dense. */
struct tensor {
    uint32_t rank, dtype; /* dtype 0: f32 */
    int64_t dims[5], strides[5];
};

/* An op with its tensors: operands, then the result; rank 0: an absent operand. */
struct row {
    const char *name;
    uint32_t id, n_in;
    struct tensor tensor[4];
    bool is_product;
    struct kernels_product want;
};

/* The program of one op, its signature and a launch. */
struct op_program {
    frit_program program;
    struct rig_sig sig;
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_launch launch;
    uint64_t words[RIG_WORDS];
    struct kernels_launch kernel;
};

/* Creates the program and the signature. */
frit_status product_make(struct library *library, const struct row *row, struct op_program *out);
/* Number of the library's candidate; UINT32_MAX: the program has none. */
uint32_t product_candidate(const frit_program *program);
/* Likewise of the candidate with reduced products. */
uint32_t product_reduced_candidate(const frit_program *program);
/* Prepares and compiles. */
frit_status product_prepare(struct op_program *p, uint32_t candidate);
/* Sets `launch` and `kernel` of what was prepared; `args` may be NULL. */
void product_launch(struct op_program *p, float *const *args);

#endif
