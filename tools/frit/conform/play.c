/* SPDX-License-Identifier: Apache-2.0 */
/* A case's program on a device, and the guards that lie around it. */
#include "conform/play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conform/lab.h"
#include "conform/numbers.h"
#include "conform/program.h"
#include "element.h"

void results_fini(struct results *results)
{
    for (uint32_t k = 0; k < results->n; k++)
        free(results->data[k]);
    *results = (struct results){0};
}

bool lab_is_float(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_FLOAT;
}

uint64_t lab_count(const frit_dims *dims)
{
    uint64_t count = 1;

    for (int64_t i = 0; i < dims->rank; i++)
        count *= (uint64_t)dims->dim[i];
    return count;
}

frit_status lab_fail(frit_status status, const char *text, char reason[CONFORM_REASON])
{
    snprintf(reason, CONFORM_REASON, "%s: %.350s", frit_status_name(status), text);
    return status;
}

/* ---- one program on one device ---- */

/* Largest finite value of floats. */
static double most_of(uint32_t dtype, const void *data, uint64_t count, double most)
{
    for (uint64_t i = 0; i < count && lab_is_float(dtype); i++) {
        double value = fabs(element_value(dtype, data, i));

        most = isfinite(value) && value > most ? value : most;
    }
    return most;
}

/* An operand; with f64 in the place of another float it gets the same numbers. */
static frit_tensor *operand_of(const struct lab *lab, frit_device *device,
                               const struct conform_case *one,
                               const struct conform_operand *operand, uint32_t narrow,
                               uint32_t index, double *most)
{
    uint64_t count = lab_count(&operand->dims);
    struct conform_operand source = *operand;
    uint64_t bytes = frit_storage_bytes(operand->dtype, (int64_t)count);
    void *data = calloc(1, bytes + 8), *wide = NULL;
    frit_tensor *tensor = NULL;

    source.dtype = narrow;
    if (data)
        conform_fill(one, &source, index, !lab->flushes[narrow], data, count);
    if (data)
        *most = most_of(narrow, data, count, *most);
    if (data && narrow != operand->dtype) {
        wide = calloc(count + 1, sizeof(double));
        if (wide)
            conform_widen(narrow, data, count, wide);
    }
    if (data && (wide || narrow == operand->dtype))
        tensor = frit_from_host(device, operand->dtype, operand->dims, wide ? wide : data, bytes);
    free(data);
    free(wide);
    return tensor;
}

static frit_status read_results(frit_tensor *const *outputs, uint32_t n, struct results *out,
                                char reason[CONFORM_REASON])
{
    frit_err err = {.struct_size = sizeof(err)};
    out->n = n;
    for (uint32_t k = 0; k < n; k++) {
        frit_status status = frit_tensor_status(outputs[k]);

        if (status)
            return lab_fail(status, frit_tensor_error(outputs[k]), reason);
        out->dtype[k] = frit_tensor_dtype(outputs[k]);
        out->dims[k] = frit_tensor_dims(outputs[k]);
        out->bytes[k] = frit_tensor_bytes(outputs[k]);
        out->data[k] = calloc(1, out->bytes[k] + 1);
        if (!out->data[k])
            return lab_fail(FRIT_NO_HOST_MEMORY, "no memory", reason);
        status = frit_read(outputs[k], out->data[k], out->bytes[k], &err);
        if (status)
            return lab_fail(status, err.text, reason);
    }
    return FRIT_OK;
}

static frit_status run_graph(frit_device *device, const struct conform_program *program,
                             frit_tensor *const *inputs, struct results *out,
                             char reason[CONFORM_REASON])
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_tensor *outputs[CONFORM_OUTPUTS] = {NULL};
    frit_graph *graph;
    frit_status status = conform_graph_of(program, &graph, &err);

    if (!status)
        status =
            frit_graph_run(graph, device, inputs, program->n_in, outputs, program->n_out, &err);
    if (status)
        lab_fail(status, err.text, reason);
    else
        status = read_results(outputs, program->n_out, out, reason);
    for (uint32_t k = 0; k < program->n_out; k++)
        frit_release(outputs[k]);
    frit_graph_free(graph);
    return status;
}

/* Whether the operands are what they were. */
static bool operands_stay(const struct lab *lab, const struct conform_case *one,
                          const struct conform_program *program, frit_tensor *const *inputs,
                          char reason[CONFORM_REASON])
{
    for (uint32_t k = 0; k < program->n_in; k++) {
        const struct conform_operand *operand = &program->in[k];
        uint64_t count = lab_count(&operand->dims);
        uint64_t bytes = frit_storage_bytes(operand->dtype, (int64_t)count);
        char *was = calloc(2, bytes + 8), *is = was ? was + bytes + 8 : NULL;
        bool same = true;

        if (was) {
            conform_fill(one, operand, k, !lab->flushes[operand->dtype], was, count);
            same = frit_read(inputs[k], is, bytes, NULL) != FRIT_OK || memcmp(was, is, bytes) == 0;
        }
        free(was);
        if (same)
            continue;
        snprintf(reason, CONFORM_REASON, "operand %u was written", k);
        return false;
    }
    return true;
}

frit_status lab_run(const struct lab *lab, frit_device *device, const struct conform_case *one,
                    enum manner manner, struct results *out, char reason[CONFORM_REASON])
{
    bool wide = manner == WIDE, guarded = manner == GUARDED;
    static struct conform_program program, narrow;
    frit_tensor *inputs[CONFORM_OPERANDS] = {NULL};
    frit_status status = FRIT_OK;

    *out = (struct results){0};
    if (!conform_program_of(one, wide, &program) || !conform_program_of(one, false, &narrow))
        return lab_fail(FRIT_INTERNAL, "the table's form cannot be read", reason);
    frit_seed(lab->host, 7);
    out->seen = narrow.n_in ? narrow.in[0].seen : 0;
    for (uint32_t k = 0; k < program.n_in; k++) {
        inputs[k] = operand_of(lab, device, one, &program.in[k], narrow.in[k].dtype, k, &out->most);
        if (!inputs[k])
            status = lab_fail(FRIT_NO_HOST_MEMORY, "no memory", reason);
    }
    if (!status)
        status = run_graph(device, &program, inputs, out, reason);
    *lab->lost |= status == FRIT_DEVICE_LOST && device == lab->device;
    if (!status && guarded && !operands_stay(lab, one, &program, inputs, reason))
        status = FRIT_INTERNAL;
    for (uint32_t k = 0; k < program.n_in; k++)
        frit_release(inputs[k]);
    return status;
}

/* ---- guards ---- */

void guards_begin(const struct lab *lab, struct guards *guards, uint64_t bytes)
{
    frit_dims dims = {1, {(int64_t)bytes}};
    char *data = malloc(bytes + 1);

    *guards = (struct guards){.bytes = bytes};
    if (data)
        memset(data, GUARD_BYTE, bytes);
    for (int k = 0; k < N_GUARDS && data; k++)
        guards->at[k] = frit_from_host(lab->device, FRIT_U8, dims, data, bytes);
    free(data);
    (void)frit_sync(lab->device, NULL);
    for (int k = FIRST_HOLE; k < N_GUARDS - 1; k += 2) {
        frit_release(guards->at[k]);
        guards->at[k] = NULL;
    }
    (void)frit_sync(lab->device, NULL);
}

bool guards_end(struct guards *guards, char reason[CONFORM_REASON])
{
    char *data = malloc(guards->bytes + 1);
    uint64_t written = 0;

    for (int k = 0; k < N_GUARDS; k++) {
        if (data && guards->at[k] && frit_read(guards->at[k], data, guards->bytes, NULL) == FRIT_OK)
            for (uint64_t i = 0; i < guards->bytes; i++)
                written += data[i] != GUARD_BYTE;
        frit_release(guards->at[k]);
    }
    free(data);
    if (written)
        snprintf(reason, CONFORM_REASON, "%llu bytes beside the results were written",
                 (unsigned long long)written);
    return written == 0;
}
