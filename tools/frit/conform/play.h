/* SPDX-License-Identifier: Apache-2.0 */
/* A case's program on a device, and the guards that lie around it. */
#ifndef CONFORM_PLAY_H
#define CONFORM_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>
#include <frit/op.h>
#include <frit/status.h>

#include "conform/conform.h"
#include "conform/lab.h"

struct conform_case;
struct guards;
struct lab;
struct results;

void results_fini(struct results *results);
/* Runs a case's program; results_fini afterwards in every case. */
frit_status lab_run(const struct lab *lab, frit_device *device, const struct conform_case *one,
                    enum manner manner, struct results *out, char reason[CONFORM_REASON]);
bool lab_is_float(uint32_t dtype);
uint64_t lab_count(const frit_dims *dims);
/* Writes "unsupported: TEXT"; returns the status. */
frit_status lab_fail(frit_status status, const char *text, char reason[CONFORM_REASON]);
void guards_begin(const struct lab *lab, struct guards *guards, uint64_t bytes);
/* Ends them; false if one was written. */
bool guards_end(struct guards *guards, char reason[CONFORM_REASON]);

#endif
