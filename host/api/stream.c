/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that a program opens: a handle is the address of the stream, which is never freed. */
#include "record/stream.h"
#include "api/host.h"
#include "base/fail.h"
#include "record/binding.h"
#include "run/drain.h"

frit_stream *frit_stream_open(frit_device *device)
{
    struct stream *stream;
    frit_err err = ERR_INIT;

    if (!device)
        return NULL;
    if (stream_open(device, &stream, &err))
        host_keep_error(device->config.host, err.status, &err);
    return (frit_stream *)stream;
}

frit_status frit_stream_enter(frit_device *device, frit_stream *stream, frit_stream **before)
{
    struct stream *left = NULL;
    frit_err err = ERR_INIT;
    frit_status st;

    if (before)
        *before = NULL;
    if (!device)
        return FRIT_INVALID;
    st = binding_enter(device, (struct stream *)stream, &left, &err);
    if (st)
        return host_keep_error(device->config.host, st, &err);
    if (before)
        *before = (frit_stream *)left;
    return FRIT_OK;
}

frit_status frit_stream_close(frit_stream *stream)
{
    frit_device *device = stream ? ((struct stream *)stream)->device : NULL;
    frit_err err = ERR_INIT;
    frit_status st = stream ? stream_close((struct stream *)stream, &err) : FRIT_OK;

    return st && device ? host_keep_error(device->config.host, st, &err) : st;
}
