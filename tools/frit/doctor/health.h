/* SPDX-License-Identifier: Apache-2.0 */
/* One page of health: what is installed, what is usable, what is wrong.  One thread. */
#ifndef DOCTOR_HEALTH_H
#define DOCTOR_HEALTH_H

#include <stdio.h>

#include <frit/doctor.h>

#include "doctor/limits.h"
#include "doctor/location.h"
#include "doctor/problems.h"

struct invocation;
struct json;

enum { HEALTH_PLACES = 64 };

struct health {
    frit_host *host; /* NULL: it could not be opened, `problems` says why */
    frit_build_desc build;
    struct limits limits;
    struct location places[HEALTH_PLACES];
    size_t n_places;
    struct problems problems;
};

/* Opens a host and looks at everything.  health_fini must be called. */
void health_gather(struct health *health);
void health_fini(struct health *health);

void health_print(const struct health *health, FILE *out);
void health_json(const struct health *health, FILE *out);

/* `frit doctor`. */
int health_command(const struct invocation *in);

#endif
