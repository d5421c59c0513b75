/* SPDX-License-Identifier: Apache-2.0 */
#include "train/replica.h"

#include "train/data.h"
#include "train/step.h"
#include <frit/grad.h>
#include <string.h>

/* Copies of the parameters: gradients mark the tensors that they watch, so two replicas cannot
 * watch the same ones. */
static frit_status compute(struct replica *r)
{
    const frit_scope scope = frit_scope_begin(r->device);
    frit_tensor *copies[MAX_PARAMS];
    frit_status st;

    for (uint32_t i = 0; i < r->network->n_params; i++)
        copies[i] = frit_to_device(r->params[i], r->device);
    st = frit_grad_begin(r->device, &r->err);
    if (!st)
        st = step_backward(r->network, r->device, copies, r->pixels, r->labels, r->n, &r->loss,
                           &r->err);
    for (uint32_t i = 0; i < r->network->n_params && !st; i++)
        r->grads[i] = frit_ref(frit_grad_of(copies[i]));
    if (!st)
        frit_keep(r->loss);
    frit_grad_end(r->device);
    frit_scope_end(scope);
    return st;
}

static void *serve(void *ctx)
{
    struct replica *r = ctx;

    for (;;) {
        sem_wait(&r->start);
        if (r->ends)
            return NULL;
        r->status = compute(r);
        sem_post(&r->done);
    }
}

int replica_open(struct replica *replica, const struct network *network, frit_device *device)
{
    memset(replica, 0, sizeof(*replica));
    replica->network = network;
    replica->device = device;
    replica->err.struct_size = sizeof(replica->err);
    sem_init(&replica->start, 0, 0);
    sem_init(&replica->done, 0, 0);
    replica->is_running = pthread_create(&replica->thread, NULL, serve, replica) == 0;
    return replica->is_running;
}

void replica_close(struct replica *replica)
{
    if (!replica->is_running)
        return;
    replica->ends = 1;
    sem_post(&replica->start);
    pthread_join(replica->thread, NULL);
    sem_destroy(&replica->start);
    sem_destroy(&replica->done);
}

void replica_start(struct replica *replica)
{
    sem_post(&replica->start);
}

frit_status replica_wait(struct replica *replica)
{
    while (sem_wait(&replica->done))
        continue; /* a signal */
    return replica->status;
}
