/* SPDX-License-Identifier: Apache-2.0 */
#include "api/digits.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static frit_status load_inputs(struct digits *digits, frit_device *device, int64_t images,
                               frit_err *err)
{
    frit_port ports[16] = {{0}}, port = {.struct_size = sizeof(port)};

    for (digits->n_inputs = 0; !frit_graph_input_at(digits->graph, digits->n_inputs, &port);
         digits->n_inputs++) {
        frit_tensor *tensor = frit_load_npy(device, port.file);
        frit_port *bound = &ports[digits->n_inputs];

        if (!port.is_const)
            tensor = frit_slice(frit_take(tensor), FRIT_SLICES({0, images, 1}));
        digits->inputs[digits->n_inputs] = tensor;
        bound->struct_size = sizeof(*bound);
        bound->dtype = frit_tensor_dtype(tensor);
        bound->dims = frit_tensor_dims(tensor);
        if (frit_tensor_status(tensor)) {
            digits->n_inputs++;
            return fail(err, frit_tensor_status(tensor), "%s", frit_tensor_error(tensor));
        }
    }
    return frit_graph_bind(digits->graph, ports, digits->n_inputs, err);
}

frit_status digits_open(const char *name, frit_device *device, int64_t images, struct digits *out,
                        frit_err *err)
{
    char path[256];

    *out = (struct digits){0};
    snprintf(path, sizeof(path), "tools/models/%s.frit", name);
    TRY(frit_graph_load(path, &out->graph, err));
    return load_inputs(out, device, images, err);
}

void digits_close(struct digits *digits)
{
    for (uint64_t i = 0; i < digits->n_inputs; i++)
        frit_release(digits->inputs[i]);
    frit_graph_free(digits->graph);
    *digits = (struct digits){0};
}

/* The labels after the header of the file. */
static frit_status count_right(const int64_t *cache, int64_t images, int *right, frit_err *err)
{
    int64_t labels[DIGITS_ALL];
    FILE *file = fopen("tests/data/digits/labels.npy", "rb");

    if (!file || fseek(file, -(long)sizeof(labels), SEEK_END) ||
        fread(labels, sizeof(labels), 1, file) != 1) {
        if (file)
            fclose(file);
        return fail(err, FRIT_IO, "labels.npy");
    }
    fclose(file);
    *right = 0;
    for (int64_t i = 0; i < images; i++)
        *right += cache[i] == labels[i];
    return FRIT_OK;
}

frit_status digits_run(const struct digits *digits, frit_device *device, int64_t images, int *right,
                       frit_err *err)
{
    int64_t cache[DIGITS_ALL];
    frit_tensor *outputs[2];
    frit_status st;

    TRY(frit_graph_run(digits->graph, device, digits->inputs, digits->n_inputs, outputs, 2, err));
    st = frit_read(outputs[1], cache, (uint64_t)images * sizeof(*cache), err);
    frit_release(outputs[0]);
    frit_release(outputs[1]);
    return st ? st : count_right(cache, images, right, err);
}
