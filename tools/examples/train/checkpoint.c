/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATES = 4 * MAX_PARAMS, MAX_NAME = 64 };

int run_init(struct run *run, uint64_t n_images)
{
    run->steps_an_epoch = n_images / BATCH;
    run->losses = calloc(run->epochs * run->steps_an_epoch, sizeof(*run->losses));
    run->right = calloc(run->epochs, sizeof(*run->right));
    return run->losses && run->right;
}

void run_fini(struct run *run)
{
    free(run->losses);
    free(run->right);
}

static frit_status refuse(frit_err *err, const char *what)
{
    err->status = FRIT_INVALID;
    snprintf(err->text, sizeof(err->text), "this is no file of such a run: %s", what);
    return FRIT_INVALID;
}

/* ---- writing ---- */

/* The tensors of a file, with their names. */
struct contents {
    frit_named_tensor tensors[MAX_PARAMS + MAX_STATES + 2];
    char names[MAX_STATES][MAX_NAME];
    uint64_t n;
    frit_tensor *losses, *right; /* to be released */
};

static void add_tensor(struct contents *contents, const char *name, frit_tensor *tensor)
{
    contents->tensors[contents->n++] = (frit_named_tensor){tensor, name};
}

static void add_states(struct contents *contents, frit_optimizer *optimizer)
{
    frit_state_desc state = {.struct_size = sizeof(state)};

    for (uint64_t i = 0; i < MAX_STATES; i++) {
        if (frit_optimizer_state_at(optimizer, i, &state))
            return;
        snprintf(contents->names[i], MAX_NAME, "optimizer.%s", state.name);
        add_tensor(contents, contents->names[i], state.tensor);
    }
}

static void add_history(struct contents *contents, const struct run *run, frit_device *device)
{
    const int64_t steps = (int64_t)run->step, epochs = (int64_t)(run->step / run->steps_an_epoch);

    contents->losses = frit_from_host(device, FRIT_F32, FRIT_SHAPE(steps), run->losses,
                                      sizeof(float) * (uint64_t)steps);
    contents->right = frit_from_host(device, FRIT_F32, FRIT_SHAPE(epochs), run->right,
                                     sizeof(float) * (uint64_t)epochs);
    add_tensor(contents, "history.losses", contents->losses);
    add_tensor(contents, "history.right", contents->right);
}

frit_status checkpoint_save(const struct run *run, struct trainer *trainer, const char *path,
                            frit_err *err)
{
    const struct replica *replica = &trainer->replicas[0];
    struct contents contents = {.n = 0};
    char numbers[4][24];
    const frit_metadata about[] = {{"network", run->network->name},
                                   {"seed", numbers[0]},
                                   {"epochs", numbers[1]},
                                   {"validate", numbers[2]},
                                   {"step", numbers[3]}};
    frit_status st;

    snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, run->seed);
    snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, run->epochs);
    snprintf(numbers[2], sizeof(numbers[2]), "%" PRIu64, run->validate);
    snprintf(numbers[3], sizeof(numbers[3]), "%" PRIu64, run->step);
    for (uint32_t i = 0; i < run->network->n_params; i++)
        add_tensor(&contents, run->network->params[i].name, replica->params[i]);
    add_states(&contents, replica->optimizer);
    add_history(&contents, run, replica->device);
    st = frit_save_safetensors(contents.tensors, contents.n, about,
                               sizeof(about) / sizeof(about[0]), path, err);
    frit_release(contents.losses);
    frit_release(contents.right);
    return st;
}

/* ---- reading ---- */

static frit_status number_of(const frit_safetensors *file, const char *key, uint64_t limit,
                             uint64_t *out, frit_err *err)
{
    const char *text = frit_safetensors_metadata(file, key);
    char *end;

    if (!text || *text < '0' || *text > '9')
        return refuse(err, key);
    *out = strtoull(text, &end, 10);
    return *end || *out > limit ? refuse(err, key) : FRIT_OK;
}

frit_status checkpoint_about(const frit_safetensors *file, struct run *run, frit_err *err)
{
    const char *name = frit_safetensors_metadata(file, "network");
    frit_status st = FRIT_OK;

    run->network = name ? network_named(name) : NULL;
    if (!run->network)
        return refuse(err, "network");
    st = number_of(file, "seed", UINT64_MAX, &run->seed, err);
    if (!st)
        st = number_of(file, "epochs", MAX_EPOCHS, &run->epochs, err);
    if (!st)
        st = number_of(file, "validate", 1, &run->validate, err);
    return st;
}

static int same_kind(frit_tensor *a, frit_tensor *b)
{
    const frit_dims x = frit_tensor_dims(a), y = frit_tensor_dims(b);

    return frit_tensor_dtype(a) == frit_tensor_dtype(b) && x.rank == y.rank &&
           memcmp(x.dim, y.dim, sizeof(x.dim[0]) * (size_t)x.rank) == 0;
}

static frit_status restore_params(const frit_safetensors *file, struct replica *replica,
                                  frit_err *err)
{
    for (uint32_t i = 0; i < replica->network->n_params; i++) {
        const char *name = replica->network->params[i].name;
        frit_tensor *read = frit_safetensors_tensor(file, replica->device, name);

        if (!same_kind(read, replica->params[i])) {
            frit_release(read);
            return refuse(err, name);
        }
        frit_release(replica->params[i]);
        replica->params[i] = read;
    }
    return FRIT_OK;
}

static frit_status restore_states(const frit_safetensors *file, struct replica *replica,
                                  frit_err *err)
{
    frit_state_desc state = {.struct_size = sizeof(state)};
    frit_status st = FRIT_OK;

    for (uint64_t i = 0; !st && !frit_optimizer_state_at(replica->optimizer, i, &state); i++) {
        char name[MAX_NAME];
        frit_tensor *read;

        snprintf(name, sizeof(name), "optimizer.%s", state.name);
        read = frit_safetensors_tensor(file, replica->device, name);
        st = frit_optimizer_set_state(replica->optimizer, i, read, err);
        frit_release(read);
    }
    return st;
}

static frit_status read_history(const frit_safetensors *file, frit_device *device, const char *name,
                                float *out, uint64_t n, frit_err *err)
{
    frit_tensor *read = frit_safetensors_tensor(file, device, name);
    const frit_status st = n ? frit_read(read, out, n * sizeof(*out), err) : FRIT_OK;

    frit_release(read);
    return st;
}

static frit_status restore_replica(const frit_safetensors *file, uint64_t step,
                                   struct replica *replica, frit_err *err)
{
    frit_status st = restore_params(file, replica, err);

    if (!st)
        st = restore_states(file, replica, err);
    if (!st)
        frit_optimizer_set_steps(replica->optimizer, step);
    return st;
}

frit_status checkpoint_restore(const frit_safetensors *file, struct run *run,
                               struct trainer *trainer, frit_err *err)
{
    frit_device *device = trainer->replicas[0].device;
    frit_status st = number_of(file, "step", run->epochs * run->steps_an_epoch, &run->step, err);

    for (uint32_t i = 0; i < trainer->n_here && !st; i++)
        st = restore_replica(file, run->step, &trainer->replicas[i], err);
    if (!st)
        st = read_history(file, device, "history.losses", run->losses, run->step, err);
    if (!st)
        st = read_history(file, device, "history.right", run->right,
                          run->step / run->steps_an_epoch, err);
    return st;
}
