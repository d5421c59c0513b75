/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread computed on a device from the tensors that it watches: a node per op, in order,
 * with what the op's gradient needs.
 *
 * A value is a tensor that depends on a watched one; its number is written into the tensor's slot
 * and is valid while the history is open.  Only tensors that a gradient needs are held, so that
 * fusion may leave out all others.
 *
 * Threads: the one that opened it. */
#ifndef GRAD_HISTORY_H
#define GRAD_HISTORY_H

#include <stdbool.h>

#include <frit/frit.h>

#include "base/arena.h"
#include "base/map.h"
#include "graph/op.h"

struct api_call;
struct history;

enum { HISTORY_NONE = 0 }; /* no value: a constant */

struct history_value {
    struct op_type type;
    frit_tensor *tensor; /* of a watched tensor, held; else NULL */
    frit_tensor *grad;   /* held; NULL: none has arrived */
    bool is_watched;     /* its gradient stays until the history ends */
};

/* A tensor that a node holds. */
struct held {
    frit_tensor *tensor; /* NULL: none */
    uint64_t life;       /* of its slot when it was held: frit_write changes it */
};

struct history_operand {
    uint32_t kind; /* FRIT_OPERAND_* */
    uint32_t value;
    struct op_type type; /* of a tensor */
    frit_scalar scalar;
    struct held held;
};

struct history_node;

/* A node that is no op: its gradients come from a function. */
struct history_function {
    /* Returns the gradients of the operands into `grads` (NULL: none), which are the caller's to
     * history_unkeep. */
    frit_status (*backward)(void *ctx, const struct history_node *node,
                            frit_tensor *const *out_grads, frit_tensor **grads, frit_err *err);
    void (*drop)(void *ctx); /* may be NULL */
    void *ctx;
};

struct history_node {
    uint32_t op; /* FRIT_OP_none: `function` */
    uint32_t n_in, n_out, n_many;
    bool is_spent; /* what it held was released by a backward pass */
    void *attrs;   /* as the call gave them, NULL for `none` */
    struct history_operand *in;
    struct {
        uint32_t value;
        struct held held;
    } out[FRIT_OP_MAX_OUT];
    struct history_function function;
};

struct history {
    struct history *next; /* of the thread */
    frit_device *device;
    uint64_t device_id;
    uint32_t number; /* differs from that of any other history of the process */
    struct arena arena;
    struct history_value *values; /* [0] is HISTORY_NONE */
    struct history_node *nodes;
    uint32_t n_values, n_nodes, values_capacity, nodes_capacity;
    struct map watched; /* handle -> value, of those whose slot another history wrote to */
    bool is_short_of_memory;
};

/* Opens one, before those that the thread has open on the device.  NULL: no memory. */
struct history *history_open(frit_device *device);
/* Releases what it holds.  It must be the newest of its device. */
void history_close(struct history *history);
/* The newest of the calling thread on the device, NULL: none. */
struct history *history_of(const frit_device *device);

/* Between these calls the thread's ops are not recorded.  Calls nest. */
void history_pause(void);
bool history_resume(void); /* false: it is not paused */
/* Records whatever was paused, until history_repause gets what this returned. */
uint32_t history_unpause(void);
void history_repause(uint32_t before);

/* The number of a tensor's value, HISTORY_NONE for a constant. */
uint32_t history_value_of(struct history *history, frit_tensor *tensor);
/* Replaces the gradient of a value; `grad` stays the caller's. */
void history_set_grad(struct history *history, uint32_t value, frit_tensor *grad);
/* Makes the tensor a watched value. */
frit_status history_watch(struct history *history, frit_tensor *tensor, frit_err *err);

/* A node of a function: operands and outputs are tensors of the device.  Takes `function` over,
 * also on failure. */
frit_status history_add_function(struct history *history, const struct history_function *function,
                                 frit_tensor *const *in, uint32_t n_in, frit_tensor *const *out,
                                 uint32_t n_out, frit_err *err);

/* The slot of the op's row that an operand fills. */
uint32_t history_slot(const struct history_node *node, uint32_t i);
/* Releases what a node holds. */
void history_spend(struct history_node *node);
void held_release(struct held *held);
/* An owner of a tensor beside the program's and its scope's; returns the handle. */
frit_tensor *history_keep(frit_tensor *tensor);
void history_unkeep(frit_tensor *tensor); /* may be NULL */

#endif
