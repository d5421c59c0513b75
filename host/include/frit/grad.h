/* SPDX-License-Identifier: Apache-2.0 */
/* Frit: gradients.
 *
 *   frit_grad_begin(device, &err);
 *   frit_grad_watch(w, &err);
 *   loss = ... ops on w ...;
 *   frit_grad_backward(loss, &err);
 *   step = frit_mul_f(frit_grad_of(w), 0.1);
 *   frit_grad_end(device);
 *
 * Between begin and end the ops of the calling thread on the device are followed from the watched
 * tensors on.  The backward pass records ops like any other: forward pass, backward pass and what
 * the program does with the gradients run together, and fuse, when the stream runs.  So end the
 * gradients, and the scope, before you read: what is still needed for gradients has to be stored in
 * memory.  abi/GRADIENTS.md has the rule of every op.
 *
 * Where several elements share a maximum or minimum they share its gradient.  Ops of integers and
 * comparisons end a path; ops that are constant but for steps (sign, floor) have gradient zero.
 *
 * Threads: gradients belong to the thread that began them.  Device: tensors of another device are
 * constants. */
#ifndef FRIT_GRAD_H
#define FRIT_GRAD_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* FRIT_BUSY: the thread follows the device's ops already. */
FRIT_NODISCARD frit_status frit_grad_begin(frit_device *device, frit_err *err);
/* Forgets what was followed and releases the gradients.  Does nothing where none was begun. */
void frit_grad_end(frit_device *device);

/* From now on ops on the tensor are followed, and frit_grad_of has its gradient.  FRIT_INVALID: it
 * is no float, has failed, or its device's gradients were not begun. */
FRIT_NODISCARD frit_status frit_grad_watch(frit_tensor *tensor, frit_err *err);

/* Adds the gradients of `loss`, of one element, to those of the watched tensors.  A second pass
 * over the same ops fails: the first has released what they held.  If a tensor that a gradient
 * needs was replaced by frit_write, FRIT_INVALID names the op. */
FRIT_NODISCARD frit_status frit_grad_backward(frit_tensor *loss, frit_err *err);

enum { FRIT_GRAD_KEEP = 1 /* a further backward pass over the same ops is possible */ };

/* Adds the gradients of the sum of tensors[i] * grads[i]; `grads`, or an entry, may be NULL: ones,
 * for a tensor of one element.  `flags`: FRIT_GRAD_*. */
FRIT_NODISCARD frit_status frit_grad_backward_many(frit_tensor *const *tensors,
                                                   frit_tensor *const *grads, uint64_t count,
                                                   uint32_t flags, frit_err *err);

/* The gradient of a watched tensor, of the same type; zeros if the loss does not depend on it.  It
 * is not the caller's: it is valid until frit_grad_end or a further backward pass; frit_ref keeps
 * it.  An error tensor, which is the caller's, if the tensor is not watched. */
frit_tensor *frit_grad_of(frit_tensor *tensor);

/* Between these calls the thread's ops are not followed, on any device.  Calls nest. */
void frit_no_grad_begin(void);
void frit_no_grad_end(void);

/* Records ops on `in` and writes the outputs.  Must record the same ops whenever it is called. */
typedef frit_status (*frit_grad_fn)(void *ctx, frit_tensor *const *in, frit_tensor **out,
                                    frit_err *err);

/* Calls `fn`, and once more in the backward pass, in place of holding what it computes in between
 * (checkpointing: Chen et al. 2016).  Random ops draw the same numbers again.  `ctx` is used until
 * frit_grad_end.  Tensors that `fn` uses beside `in` are constants.  At most 5 outputs. */
FRIT_NODISCARD frit_status frit_grad_recompute(frit_device *device, frit_grad_fn fn, void *ctx,
                                               frit_tensor *const *in, uint64_t n_in,
                                               frit_tensor **out, uint64_t n_out, frit_err *err);

/* Writes the gradients of the operands into `grads` (NULL: zero), which Frit releases, from those
 * of the outputs (NULL: zero). */
typedef frit_status (*frit_grad_rule)(void *ctx, frit_tensor *const *in,
                                      frit_tensor *const *out_grads, frit_tensor **grads,
                                      frit_err *err);

/* Makes `out`, which the program computed from `in` between frit_no_grad_begin and
 * frit_no_grad_end, depend on `in` by a rule of its own.  `drop(ctx)` (may be NULL) is called when
 * the rule is not needed any more, also on failure.  At most 5 outputs. */
FRIT_NODISCARD frit_status frit_grad_custom(frit_device *device, frit_grad_rule rule,
                                            void (*drop)(void *ctx), void *ctx,
                                            frit_tensor *const *in, uint64_t n_in,
                                            frit_tensor *const *out, uint64_t n_out, frit_err *err);

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
