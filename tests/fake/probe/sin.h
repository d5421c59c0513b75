/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin of this folder may do where it is called: one table per kind of act, which ends
 * with a name that is NULL. */
#ifndef FAKE_PROBE_SIN_H
#define FAKE_PROBE_SIN_H

#include "../driver.h"

struct act {
    const char *name;
    void (*commit)(void);
};

extern const struct act ends[];    /* ends.c: the process ends, or does not go on */
extern const struct act changes[]; /* changes.c: the process is not as it was */

void throw_exception(void); /* throw.cc */

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

/* Whether this file is the sin `name` at `where`. */
int is_sin(const char *where, const char *name);

#endif
