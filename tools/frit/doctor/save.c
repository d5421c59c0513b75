/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the operands are written by a host in a process of its own, since this one stays
 * without. */
#include "doctor/save.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "command.h"
#include "conform/conform.h"
#include "conform/find.h"
#include "doctor/judge.h"
#include "invocation.h"
#include "session.h"

struct saving {
    const struct invocation *in;
    const struct judge *judge;
    const char *folder;
    const uint32_t *inputs; /* values */
    size_t n_inputs;
    bool saved;
};

static bool save_value(const struct saving *saving, frit_device *device, size_t i)
{
    const struct trial_value *value = &saving->judge->values[saving->inputs[i]];
    frit_tensor *tensor =
        frit_from_host(device, value->dtype, value->dims, value->data, value->bytes);
    frit_err err = {.struct_size = sizeof(err)};
    struct str path = {0};
    bool saved;

    str_addf(&path, "%s/%zu.npy", saving->folder, i);
    saved = !path.failed && !frit_save_npy(tensor, path.text, &err);
    if (!saved)
        fail_command(saving->in, "%s", path.failed ? "no memory" : err.text);
    str_fini(&path);
    frit_release(tensor);
    return saved;
}

static void send_saved(void *ctx, FILE *to)
{
    const struct saving *saving = ctx;
    frit_err err = {.struct_size = sizeof(err)};
    struct session session;
    bool saved = !session_open(&session, saving->in);

    if (saved && frit_device_open(session.host, saving->judge->against, &session.device, &err)) {
        fail_command(saving->in, "%s", err.text);
        saved = false;
    }
    for (size_t i = 0; i < saving->n_inputs && saved; i++)
        saved = save_value(saving, session.device, i);
    session_close(&session);
    fputc(saved, to);
}

static void take_saved(void *ctx, FILE *from)
{
    ((struct saving *)ctx)->saved = fgetc(from) == true;
}

static void print_text(const struct saving *saving, const struct region *region, struct str *out)
{
    const struct judge *judge = saving->judge;
    const struct slice_program *program = &judge->program;

    str_addf(out, "# A part of a program, as `frit doctor bisect` found it on %s.\n",
             judge->device_name);
    for (size_t i = 0; i < saving->n_inputs; i++)
        str_addf(out, "const %s : %s = \"%zu.npy\"\n", program->values[saving->inputs[i]].name,
                 judge->types[saving->inputs[i]], i);
    slice_print_ops(program, region->first, region->last, out);
}

static int write_text(const struct saving *saving, const struct str *text)
{
    struct str path = {0};
    FILE *file = NULL;
    bool good;

    str_addf(&path, "%s/trace.frit", saving->folder);
    if (!path.failed && !text->failed)
        file = fopen(path.text, "w");
    good = file && fwrite(text->text, 1, text->length, file) == text->length;
    if (file)
        good = fclose(file) == 0 && good;
    str_fini(&path);
    return good ? CLI_FINE
                : fail_command(saving->in, "%s/trace.frit: %s", saving->folder, strerror(errno));
}

int save_region(const struct invocation *in, const struct judge *judge, const struct region *region,
                const char *folder)
{
    uint32_t *inputs = calloc(judge->program.n_values + 1u, sizeof(*inputs));
    struct saving saving = {.in = in, .judge = judge, .folder = folder, .inputs = inputs};
    struct str text = {0};
    int status = CLI_FINE, ended = 0;

    if (!inputs)
        return fail_command(in, "no memory");
    saving.n_inputs = slice_inputs(&judge->program, region->first, region->last, inputs);
    print_text(&saving, region, &text);
    if (mkdir(folder, 0777) && errno != EEXIST)
        status = fail_command(in, "%s: the folder cannot be made: %s", folder, strerror(errno));
    if (status == CLI_FINE)
        status = write_text(&saving, &text);
    if (status == CLI_FINE &&
        (!conform_fork(send_saved, take_saved, &saving, &ended) || !saving.saved))
        status = CLI_FAILED;
    str_fini(&text);
    free(inputs);
    return status;
}
