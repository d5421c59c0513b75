/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

/* ---- all replicas of this process, at the same time ---- */

static frit_status all(struct trainer *trainer, void (*start)(struct replica *replica),
                       frit_err *err)
{
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < trainer->n_here; i++)
        start(&trainer->replicas[i]);
    for (uint32_t i = 0; i < trainer->n_here; i++) {
        if (replica_wait(&trainer->replicas[i]) && !st) {
            st = trainer->replicas[i].status;
            *err = trainer->replicas[i].err;
        }
    }
    return st;
}

/* ---- opening and closing ---- */

static frit_status refuse(frit_err *err, const char *what)
{
    err->status = FRIT_INVALID;
    snprintf(err->text, sizeof(err->text), "%s", what);
    return FRIT_INVALID;
}

/* Who there is: processes of the job, or threads of this one. */
static frit_status number_replicas(struct trainer *trainer, frit_host *host, uint32_t n_replicas,
                                   frit_group_config *group, frit_err *err)
{
    frit_job_desc job = {.struct_size = sizeof(job)};
    frit_status st = frit_job_info(host, &job, err);

    *group = (frit_group_config){.struct_size = sizeof(*group), .name = "replicas"};
    if (!st && job.size > 1 && n_replicas > 1)
        st = refuse(err, "each process of a job is one replica; leave --replicas out");
    if (st)
        return st;
    group->engine = job.size > 1 ? "collective-mpi" : "collective-local";
    group->size = trainer->n_replicas = job.size > 1 ? job.size : n_replicas;
    trainer->n_here = job.size > 1 ? 1 : n_replicas;
    trainer->first = job.rank;
    return FRIT_OK;
}

frit_status trainer_open(struct trainer *trainer, frit_host *host, const struct network *network,
                         frit_device *const *devices, uint32_t n_devices, uint32_t n_replicas,
                         uint64_t seed, const frit_optimizer_config *config, frit_err *err)
{
    frit_group_config group;
    frit_group_id id;
    frit_status st;

    memset(trainer, 0, sizeof(*trainer));
    trainer->network = network;
    st = number_replicas(trainer, host, n_replicas, &group, err);
    if (!st && trainer->n_here > 1) {
        st = frit_group_id_create(host, group.engine, &id, err);
        group.id = &id;
    }
    for (uint32_t i = 0; i < trainer->n_here; i++) {
        struct replica *replica = &trainer->replicas[i];

        group.rank = trainer->first + i;
        *replica = (struct replica){.network = network,
                                    .device = devices[group.rank % n_devices],
                                    .seed = seed,
                                    .config = *config,
                                    .group = group};
    }
    return st ? st : all(trainer, replica_open, err);
}

void trainer_close(struct trainer *trainer)
{
    frit_err err = {.struct_size = sizeof(err)};

    (void)all(trainer, replica_close, &err);
    for (uint32_t i = 0; i < trainer->n_here; i++)
        replica_fini(&trainer->replicas[i]);
}

/* ---- steps ---- */

void trainer_set_rate(struct trainer *trainer, double rate)
{
    for (uint32_t i = 0; i < trainer->n_here; i++)
        frit_optimizer_set_rate(trainer->replicas[i].optimizer, rate);
}

frit_status trainer_step(struct trainer *trainer, const float *pixels, const int32_t *labels,
                         uint32_t n, frit_tensor **loss, frit_err *err)
{
    const uint32_t part = n / trainer->n_replicas;
    frit_status st;

    for (uint32_t i = 0; i < trainer->n_here; i++) {
        struct replica *replica = &trainer->replicas[i];

        replica->pixels = pixels + (size_t)(trainer->first + i) * part * PIXELS;
        replica->labels = labels + (size_t)(trainer->first + i) * part;
        replica->n = part;
    }
    st = all(trainer, replica_step, err);
    for (uint32_t i = 0; i < trainer->n_here && !st; i++) {
        if (i)
            frit_release(trainer->replicas[i].loss);
    }
    *loss = st ? NULL : trainer->replicas[0].loss;
    return st;
}

frit_status trainer_sync(struct trainer *trainer, frit_err *err)
{
    return all(trainer, replica_sync, err);
}

frit_status trainer_test(struct trainer *trainer, const struct images *images, uint32_t *right,
                         frit_err *err)
{
    const struct replica *replica = &trainer->replicas[0];
    const frit_scope scope = frit_scope_begin(replica->device);
    frit_tensor *x = frit_from_host(replica->device, FRIT_F32, FRIT_SHAPE(images->n, SIDE, SIDE),
                                    images->pixels, sizeof(images->pixels[0]) * images->n);
    frit_tensor *y = frit_from_host(replica->device, FRIT_I32, FRIT_SHAPE(images->n),
                                    images->labels, sizeof(images->labels[0]) * images->n);
    frit_tensor *answers =
        frit_argmax(trainer->network->logits(replica->params, x), .axes = FRIT_AXES(1));
    frit_tensor *count = frit_sum(frit_cast(frit_eq(frit_cast(answers, FRIT_I32), y), FRIT_F32));
    float number = 0;
    frit_status st;

    frit_keep(count);
    frit_scope_end(scope);
    st = frit_read(count, &number, sizeof(number), err);
    frit_release(count);
    *right = (uint32_t)number;
    return st;
}
