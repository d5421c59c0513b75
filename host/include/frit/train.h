/* SPDX-License-Identifier: Apache-2.0 */
/* Frit: losses and optimisers.
 *
 *   frit_optimizer_config config = frit_adam_config(1e-3);
 *   frit_optimizer_create(&config, params, 4, &optimizer, &err);
 *   for each batch:
 *       scope = frit_scope_begin(device);
 *       frit_grad_begin(device, &err);
 *       for each parameter: frit_grad_watch(params[i], &err);
 *       loss = frit_loss_cross_entropy(network(params, x), labels, 1);
 *       frit_grad_backward(loss, &err);
 *       frit_optimizer_step(optimizer, params, NULL, &err);
 *       frit_grad_end(device);
 *       frit_scope_end(scope);
 *
 * All of it only records ops: forward pass, backward pass and update of all parameters run together
 * at the end of the scope.  Rates and the like are numbers of launches, so changing them makes no
 * new plan.  Meanings and defaults are those of PyTorch where nothing else is said. */
#ifndef FRIT_TRAIN_H
#define FRIT_TRAIN_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */

/* Tensors like those of ops, differentiable by frit/grad.h.  Attributes work as in frit/ops.h:
 * frit_loss_mse(x, y, .reduction = FRIT_LOSS_SUM); what is left out is 0. */

enum {
    FRIT_LOSS_MEAN = 0, /* the losses' mean, of rank 0 */
    FRIT_LOSS_SUM = 1,  /* their sum, of rank 0 */
    FRIT_LOSS_NONE = 2  /* the losses */
};

typedef struct frit_loss_attrs {
    uint64_t struct_size; /* sizeof(frit_loss_attrs) */
    int64_t reduction;    /* FRIT_LOSS_* */
} frit_loss_attrs;

/* (x - target)^2; both float, of one type and the same dims. */
frit_tensor *frit_loss_mse_with(frit_tensor *x, frit_tensor *target, const frit_loss_attrs *attrs);
/* Binary cross-entropy of logits x and targets from 0 to 1, without overflow; likewise. */
frit_tensor *frit_loss_bce_with(frit_tensor *x, frit_tensor *target, const frit_loss_attrs *attrs);

typedef struct frit_loss_cross_entropy_attrs {
    uint64_t struct_size; /* sizeof(frit_loss_cross_entropy_attrs) */
    int64_t reduction;    /* FRIT_LOSS_* */
    int64_t has_ignore;   /* 1: targets equal to ignore_index have loss 0 and are not counted */
    int64_t ignore_index;
    double label_smoothing; /* 0..1: this much of a target is spread evenly over all classes */
} frit_loss_cross_entropy_attrs;

/* -log(softmax(x) along axis) at the target, without overflow.  x: float.  target: i32 or i64, a
 * class for each line of x along axis, with the dims of x but for axis.  A class out of range has
 * loss 0 (of its own, not of smoothing) and gives no error. */
frit_tensor *frit_loss_cross_entropy_with(frit_tensor *x, frit_tensor *target, int64_t axis,
                                          const frit_loss_cross_entropy_attrs *attrs);

typedef struct frit_loss_ctc_attrs {
    uint64_t struct_size; /* sizeof(frit_loss_ctc_attrs) */
    int64_t reduction; /* FRIT_LOSS_*; MEAN divides each loss by its target's length, at least 1 */
    int64_t zero_infinity; /* 1: infinite losses (a target that does not fit) are 0, as their
                              gradients are */
} frit_loss_ctc_attrs;

/* Connectionist temporal classification of log_probs [t, n, classes], results of log_softmax;
 * operands as of frit_ctc_loss. */
frit_tensor *frit_loss_ctc_with(frit_tensor *log_probs, frit_tensor *targets,
                                frit_tensor *input_lengths, frit_tensor *target_lengths,
                                int64_t blank, const frit_loss_ctc_attrs *attrs);

/* ---- loss scaling ---- */

/* Keeps gradients of 16-bit floats from vanishing: the loss is multiplied by a scale, gradients are
 * divided by it, a step whose gradients are not all finite changes nothing, and the scale follows
 * what happened.  All of this is computed on the device; the host reads nothing.
 *
 * Threads: one at a time. */
typedef struct frit_scaler frit_scaler;

typedef struct frit_scaler_config {
    uint64_t struct_size;
    double scale;      /* at first; 0: 65536 */
    double growth;     /* factor after `interval` steps without overflow; 0: 2 */
    double backoff;    /* factor after an overflow; 0: 0.5 */
    uint64_t interval; /* 0: 2000 */
} frit_scaler_config;

/* `config` NULL: all defaults. */
FRIT_NODISCARD frit_status frit_scaler_create(frit_device *device, const frit_scaler_config *config,
                                              frit_scaler **out, frit_err *err);
/* After the optimizers that use it.  NULL does nothing. */
void frit_scaler_destroy(frit_scaler *scaler);
/* The loss times the scale, as f32; compute losses of 16-bit values in f32. */
frit_tensor *frit_scaler_scale(frit_scaler *scaler, frit_tensor *loss);
/* Once after the steps of an iteration: changes the scale. */
FRIT_NODISCARD frit_status frit_scaler_update(frit_scaler *scaler, frit_err *err);

/* What changes from step to step beside parameters, for checkpoints. */
typedef struct frit_state_desc {
    uint64_t struct_size;
    const char *name;    /* unique in its object: "3.exp_avg", "scale" */
    uint64_t param;      /* the number of the parameter; UINT64_MAX: of none */
    frit_tensor *tensor; /* not the caller's; valid until the next step, frit_ref keeps it */
} frit_state_desc;

/* FRIT_INVALID beyond the last. */
frit_status frit_scaler_state_at(frit_scaler *scaler, uint64_t index, frit_state_desc *out);
/* Replaces a state by a tensor of the same type and dims, which stays the caller's. */
FRIT_NODISCARD frit_status frit_scaler_set_state(frit_scaler *scaler, uint64_t index,
                                                 frit_tensor *tensor, frit_err *err);

/* ---- optimisers ---- */

/* Threads: one at a time. */
typedef struct frit_optimizer frit_optimizer;

enum { FRIT_SGD = 1, FRIT_ADAM = 2, FRIT_ADAMW = 3 };

enum {
    FRIT_OPTIMIZER_NESTEROV = 1, /* SGD with momentum */
    FRIT_OPTIMIZER_AMSGRAD = 2,  /* Adam, AdamW */
    /* New parameters and states are written over the old ones.  This saves a second copy of all of
     * them, but a step that fails while it runs cannot be undone. */
    FRIT_OPTIMIZER_IN_PLACE = 4
};

/* Begin with frit_sgd_config, frit_adam_config or frit_adamw_config. */
typedef struct frit_optimizer_config {
    uint64_t struct_size;
    uint32_t kind;              /* FRIT_SGD, FRIT_ADAM, FRIT_ADAMW */
    uint32_t flags;             /* FRIT_OPTIMIZER_* */
    double rate;                /* the learning rate; frit_optimizer_set_rate changes it */
    double weight_decay;        /* SGD, Adam: added to the gradient; AdamW: decoupled */
    double momentum, dampening; /* SGD */
    double beta1, beta2, eps;   /* Adam, AdamW */
    double clip_value;          /* gradients are limited to -clip_value..clip_value; 0: no limit */
    double clip_norm;           /* then the 2-norm of all gradients together; 0: no limit */
    frit_scaler *scaler;        /* divides gradients and skips steps on overflow; NULL: none */
} frit_optimizer_config;

static inline frit_optimizer_config frit_optimizer_config_of(uint32_t kind, double rate)
{
    frit_optimizer_config config;

    config.struct_size = sizeof(config);
    config.kind = kind;
    config.flags = 0;
    config.rate = rate;
    config.weight_decay = kind == FRIT_ADAMW ? 1e-2 : 0;
    config.momentum = config.dampening = 0;
    config.beta1 = 0.9;
    config.beta2 = 0.999;
    config.eps = 1e-8;
    config.clip_value = config.clip_norm = 0;
    config.scaler = 0;
    return config;
}

/* The defaults of PyTorch. */
static inline frit_optimizer_config frit_sgd_config(double rate)
{
    return frit_optimizer_config_of(FRIT_SGD, rate);
}
static inline frit_optimizer_config frit_adam_config(double rate)
{
    return frit_optimizer_config_of(FRIT_ADAM, rate);
}
static inline frit_optimizer_config frit_adamw_config(double rate)
{
    return frit_optimizer_config_of(FRIT_ADAMW, rate);
}

/* For `count` parameters of one device, of f16, bf16, f32 or f64.  States are of f32 for 16-bit
 * parameters, which are computed in f32 from a copy of their own ("master"; a program that gives
 * such a parameter another value sets both).  Runs the recorded ops
 * of the calling thread's stream and waits for them, as frit_scaler_create does. */
FRIT_NODISCARD frit_status frit_optimizer_create(const frit_optimizer_config *config,
                                                 frit_tensor *const *params, uint64_t count,
                                                 frit_optimizer **out, frit_err *err);
/* Parameters stay the program's.  NULL does nothing. */
void frit_optimizer_destroy(frit_optimizer *optimizer);

/* Records a step: releases every handle of `params`, the parameters in the order of
 * frit_optimizer_create, and replaces it by that of the new value, which is the program's.  `grads`
 * NULL: the gradients that frit_grad_of returns; else one of the parameter's type for each, which
 * stay the caller's.
 *
 * On failure handles stay as they are.  A step that fails later, when its ops run, leaves failed
 * parameters; the next step, or frit_optimizer_sync, notices, replaces them by those of before and
 * returns the failure.  What the device reports only after the next step began, such as a fault
 * while it computed, is not undone; call frit_optimizer_sync for each step if that must not be. */
FRIT_NODISCARD frit_status frit_optimizer_step(frit_optimizer *optimizer, frit_tensor **params,
                                               frit_tensor *const *grads, frit_err *err);
/* frit_sync, and undoes the last step if it has failed: `params`, states, the number of steps and
 * the scaler are as before it.  Returns the first failure, of the step or of other ops.  With
 * FRIT_OPTIMIZER_IN_PLACE nothing is undone. */
FRIT_NODISCARD frit_status frit_optimizer_sync(frit_optimizer *optimizer, frit_tensor **params,
                                               frit_err *err);

double frit_optimizer_rate(const frit_optimizer *optimizer);
void frit_optimizer_set_rate(frit_optimizer *optimizer, double rate);
/* The number of steps, which the bias corrections of Adam follow from; with a scaler, steps that
 * were skipped are counted here, and the corrections are states. */
uint64_t frit_optimizer_steps(const frit_optimizer *optimizer);
void frit_optimizer_set_steps(frit_optimizer *optimizer, uint64_t steps);
/* The norm that clip_norm limited in the last step, of rank 0; valid until the next step, frit_ref
 * keeps it.  NULL: there is none. */
frit_tensor *frit_optimizer_norm(frit_optimizer *optimizer);

/* States, as frit_scaler_state_at.  Per parameter: "momentum" of SGD with momentum; "exp_avg",
 * "exp_avg_sq" of Adam and AdamW, "max_exp_avg_sq" with AMSGRAD; "master" of a 16-bit parameter.
 * With a scaler also "correction1", "correction2": 1 - beta^steps. */
frit_status frit_optimizer_state_at(frit_optimizer *optimizer, uint64_t index,
                                    frit_state_desc *out);
FRIT_NODISCARD frit_status frit_optimizer_set_state(frit_optimizer *optimizer, uint64_t index,
                                                    frit_tensor *tensor, frit_err *err);

#ifdef __cplusplus
} /* extern "C" */

inline frit_tensor *frit_loss_mse(frit_tensor *x, frit_tensor *target, frit_loss_attrs attrs = {})
{
    attrs.struct_size = sizeof(attrs);
    return frit_loss_mse_with(x, target, &attrs);
}

inline frit_tensor *frit_loss_bce(frit_tensor *x, frit_tensor *target, frit_loss_attrs attrs = {})
{
    attrs.struct_size = sizeof(attrs);
    return frit_loss_bce_with(x, target, &attrs);
}

inline frit_tensor *frit_loss_cross_entropy(frit_tensor *x, frit_tensor *target, int64_t axis,
                                            frit_loss_cross_entropy_attrs attrs = {})
{
    attrs.struct_size = sizeof(attrs);
    return frit_loss_cross_entropy_with(x, target, axis, &attrs);
}

inline frit_tensor *frit_loss_ctc(frit_tensor *log_probs, frit_tensor *targets,
                                  frit_tensor *input_lengths, frit_tensor *target_lengths,
                                  int64_t blank, frit_loss_ctc_attrs attrs = {})
{
    attrs.struct_size = sizeof(attrs);
    return frit_loss_ctc_with(log_probs, targets, input_lengths, target_lengths, blank, &attrs);
}
#else
#define frit_loss_mse(...) frit_loss_mse_named(__VA_ARGS__, .struct_size = sizeof(frit_loss_attrs))
#define frit_loss_mse_named(x, target, ...) \
    frit_loss_mse_with(x, target, &(frit_loss_attrs){__VA_ARGS__})
#define frit_loss_bce(...) frit_loss_bce_named(__VA_ARGS__, .struct_size = sizeof(frit_loss_attrs))
#define frit_loss_bce_named(x, target, ...) \
    frit_loss_bce_with(x, target, &(frit_loss_attrs){__VA_ARGS__})
#define frit_loss_cross_entropy(...) \
    frit_loss_cross_entropy_named(__VA_ARGS__, .struct_size = sizeof(frit_loss_cross_entropy_attrs))
#define frit_loss_cross_entropy_named(x, target, axis, ...) \
    frit_loss_cross_entropy_with(x, target, axis, &(frit_loss_cross_entropy_attrs){__VA_ARGS__})
#define frit_loss_ctc(...) \
    frit_loss_ctc_named(__VA_ARGS__, .struct_size = sizeof(frit_loss_ctc_attrs))
#define frit_loss_ctc_named(log_probs, targets, input_lengths, target_lengths, blank, ...) \
    frit_loss_ctc_with(log_probs, targets, input_lengths, target_lengths, blank,           \
                       &(frit_loss_ctc_attrs){__VA_ARGS__})
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
