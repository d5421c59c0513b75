/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>

#include "invocation.h"
#include "term.h"

int session_open_with(struct session *session, const struct invocation *in,
                      const frit_setting *settings, uint64_t n)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = n};

    *session = (struct session){0};
    if (frit_host_open(&params, &session->host, &err))
        return fail_command(in, "%s", err.text);
    return CLI_FINE;
}

static const frit_setting settings[] = {{"fusion", "compile", "wait"}, {"fusion", "enabled", "no"}};

int session_open(struct session *session, const struct invocation *in)
{
    return session_open_with(session, in, &settings[1], invocation_has(in, "--no-fuse"));
}

int session_open_waiting(struct session *session, const struct invocation *in, bool fuse)
{
    return session_open_with(session, in, settings, fuse ? 1 : 2);
}

int session_device(struct session *session, const struct invocation *in)
{
    frit_err err = {.struct_size = sizeof(err)};
    if (frit_device_open(session->host, invocation_value(in, "--device"), &session->device, &err))
        return fail_command(in, "%s", err.text);
    return CLI_FINE;
}

void session_close(struct session *session)
{
    frit_device_close(session->device);
    frit_host_close(session->host);
}

void session_faults(uint64_t faults)
{
    if (!faults)
        return;
    term_paint(stdout, PAINT_BAD, 0, "faults of the driver");
    printf(": %" PRIu64 " launches refused with \"internal\"; the log names the ops\n", faults);
}

void session_load_ops(void)
{
    const frit_host_params params = {.struct_size = sizeof(params)};
    frit_host *host;

    (void)!frit_host_open(&params, &host, NULL);
    frit_host_close(host);
}

const char *session_reason(uint32_t reason)
{
    static const char *const names[] = {
#define FRIT_REASON(value, NAME, name, meaning) [value] = (name),
#include <frit/reasons.def>
    };

    return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "?";
}
