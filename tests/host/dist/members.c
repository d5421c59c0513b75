/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/members.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t limit_ns = 20000000000u;

bool member_fail(struct member *member, const char *format, ...)
{
    va_list args;

    if (*member->failed)
        return false;
    va_start(args, format);
    vsnprintf(member->failed, sizeof(member->failed), format, args);
    va_end(args);
    return false;
}

bool member_failed_so(struct member *member, const char *call, frit_status have, frit_status want,
                      const char *part)
{
    if (have == want && strstr(member->err.text, part))
        return true;
    return member_fail(member, "%s: %d, '%s' is not %d, '%s'", call, have,
                       have ? member->err.text : "", want, part);
}

static frit_host *open_host(void)
{
    static const frit_setting settings[] = {{"frit", "log", "off"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 1};
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host;

    if (frit_host_open(&params, &host, &err))
        fail_msg("%s", err.text);
    return host;
}

bool stage_has(const char *name)
{
    frit_host *host = open_host();
    frit_device *device = NULL;
    const bool has = !frit_device_open(host, name, &device, NULL);

    frit_device_close(device);
    frit_host_close(host);
    return has;
}

void stage_open(struct stage *stage, const char *const *names, uint32_t n)
{
    frit_err err = {.struct_size = sizeof(err)};

    *stage = (struct stage){.host = open_host(), .n_devices = n};
    for (uint32_t i = 0; i < n; i++) {
        if (frit_device_open(stage->host, names[i], &stage->devices[i], &err))
            fail_msg("%s", err.text);
    }
}

void stage_close(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->n_devices; i++) {
        char *left = NULL;

        if (frit_leaks(stage->devices[i], &left))
            fail_msg("%s", left);
        frit_device_close(stage->devices[i]);
    }
    frit_host_close(stage->host);
}

/* Threads of ranks let go of buffers after they have woken who waits: the number has to stay for a
 * while, since the machine may be busy. */
void stats_at_rest(frit_device *device, frit_stats *out)
{
    uint64_t before;

    *out = (frit_stats){.struct_size = sizeof(*out)};
    (void)frit_sync(device, NULL);
    for (int n = 0; n < 10; n++) {
        before = out->buffers_now;
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        frit_stats_get(device, out);
        if (out->buffers_now != before)
            n = 0;
    }
}

static void *run_member(void *arg)
{
    struct member *m = arg;

    if (frit_group_join(m->device, &m->config, &m->group, &m->err)) {
        member_fail(m, "%s", m->err.text);
        return NULL;
    }
    (void)m->body(m);
    if (frit_group_leave(m->group, &m->err))
        member_fail(m, "%s", m->err.text);
    return NULL;
}

void stage_run(struct stage *stage, uint32_t size, struct member *members,
               bool (*body)(struct member *member))
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_group_id id;

    if (frit_group_id_create(stage->host, "collective-local", &id, &err))
        fail_msg("%s", err.text);
    for (uint32_t r = 0; r < size; r++) {
        struct member *m = &members[r];

        m->device = stage->devices[r % stage->n_devices];
        m->rank = r;
        m->size = size;
        m->body = body;
        m->err.struct_size = sizeof(m->err);
        m->config = (frit_group_config){.struct_size = sizeof(m->config),
                                        .name = "dp",
                                        .id = &id,
                                        .rank = r,
                                        .size = size,
                                        .op_ns = limit_ns};
        assert_int_equal(pthread_create(&m->thread, NULL, run_member, m), 0);
    }
    for (uint32_t r = 0; r < size; r++)
        assert_int_equal(pthread_join(members[r].thread, NULL), 0);
    for (uint32_t r = 0; r < size; r++) {
        if (*members[r].failed)
            fail_msg("rank %u of %u: %s", r, size, members[r].failed);
    }
}
