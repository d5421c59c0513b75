/* SPDX-License-Identifier: Apache-2.0 */
/* A network of two layers, and how replicas of it are trained. */
#ifndef TESTS_DIST_MODEL_H
#define TESTS_DIST_MODEL_H

#include "dist/members.h"

#include <string.h>

enum { FEATURES = 4, HIDDEN = 8, CLASSES = 3, N_PARAMS = 4, MODEL_FLOATS = 67 };

extern const char *const model_names[N_PARAMS];

struct model {
    struct member *member;
    uint32_t dtype;
    frit_tensor *params[N_PARAMS];
    frit_replica *replica;     /* NULL: it is trained alone */
    frit_optimizer *optimizer; /* NULL: none */
};

/* The same values for equal seeds; `seed` 0: all zero. */
void model_init(struct model *model, struct member *member, uint32_t dtype, int seed);
void model_fini(struct model *model);

/* The mean loss of `n` rows from `first` on, in the open scope; rows repeat after 60. */
frit_tensor *model_loss(struct model *model, uint32_t first, uint32_t n);
/* frit_grad_begin, and watches the parameters. */
bool model_watch(struct model *model);
/* A step of the optimiser with these rows, by the replica if there is one.  `parts`: so many losses
 * of parts of the rows, whose mean is the loss. */
bool model_step(struct model *model, uint32_t first, uint32_t n, uint32_t parts);
/* All parameters, one after the other, as f32. */
bool model_read(struct model *model, float out[MODEL_FLOATS]);

/* What `size` ranks have at the end: equal bits. */
void expect_equal_models(const float (*models)[MODEL_FLOATS], uint32_t size);
void expect_near_model(const float *have, const float *want, double most);

#endif
