/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune export` and `frit tune import`. */
#include "bundle.h"

#include <inttypes.h>

#include <frit/tune.h>

#include "invocation.h"
#include "session.h"

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int tune_export(const struct invocation *in, const struct session *session)
{
    frit_bundle_desc bundle = {.struct_size = sizeof(bundle)};
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_decisions_export(session->device, in->args[1], &bundle, &err))
        return fail_command(in, "%s", err.text);
    printf("%s: %" PRIu64 " decision%s and %" PRIu64 " artefact%s of %s\n", in->args[1],
           bundle.n_decisions, plural(bundle.n_decisions), bundle.n_artefacts,
           plural(bundle.n_artefacts), frit_device_name(session->device));
    return CLI_FINE;
}

int tune_import(const struct invocation *in, const struct session *session)
{
    frit_bundle_desc bundle = {.struct_size = sizeof(bundle)};
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_decisions_import(session->device, in->args[1], &bundle, &err))
        return fail_command(in, "%s", err.text);
    printf("%s: %" PRIu64 " decision%s, %" PRIu64 " of them known already, and %" PRIu64
           " artefact%s for %s\n",
           in->args[1], bundle.n_decisions, plural(bundle.n_decisions), bundle.n_known,
           bundle.n_artefacts, plural(bundle.n_artefacts), frit_device_name(session->device));
    return CLI_FINE;
}
