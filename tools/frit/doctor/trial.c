/* SPDX-License-Identifier: Apache-2.0 */
/* The child writes the device's name, then the outputs of each run, then the blocks of the first
 * one; or a failure in words.  What it wrote before it died is dropped. */
#include "doctor/trial.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frit/inspect.h>

#include "base/str.h"
#include "conform/conform.h"
#include "conform/find.h"

/* ---- values ---- */

void trial_value_fini(struct trial_value *value)
{
    free(value->data);
    *value = (struct trial_value){0};
}

bool trial_value_send(const struct trial_value *value, FILE *to)
{
    return fwrite(&value->dtype, sizeof(value->dtype), 1, to) == 1 &&
           fwrite(&value->dims, sizeof(value->dims), 1, to) == 1 &&
           fwrite(&value->bytes, sizeof(value->bytes), 1, to) == 1 &&
           fwrite(value->data, 1, value->bytes, to) == value->bytes;
}

bool trial_value_take(struct trial_value *out, FILE *from)
{
    bool good;

    *out = (struct trial_value){0};
    good = fread(&out->dtype, sizeof(out->dtype), 1, from) == 1 &&
           fread(&out->dims, sizeof(out->dims), 1, from) == 1 &&
           fread(&out->bytes, sizeof(out->bytes), 1, from) == 1;
    out->data = good ? malloc(out->bytes ? out->bytes : 1) : NULL;
    good = out->data && fread(out->data, 1, out->bytes, from) == out->bytes;
    if (!good)
        trial_value_fini(out);
    return good;
}

bool trial_value_read(frit_tensor *tensor, struct trial_value *out, char words[TRIAL_WORDS])
{
    *out = (struct trial_value){.dtype = frit_tensor_dtype(tensor),
                                .dims = frit_tensor_dims(tensor),
                                .bytes = frit_tensor_bytes(tensor)};
    out->data = malloc(out->bytes ? out->bytes : 1);
    if (out->data && !frit_read(tensor, out->data, out->bytes, NULL))
        return true;
    snprintf(words, TRIAL_WORDS, "%s", out->data ? frit_tensor_error(tensor) : "no memory");
    trial_value_fini(out);
    return false;
}

char *trial_value_type(const struct trial_value *value)
{
    struct str text = {0};

    str_addf(&text, "%s[", frit_dtype_name(value->dtype));
    for (int64_t i = 0; i < value->dims.rank; i++)
        str_addf(&text, "%s%" PRId64, i ? ", " : "", value->dims.dim[i]);
    str_addf(&text, "]");
    if (!text.failed)
        return text.text;
    str_fini(&text);
    return NULL;
}

/* What the two processes of a trial share. */
struct exchange {
    const struct trial_request *request;
    char *bytes; /* that the parent got */
    size_t n;
};

/* ---- the child ---- */

/* What a child has open; its end closes it. */
struct trial_child {
    const struct trial_request *request;
    frit_device *device;
    frit_graph *graph;
    frit_tensor **inputs, **outputs;
    FILE *to;
    char words[TRIAL_WORDS];
};

static void log_nothing(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    (void)level;
    (void)topic;
    (void)text;
}

/* Returns whether the status is FRIT_OK; else its words are kept. */
static bool good(struct trial_child *child, frit_status status, const frit_err *err)
{
    if (status)
        snprintf(child->words, sizeof(child->words), "%.*s", TRIAL_WORDS - 1, err->text);
    return !status;
}

static bool open_all(struct trial_child *child)
{
    const struct trial_request *request = child->request;
    const frit_host_params params = {.struct_size = sizeof(params),
                                     .settings = request->settings,
                                     .n_settings = request->n_settings,
                                     .log = log_nothing};
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host;

    return good(child, frit_host_open(&params, &host, &err), &err) &&
           good(child, frit_device_open(host, request->device, &child->device, &err), &err) &&
           good(child,
                frit_graph_parse("program", request->text, strlen(request->text), &child->graph,
                                 &err),
                &err);
}

static bool bind(struct trial_child *child)
{
    const size_t n = child->request->n_inputs;
    frit_port *ports = calloc(n + 1, sizeof(*ports));
    frit_err err = {.struct_size = sizeof(err)};
    bool bound;

    if (!ports) {
        snprintf(child->words, sizeof(child->words), "no memory");
        return false;
    }
    for (size_t i = 0; i < n; i++)
        ports[i] = (frit_port){.struct_size = sizeof(ports[i]),
                               .dtype = child->request->inputs[i]->dtype,
                               .dims = child->request->inputs[i]->dims};
    bound = good(child, frit_graph_bind(child->graph, ports, n, &err), &err);
    free(ports);
    return bound;
}

static bool feed(struct trial_child *child)
{
    const size_t n = child->request->n_inputs;

    child->inputs = calloc(n + 1, sizeof(frit_tensor *));
    child->outputs = calloc(child->request->n_outputs + 1, sizeof(frit_tensor *));
    if (!child->inputs || !child->outputs) {
        snprintf(child->words, sizeof(child->words), "no memory");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const struct trial_value *value = child->request->inputs[i];

        child->inputs[i] =
            frit_from_host(child->device, value->dtype, value->dims, value->data, value->bytes);
    }
    return bind(child);
}

static bool send_outputs(struct trial_child *child)
{
    bool sent = true;

    for (size_t i = 0; i < child->request->n_outputs && sent; i++) {
        struct trial_value value;

        sent = trial_value_read(child->outputs[i], &value, child->words) &&
               trial_value_send(&value, child->to);
        trial_value_fini(&value);
        frit_release(child->outputs[i]);
    }
    return sent;
}

static void send_blocks(const frit_inspection *inspection, FILE *to)
{
    frit_run_desc run = {.struct_size = sizeof(run)};
    frit_step_desc step = {.struct_size = sizeof(step)};

    for (uint64_t r = 0; frit_inspection_run_at(inspection, r, &run) == FRIT_OK; r++)
        for (uint64_t s = 0; frit_inspection_step_at(inspection, r, s, &step) == FRIT_OK; s++) {
            struct trial_block block = {.flags = step.flags};

            snprintf(block.fuser, sizeof(block.fuser), "%s", step.fuser);
            snprintf(block.label, sizeof(block.label), "%s", step.label);
            fwrite(&block, sizeof(block), 1, to);
        }
}

static bool run_once(struct trial_child *child)
{
    const struct trial_request *request = child->request;
    frit_err err = {.struct_size = sizeof(err)};

    return good(child,
                frit_graph_run(child->graph, child->device, child->inputs, request->n_inputs,
                               child->outputs, request->n_outputs, &err),
                &err) &&
           good(child, frit_sync(child->device, &err), &err);
}

/* All runs; the first one under the inspector. */
static bool run_all(struct trial_child *child, frit_inspection **inspection)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (!good(child, frit_inspect_start(child->device, &err), &err) || !run_once(child) ||
        !good(child, frit_inspect_stop(child->device, inspection, &err), &err) ||
        !send_outputs(child))
        return false;
    for (uint32_t i = 1; i < child->request->repeat; i++)
        if (!run_once(child) || !send_outputs(child))
            return false;
    return true;
}

/* The first byte of what the child writes: whether it went well comes last. */
enum { TRIAL_GOOD = 'g', TRIAL_BAD = 'b' };

static void send_trial(void *ctx, FILE *to)
{
    const struct rlimit no_core = {0, 0};
    struct trial_child child = {.request = ((const struct exchange *)ctx)->request, .to = to};
    frit_inspection *inspection = NULL;
    char name[64] = "";
    bool ran;

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm((unsigned)child.request->seconds);
    ran = open_all(&child);
    if (ran)
        snprintf(name, sizeof(name), "%s", frit_device_name(child.device));
    fwrite(name, sizeof(name), 1, to);
    fflush(to); /* known whatever follows */
    ran = ran && feed(&child) && run_all(&child, &inspection);
    if (ran)
        send_blocks(inspection, to);
    else
        fwrite(child.words, sizeof(child.words), 1, to);
    fputc(ran ? TRIAL_GOOD : TRIAL_BAD, to);
    fflush(to);
    _exit(0); /* nothing is closed: a driver that fails in that too changes no result */
}

/* ---- the parent ---- */

static void receive(void *ctx, FILE *from)
{
    struct exchange *all = ctx;
    size_t capacity = 0, got = 1;

    while (got > 0) {
        if (all->n == capacity) {
            size_t more = capacity ? 2 * capacity : 1 << 16;
            char *bytes = realloc(all->bytes, more);

            if (!bytes)
                return;
            all->bytes = bytes;
            capacity = more;
        }
        got = fread(all->bytes + all->n, 1, capacity - all->n, from);
        all->n += got;
    }
}

static bool take_outputs(const struct trial_request *request, struct trial *out, FILE *from)
{
    const size_t n = request->n_outputs * request->repeat;

    out->outputs = calloc(n + 1, sizeof(*out->outputs));
    if (!out->outputs)
        return false;
    for (; out->n_outputs < n; out->n_outputs++)
        if (!trial_value_take(&out->outputs[out->n_outputs], from))
            return false;
    return true;
}

static bool take_blocks(struct trial *out, FILE *from, size_t bytes)
{
    const size_t n = (bytes - (size_t)ftell(from) - 1) / sizeof(*out->blocks);

    out->blocks = calloc(n + 1, sizeof(*out->blocks));
    out->n_blocks = out->blocks ? fread(out->blocks, sizeof(*out->blocks), n, from) : 0;
    return out->n_blocks == n;
}

static void take_all(const struct exchange *all, struct trial *out)
{
    FILE *from = fmemopen(all->bytes, all->n, "r");

    snprintf(out->words, sizeof(out->words), "no memory");
    if (!from)
        return;
    (void)fseek(from, sizeof(out->device), SEEK_SET);
    if (all->bytes[all->n - 1] == TRIAL_GOOD)
        out->ran = take_outputs(all->request, out, from) && take_blocks(out, from, all->n);
    else if (all->n > TRIAL_WORDS)
        snprintf(out->words, sizeof(out->words), "it failed: %.380s",
                 all->bytes + all->n - 1 - TRIAL_WORDS);
    fclose(from);
}

void trial_run(const struct trial_request *request, struct trial *out)
{
    struct exchange all = {.request = request};
    char reason[CONFORM_REASON];
    int status = 0;
    const bool started = conform_fork(send_trial, receive, &all, &status);

    *out = (struct trial){0};
    if (all.n >= sizeof(out->device))
        memcpy(out->device, all.bytes, sizeof(out->device));
    out->device[sizeof(out->device) - 1] = '\0';
    if (!started)
        snprintf(out->words, sizeof(out->words), "it cannot be started: %s", strerror(errno));
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(out->words, sizeof(out->words), "it hangs: no end after %g s", request->seconds);
    else if (status || all.n <= sizeof(out->device))
        snprintf(out->words, sizeof(out->words), "%.380s", conform_ended(status, reason));
    else
        take_all(&all, out);
    free(all.bytes);
}

void trial_fini(struct trial *trial)
{
    for (size_t i = 0; i < trial->n_outputs; i++)
        trial_value_fini(&trial->outputs[i]);
    free(trial->outputs);
    free(trial->blocks);
    *trial = (struct trial){0};
}
