/* SPDX-License-Identifier: Apache-2.0 */
/* Frit: data-parallel training.
 *
 *   frit_group_join(device, &group, &rank, &err);
 *   frit_replica_create(rank, &config, params, 4, &replica, &err);
 *   frit_optimizer_create(&adam, params, 4, &optimizer, &err);
 *   for each batch of this rank:
 *       scope = frit_scope_begin(device);
 *       frit_grad_begin(device, &err);
 *       for each parameter: frit_grad_watch(params[i], &err);
 *       loss = frit_loss_cross_entropy(network(params, x), labels, 1);
 *       frit_replica_backward(replica, params, loss, FRIT_REPLICA_SYNC, &err);
 *       frit_optimizer_step(optimizer, params, NULL, &err);
 *       frit_grad_end(device);
 *       frit_scope_end(scope);
 *
 * A replica is one rank's copy of a model's parameters.  All ranks of a group (frit/frit.h) have
 * the same parameters and reduce their gradients, so that all make the same step.  Gradients are
 * reduced in buckets: several parameters are one operation, which is recorded inside the backward
 * pass as soon as it may be.  What is in a bucket, and the order of buckets, follows from the list
 * of parameters alone and is compared when the replica is made, so it is the same on all ranks in
 * every step, whatever order gradients come in and whichever of them there are.
 *
 * Failures: the first one ends the group on all ranks, as in frit/frit.h, and what depends on the
 * step's gradients fails.  An optimiser undoes such a step (frit_optimizer_sync), and later calls
 * fail at once.  Then destroy the replica, leave the group, join a new one with the ranks that are
 * left and make a new replica; what is under way in the old group has no effect on the new one.
 *
 * Threads: the rank's. */
#ifndef FRIT_DIST_H
#define FRIT_DIST_H

#include <frit/frit.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct frit_replica frit_replica;

enum {
    FRIT_REPLICA_SUM = 1, /* gradients are summed; else their mean is taken */
    /* Ranks may have different numbers of batches: a rank that has no more calls
     * frit_replica_shadow or frit_replica_join.  Means are over the ranks that had one. */
    FRIT_REPLICA_UNEVEN = 2,
    /* A parameter without a gradient is an error, which names it on all ranks; else it counts as
     * zeros. */
    FRIT_REPLICA_ALL_USED = 4,
    /* Parameters stay as they are at creation; else they become those of rank 0. */
    FRIT_REPLICA_KEEP = 8
};

/* All zero but struct_size: the defaults. */
typedef struct frit_replica_config {
    uint64_t struct_size;        /* sizeof(frit_replica_config) */
    uint64_t bucket_bytes;       /* most bytes of a bucket; 0: 25 MiB.  A parameter that has more
                                  * is a bucket of its own */
    uint64_t first_bucket_bytes; /* of the first bucket of each element type; 0: 1 MiB */
    uint32_t flags;              /* FRIT_REPLICA_* */
    uint32_t reserved;           /* 0 */
    const char *const *names;    /* of the parameters, for texts and compared; NULL: numbers */
} frit_replica_config;

/* On all ranks of the group, which the calling thread's stream is in; waits for them, also for what
 * the stream has recorded.  `config` NULL: the defaults.  `params`: `count` floats of the rank's
 * device, in the same order on all ranks; unless KEEP is set each handle is released and replaced
 * by one of rank 0's value, which is the program's.
 *
 * FRIT_MISMATCH, on all ranks, names the first parameter that differs; FRIT_BUSY: the rank has a
 * replica already. */
FRIT_NODISCARD frit_status frit_replica_create(frit_rank *rank, const frit_replica_config *config,
                                               frit_tensor **params, uint64_t count,
                                               frit_replica **out, frit_err *err);
/* Before the rank leaves its group; waits for operations of the replica.  NULL does nothing. */
void frit_replica_destroy(frit_replica *replica);

enum {
    FRIT_REPLICA_SYNC = 1,       /* the gradients are reduced, with what was accumulated before */
    FRIT_REPLICA_ACCUMULATE = 2, /* they are added up for a later pass with SYNC */
    FRIT_REPLICA_LOCAL = 3       /* they stay this rank's */
};

/* frit_grad_backward for a model whose parameters now are `params`, which are watched.  After a
 * pass with SYNC frit_grad_of gives their reduced gradients, which are the same on all ranks.
 * `loss` may be NULL with SYNC: this rank adds nothing but what was accumulated.
 *
 * All ranks make the same passes: if they differ in `mode`, the next one with SYNC fails with
 * FRIT_MISMATCH.  A pass of one rank alone is frit_grad_backward.  Between frit_grad_begin and
 * frit_grad_end there is at most one pass with SYNC, after those that accumulate, or there are only
 * passes with LOCAL; else FRIT_INVALID.  A failure on one rank ends the group. */
FRIT_NODISCARD frit_status frit_replica_backward(frit_replica *replica, frit_tensor *const *params,
                                                 frit_tensor *loss, uint32_t mode, frit_err *err);

/* The same for a program that has gradients of its own: reduces one for each parameter, of its type
 * (NULL: none), releases the handle and replaces it by that of the reduced gradient, which is the
 * program's.  On failure handles stay as they are. */
FRIT_NODISCARD frit_status frit_replica_reduce(frit_replica *replica, frit_tensor **grads,
                                               frit_err *err);

/* With UNEVEN, when this rank has no more batches: takes part in the others' next step without
 * gradients of its own.  `grads` gets what the others' frit_replica_backward gives, the program's
 * to release: stepping an optimiser with them keeps parameters and its states the same on all
 * ranks.  `n_present` gets the number of ranks that had a batch; all ranks call this until it is 0,
 * and `grads` gets NULL then.  Waits for the other ranks. */
FRIT_NODISCARD frit_status frit_replica_shadow(frit_replica *replica, frit_tensor **grads,
                                               uint32_t *n_present, frit_err *err);
/* The same until no rank has a batch.  `params` then become those of a rank that made the last
 * step, as in frit_replica_create; states of an optimiser do not. */
FRIT_NODISCARD frit_status frit_replica_join(frit_replica *replica, frit_tensor **params,
                                             frit_err *err);

/* The buckets and their parameters as text, the caller's: frit_free.  NULL if memory is short. */
char *frit_replica_text(const frit_replica *replica);

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
