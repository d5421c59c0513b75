/* SPDX-License-Identifier: Apache-2.0 */
#include "device/decisions.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"
#include "device/space.h"
#include "tune/store.h"

frit_status decisions_open(const frit_device *device, struct tune_store **out, frit_err *err)
{
    struct tune_store_params params = {.path = device->config.tune_store,
                                       .wait_ms = device->config.store_wait_ms,
                                       .named = device->config.tune_store_named};
    struct str space = {0};
    frit_status status;

    *out = NULL;
    if (params.path && !space_of_decisions(device, &space)) {
        log_write(FRIT_LOG_DEBUG, "tune", "%s: decisions are not kept: a library has no file",
                  device->name);
        params.path = NULL;
    }
    params.space = space.text ? space.text : "";
    status = space.failed ? fail_memory(err, space.length) : tune_store_open(&params, out, err);
    str_fini(&space);
    return status;
}
