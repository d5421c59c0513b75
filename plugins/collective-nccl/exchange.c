/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOST = 96, KEY = 64 };

/* How long a rank waits for another one before it looks whether the group has ended. */
static const uint64_t slice_ns = 50000000;

/* What a rank says of itself.  All of it is text or bytes. */
struct presence {
    char vendor[8], version[32];
    char host[HOST], bus_id[GPU_BUS_ID];
    struct nccl_id id; /* of rank 0 */
};

bool exchange_has_store(const frit_group_params *params)
{
    return FRIT_HAS(params, frit_group_params, get) && params->put && params->get;
}

/* FNV-1a of the group's id, which is the same on all ranks. */
static frit_str key_of(const frit_group_params *params, uint32_t rank, char text[KEY])
{
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < sizeof params->id->bytes; i++)
        hash = (hash ^ params->id->bytes[i]) * 0x100000001b3;
    snprintf(text, KEY, "nccl.%016llx.%u", (unsigned long long)hash, rank);
    return (frit_str){text, strlen(text)};
}

/* The boot of this machine and its name: two containers of one machine may have either in common.
 */
static void name_host(char host[HOST])
{
    char boot[40] = "";
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    memset(host, 0, HOST);
    if (file >= 0) {
        n = read(file, boot, sizeof boot - 1);
        close(file);
    }
    boot[n > 0 ? strcspn(boot, "\n") : 0] = '\0';
    (void)gethostname(host, HOST - sizeof boot - 2);
    snprintf(host + strlen(host), HOST - strlen(host), " %s", boot);
}

static void clean(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text; text++) {
        if (*text < ' ' || *text > '~')
            *text = '?';
    }
}

static frit_status check(const frit_group *group, uint32_t rank, const struct presence *own,
                         const struct presence *other, frit_err *err)
{
    const struct plug *plug = &group->communicator->instance->plug;

    if (strcmp(own->vendor, other->vendor) != 0 || strcmp(own->version, other->version) != 0)
        return plug_fail(plug, err, FRIT_MISMATCH, "rank %u has %s %s, rank %u %s %s", group->rank,
                         own->vendor, own->version, rank, other->vendor, other->version);
    if (strcmp(own->host, other->host) == 0 && strcmp(own->bus_id, other->bus_id) == 0)
        return plug_fail(plug, err, FRIT_INVALID,
                         "ranks %u and %u are on one device, %s; %s needs one for each",
                         group->rank, rank, own->bus_id, own->vendor);
    return FRIT_OK;
}

static frit_status read_presence(const frit_group *group, const frit_group_params *params,
                                 uint32_t rank, uint64_t timeout_ns, struct presence *out,
                                 frit_err *err)
{
    uint64_t bytes = 0;
    char key[KEY];
    frit_status status = params->get(params->store, key_of(params, rank, key), out, sizeof *out,
                                     &bytes, timeout_ns, err);

    if (status)
        return status;
    if (bytes != sizeof *out)
        return plug_fail(&group->communicator->instance->plug, err, FRIT_MISMATCH,
                         "rank %u has another version of the engine", rank);
    clean(out->vendor, sizeof out->vendor);
    clean(out->version, sizeof out->version);
    clean(out->host, sizeof out->host);
    clean(out->bus_id, sizeof out->bus_id);
    return FRIT_OK;
}

static frit_status report_missing(const frit_group *group, const frit_group_params *params,
                                  frit_err *err)
{
    const struct plug *plug = &group->communicator->instance->plug;
    char text[300] = "";
    size_t used = 0;

    for (uint32_t r = 0; r < params->size && used < sizeof text; r++) {
        struct presence presence;

        if (read_presence(group, params, r, 0, &presence, NULL))
            used += (size_t)snprintf(text + used, sizeof text - used, used ? ", %u" : " %u", r);
    }
    return plug_fail(plug, err, FRIT_TIMEOUT, "no word from rank%s", text);
}

static frit_status make_presence(const frit_group *group, struct presence *own, frit_err *err)
{
    const struct library *library = group->communicator->library;
    int result;

    memset(own, 0, sizeof *own);
    snprintf(own->vendor, sizeof own->vendor, "%s", library->vendor->name);
    snprintf(own->version, sizeof own->version, "%s", library->version);
    snprintf(own->bus_id, sizeof own->bus_id, "%s", group->bus_id);
    name_host(own->host);
    result = group->rank == 0 ? library->nccl.GetUniqueId(&own->id) : NCCL_SUCCESS;
    return result ? plug_fail(&group->communicator->instance->plug, err, library_status(result),
                              "ncclGetUniqueId failed (%d)", result)
                  : FRIT_OK;
}

/* The failure of the group, which another rank of this process may have ended. */
static frit_status find_failure(const frit_group *group, frit_err *err)
{
    struct communicator *c = group->communicator;
    frit_status status;

    pthread_mutex_lock(&c->lock);
    status = c->error.status ? communicator_error(c, err) : FRIT_OK;
    pthread_mutex_unlock(&c->lock);
    return status;
}

static frit_status await_presence(const frit_group *group, const frit_group_params *params,
                                  uint32_t rank, const struct deadline *deadline,
                                  struct presence *out, frit_err *err)
{
    frit_status status, failure;
    uint64_t left;

    do {
        left = deadline_left(deadline);
        status = read_presence(group, params, rank, left < slice_ns ? left : slice_ns, out, err);
        failure = find_failure(group, err);
        if (failure)
            return failure;
    } while (status == FRIT_TIMEOUT && left);
    return status == FRIT_TIMEOUT ? report_missing(group, params, err) : status;
}

frit_status exchange_run(const frit_group *group, const frit_group_params *params,
                         const struct deadline *deadline, struct nccl_id *out, frit_err *err)
{
    struct presence own, other;
    char key[KEY];
    frit_status status = make_presence(group, &own, err);

    if (!status)
        status =
            params->put(params->store, key_of(params, group->rank, key), &own, sizeof own, err);
    if (group->rank == 0)
        *out = own.id;
    for (uint32_t r = 0; r < params->size && !status; r++) {
        if (r == group->rank)
            continue;
        status = await_presence(group, params, r, deadline, &other, err);
        if (!status)
            status = check(group, r, &own, &other, err);
        if (!status && r == 0)
            *out = other.id;
    }
    return status;
}
