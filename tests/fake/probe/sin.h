/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin of this folder may say that is not so: one table per place, which ends with a name
 * that is NULL. */
#ifndef FAKE_PROBE_SIN_H
#define FAKE_PROBE_SIN_H

#include "../driver.h"
#include "acts.h"

/* Where a lie is put in: what its place has, else NULL. */
struct said {
    frit_plugin *plugin;
    frit_welcome *welcome;
    frit_backend *backend; /* to be changed before the host sees it */
    frit_str id;           /* of the table that the host wants */
    const void *table;     /* and what it gets */
    frit_device_info *info;
    uint64_t stride;
    uint32_t capacity;
    uint32_t *count;
    frit_driver_info *driver;
    frit_err *err;
    frit_status status; /* that the slot returns */
};

struct lie {
    const char *name;
    void (*apply)(struct said *said);
};

extern const struct lie entry_lies[], failures[], table_lies[], device_lies[]; /* lies.c */

#endif
