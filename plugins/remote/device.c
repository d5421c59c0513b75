/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opening, closing and memory. */
#include "device.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect.h"
#include "queue.h"
#include "receive.h"
#include "remote.h"

/* The thread takes no signal: those are the application's. */
static int start_receiver(struct remote *remote)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&remote->receiver, NULL, remote_receive, remote);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* All but the thread. */
static void end(struct remote *remote)
{
    close(remote->fd);
    remote_drop_reads(remote, UINT64_MAX);
    progress_fini(&remote->progress);
    pthread_mutex_destroy(&remote->sending);
    pthread_mutex_destroy(&remote->reading);
    plug_free(remote->plug, remote->packet.bytes);
    plug_free(remote->plug, remote);
}

frit_status remote_open(struct kit_device *device, frit_err *err)
{
    const struct plug *plug = &device->instance->plug;
    const frit_str address = remote_plugin_of(device->instance)->address;
    struct remote *remote = plug_new(plug, sizeof *remote, "a device", err);
    struct wire_hello hello;
    frit_status status;
    int error;

    if (!remote)
        return FRIT_NO_HOST_MEMORY;
    status = remote_connect(plug, address, &remote->fd, &hello, err);
    if (status) {
        plug_free(plug, remote);
        return status;
    }
    remote->plug = plug;
    remote->device = device;
    remote->process = hello.process;
    remote->budget = (struct budget){.plug = plug, .cap = hello.memory_bytes};
    progress_init(&remote->progress, plug);
    pthread_mutex_init(&remote->sending, NULL);
    pthread_mutex_init(&remote->reading, NULL);
    device->own = remote;
    error = start_receiver(remote);
    if (!error)
        return FRIT_OK;
    end(remote);
    return plug_fail(plug, err, FRIT_IO, "no thread for replies: %s", strerror(error));
}

/* The host has waited for all that it wants of the device. */
void remote_close(struct kit_device *device)
{
    struct remote *remote = remote_of(device);

    atomic_store(&remote->closing, true);
    shutdown(remote->fd, SHUT_RDWR);
    pthread_join(remote->receiver, NULL);
    end(remote);
}

/* The server is not waited for: it may have less than it said, as others use the machine, too.
 * Then the first command that uses the buffer fails. */
frit_status remote_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct remote *remote = remote_of(self);
    frit_status status = progress_check_lost(&remote->progress, err);
    struct wire_range range = {.bytes = desc->bytes};
    frit_memory *memory;

    if (!status)
        status = budget_take(&remote->budget, desc->bytes, err);
    if (status)
        return status;
    memory = plug_new(remote->plug, sizeof *memory, "a buffer", err);
    if (!memory) {
        budget_give(&remote->budget, desc->bytes);
        return FRIT_NO_HOST_MEMORY;
    }
    pthread_mutex_lock(&remote->sending);
    memory->number = range.memory = ++remote->last_number;
    memory->bytes = desc->bytes;
    remote_send(remote, WIRE_ALLOC, &range);
    pthread_mutex_unlock(&remote->sending);
    out->memory = memory;
    out->address = 0;
    out->host_pointer = NULL;
    return FRIT_OK;
}

void remote_free(void *self, frit_memory *memory)
{
    struct remote *remote = remote_of(self);

    if (!memory)
        return;
    pthread_mutex_lock(&remote->sending);
    remote_send(remote, WIRE_FREE, &(struct wire_range){.memory = memory->number});
    pthread_mutex_unlock(&remote->sending);
    budget_give(&remote->budget, memory->bytes);
    plug_free(remote->plug, memory);
}
