/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The receiver: replies of the server, and the end of the connection. */
#include "receive.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "remote.h"

/* ---- reads ---- */

void remote_drop_reads(struct remote *remote, uint64_t up_to)
{
    pthread_mutex_lock(&remote->reading);
    while (remote->first && remote->first->value <= up_to) {
        struct pending_read *read = remote->first;

        remote->first = read->next;
        plug_free(remote->plug, read);
    }
    if (!remote->first)
        remote->last = NULL;
    pthread_mutex_unlock(&remote->reading);
}

/* Where the bytes of a value belong; NULL: nobody wants so many. */
static void *place_of(struct remote *remote, uint64_t value, uint64_t bytes)
{
    struct pending_read *read;

    pthread_mutex_lock(&remote->reading);
    read = remote->first;
    while (read && read->value != value)
        read = read->next;
    pthread_mutex_unlock(&remote->reading);
    return read && read->bytes == bytes ? read->into : NULL;
}

/* ---- replies ---- */

/* What all say of the connection's other end. */
__attribute__((format(printf, 4, 5))) static bool lose(const struct remote *remote, int error,
                                                       frit_err *why, const char *format, ...)
{
    const frit_str address = remote_plugin_of(remote->device->instance)->address;
    char text[300];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)plug_fail(remote->plug, why, FRIT_DEVICE_LOST, "server %" PRIu64 " at %.*s: %s",
                    remote->process, (int)(address.len < 100 ? address.len : 100), address.ptr,
                    text);
    why->native_code = error > 0 ? error : 0;
    return false;
}

static bool lose_connection(const struct remote *remote, int error, frit_err *why)
{
    char text[64];

    if (error == WIRE_CLOSED)
        return lose(remote, error, why,
                    "it closed the connection without a word: it was killed or has crashed");
    return lose(remote, error, why, "%s", wire_error(error, text));
}

/* A command failed; the timeline goes on. */
static int take_failure(struct remote *remote, const struct wire_head *head)
{
    struct fault fault = {.err = {.struct_size = sizeof fault.err}};
    struct wire_failure failure;
    int error = wire_receive(remote->fd, &failure, sizeof failure);

    if (error)
        return error;
    failure.text[sizeof failure.text - 1] = '\0';
    fault.cookie = failure.cookie;
    fault.command = failure.command;
    fault.err.status =
        plug_fail(remote->plug, &fault.err, failure.status < 0 ? failure.status : FRIT_INTERNAL,
                  "%s", failure.text);
    progress_fail(&remote->progress, head->value, &fault);
    return 0;
}

static bool take_bye(const struct remote *remote, const struct wire_head *head, frit_err *why)
{
    char text[256] = "";
    int error = wire_receive(remote->fd, text, head->bytes < sizeof text ? head->bytes : 0);

    return error ? lose_connection(remote, error, why) : lose(remote, 0, why, "%s", text);
}

/* One message.  False, with the reason: there are no more. */
static bool take_message(struct remote *remote, frit_err *why)
{
    struct wire_head head;
    int error = wire_receive(remote->fd, &head, sizeof head);
    void *into;

    if (error)
        return lose_connection(remote, error, why);
    if (head.kind == WIRE_DATA && (into = place_of(remote, head.value, head.bytes))) {
        error = wire_receive(remote->fd, into, head.bytes);
    } else if (head.kind == WIRE_FAILED && head.bytes == sizeof(struct wire_failure)) {
        error = take_failure(remote, &head);
    } else if (head.kind == WIRE_DONE && !head.bytes) {
        remote_drop_reads(remote, head.value);
        progress_reach(&remote->progress, head.value, NULL);
    } else if (head.kind == WIRE_BYE) {
        return take_bye(remote, &head, why);
    } else {
        return lose(remote, 0, why,
                    "it sent a message of kind %u with %" PRIu64 " bytes that nobody expects",
                    head.kind, head.bytes);
    }
    return error ? lose_connection(remote, error, why) : true;
}

void *remote_receive(void *arg)
{
    struct fault loss = {.err = {.struct_size = sizeof loss.err}};
    struct remote *remote = arg;

    while (take_message(remote, &loss.err))
        continue;
    if (!atomic_load(&remote->closing)) {
        progress_lose(&remote->progress, &loss);
        kit_lost(remote->device, &loss.err);
    }
    return NULL;
}
