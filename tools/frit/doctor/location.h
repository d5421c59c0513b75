/* SPDX-License-Identifier: Apache-2.0 */
/* A file or folder that the library uses: what lies there, and what is wrong with it.  One thread.
 */
#ifndef DOCTOR_LOCATION_H
#define DOCTOR_LOCATION_H

#include <stdbool.h>

#include <frit/doctor.h>

struct problems;

struct location {
    frit_place_desc desc;
    bool exists;
    uint64_t bytes;     /* of the file, or of the files in the folder */
    uint64_t n_files;   /* in the folder */
    uint64_t n_strange; /* of these, that are ignored: others could have written them */
    uint32_t mode, owner;
};

/* "configuration", "plugins", "plans", "compiled code". */
const char *location_name(uint32_t kind);
/* Looks at the place. */
void location_look(const frit_place_desc *desc, struct location *out);
/* Adds what is wrong with it. */
void location_check(const struct location *place, struct problems *problems);

#endif
