/* SPDX-License-Identifier: Apache-2.0 */
#include "train/replica.h"

#include "train/data.h"
#include <frit/grad.h>
#include <stdio.h>
#include <string.h>

/* ---- what a replica does, in its thread ---- */

static frit_status open_job(struct replica *r)
{
    const char *names[MAX_PARAMS];
    const frit_replica_config config = {
        .struct_size = sizeof(config), .flags = FRIT_REPLICA_ALL_USED, .names = names};
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < r->network->n_params; i++)
        names[i] = r->network->params[i].name;
    network_init(r->network, r->device, r->seed, r->params);
    if (r->group.size > 1)
        st = frit_group_join(r->device, &r->group, &r->rank, &r->err);
    if (!st && r->rank)
        st = frit_replica_create(r->rank, &config, r->params, r->network->n_params, &r->sync,
                                 &r->err);
    if (!st)
        st = frit_optimizer_create(&r->config, r->params, r->network->n_params, &r->optimizer,
                                   &r->err);
    return st;
}

/* The mean cross-entropy of the part. */
static frit_tensor *loss_of(struct replica *r)
{
    frit_tensor *x = frit_from_host(r->device, FRIT_F32, FRIT_SHAPE(r->n, SIDE, SIDE), r->pixels,
                                    sizeof(float) * r->n * PIXELS);
    frit_tensor *y =
        frit_from_host(r->device, FRIT_I32, FRIT_SHAPE(r->n), r->labels, sizeof(int32_t) * r->n);

    return frit_loss_cross_entropy(r->network->logits(r->params, x), y, 1);
}

static frit_status run_step(struct replica *r)
{
    frit_status st = frit_grad_begin(r->device, &r->err);

    for (uint32_t i = 0; i < r->network->n_params && !st; i++)
        st = frit_grad_watch(r->params[i], &r->err);
    if (st)
        return st;
    r->loss = loss_of(r);
    if (r->sync)
        st = frit_replica_backward(r->sync, r->params, r->loss, FRIT_REPLICA_SYNC, &r->err);
    else
        st = frit_grad_backward(r->loss, &r->err);
    if (!st)
        st = frit_optimizer_step(r->optimizer, r->params, NULL, &r->err);
    return st;
}

/* Forward pass, backward pass and update are one scope, and run together. */
static frit_status step_job(struct replica *r)
{
    const frit_scope scope = frit_scope_begin(r->device);
    const frit_status st = run_step(r);

    frit_grad_end(r->device);
    if (!st && r->sync)
        r->loss = frit_all_reduce(r->loss, .combine = FRIT_CHOICE_combine_mean);
    if (!st)
        frit_keep(r->loss);
    frit_scope_end(scope);
    return st;
}

static frit_status sync_job(struct replica *r)
{
    return frit_optimizer_sync(r->optimizer, r->params, &r->err);
}

static frit_status close_job(struct replica *r)
{
    frit_optimizer_destroy(r->optimizer);
    frit_replica_destroy(r->sync);
    for (uint32_t i = 0; i < MAX_PARAMS; i++)
        frit_release(r->params[i]);
    return frit_group_leave(r->rank, &r->err);
}

/* ---- the thread ---- */

static void *serve(void *ctx)
{
    struct replica *r = ctx;
    frit_status (*job)(struct replica * replica);

    do {
        while (sem_wait(&r->start))
            continue; /* a signal */
        job = r->job;
        r->status = job(r);
        sem_post(&r->done);
    } while (job != close_job);
    return NULL;
}

static void start(struct replica *r, frit_status (*job)(struct replica *replica))
{
    r->job = job;
    if (r->is_running)
        sem_post(&r->start);
    else if (r->group.size == 1)
        r->status = job(r);
}

void replica_open(struct replica *r)
{
    r->err.struct_size = sizeof(r->err);
    if (r->group.size > 1) {
        sem_init(&r->start, 0, 0);
        sem_init(&r->done, 0, 0);
        r->is_running = pthread_create(&r->thread, NULL, serve, r) == 0;
        r->status = FRIT_BUSY;
        snprintf(r->err.text, sizeof(r->err.text), "a replica's thread cannot be started");
    }
    start(r, open_job);
}

void replica_step(struct replica *r)
{
    start(r, step_job);
}

void replica_sync(struct replica *r)
{
    start(r, sync_job);
}

void replica_close(struct replica *r)
{
    if (r->network)
        start(r, close_job);
}

frit_status replica_wait(struct replica *r)
{
    while (r->is_running && sem_wait(&r->done))
        continue; /* a signal */
    return r->status;
}

void replica_fini(struct replica *r)
{
    if (!r->is_running)
        return;
    pthread_join(r->thread, NULL);
    sem_destroy(&r->start);
    sem_destroy(&r->done);
}
