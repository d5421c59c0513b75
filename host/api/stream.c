/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the program.  A handle is the address of the stream, which is never freed. */
#include "record/stream.h"
#include "api/report.h"
#include "base/fail.h"
#include "record/binding.h"
#include "run/drain.h"

frit_status frit_stream_open(frit_device *device, frit_stream **out, frit_err *err)
{
    HOLD_CANCEL;
    struct stream *stream = NULL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "stream_open");
    if (!device || !out)
        return report_null(err, "stream_open", device ? "`out`" : "the device");
    st = stream_open(device, &stream, &own);
    if (!st)
        *out = (frit_stream *)stream;
    return report(err, st, &own);
}

frit_status frit_stream_enter(frit_device *device, frit_stream *stream, frit_stream **before,
                              frit_err *err)
{
    HOLD_CANCEL;
    struct stream *left = NULL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (before)
        *before = NULL;
    if (process_is_barred())
        return report_barred(err, "stream_enter");
    if (!device)
        return report_null(err, "stream_enter", "the device");
    st = binding_set_stream(device, (struct stream *)stream, &left, &own);
    if (!st && before)
        *before = (frit_stream *)left;
    return report(err, st, &own);
}

frit_status frit_stream_close(frit_stream *stream, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;

    if (process_is_barred())
        return report_barred(err, "stream_close");
    return stream ? report(err, stream_close((struct stream *)stream, &own), &own) : FRIT_OK;
}
