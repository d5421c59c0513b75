/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/launch_words.h"

#include "kernels.h"
#include "util/plug.h"

void launch_words_fini(struct launch_words *buffer)
{
    if (buffer->words)
        plug_free(buffer->plug, buffer->words);
    buffer->words = NULL;
    buffer->capacity = 0;
}

/* Makes room for `n` words; the contents are lost. */
static frit_status grow(struct launch_words *buffer, uint32_t n, frit_err *err)
{
    launch_words_fini(buffer);
    buffer->words = plug_alloc(buffer->plug, n * sizeof *buffer->words, sizeof *buffer->words);
    if (!buffer->words)
        return plug_fail(buffer->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a launch of %u words", n);
    buffer->capacity = n;
    return FRIT_OK;
}

frit_status launch_words_first(struct launch_words *buffer, const frit_launch *launch,
                               struct kernels_launch *out, frit_err *err)
{
    frit_status status;

    *out = (struct kernels_launch){0};
    status = kernels_launch(launch, buffer->words, buffer->capacity, out, err);
    if (!status || out->total_words <= buffer->capacity)
        return status;
    status = grow(buffer, out->total_words, err);
    return status ? status : kernels_launch(launch, buffer->words, buffer->capacity, out, err);
}
