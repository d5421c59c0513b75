/* SPDX-License-Identifier: Apache-2.0 */
/* A file or folder that the library uses: what lies there, and what is wrong with it.  One thread.
 */
#ifndef DOCTOR_PLACE_H
#define DOCTOR_PLACE_H

#include <stdbool.h>

#include <frit/doctor.h>

struct problems;

struct place {
    frit_place_desc desc;
    bool exists;
    uint64_t bytes;     /* of the file, or of the files in the folder */
    uint64_t n_files;   /* in the folder */
    uint64_t n_strange; /* of these, that are ignored: of another owner, or not regular files */
    uint32_t mode, owner;
};

/* "configuration", "plugins", "plans", "compiled code". */
const char *place_kind_name(uint32_t kind);
/* Looks at the place. */
void place_look(const frit_place_desc *desc, struct place *out);
/* Adds what is wrong with it. */
void place_check(const struct place *place, struct problems *problems);

#endif
