/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with one slot that sins. */
#ifndef FAKE_RUN_SIN_H
#define FAKE_RUN_SIN_H

#include <stdbool.h>

#include <frit/capture.h>
#include <frit/collective.h>
#include <frit/custom.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>
#include <frit/profile.h>

/* The tables of the plugin that does the work, whole: what it lacks is NULL. */
struct tables {
    frit_plugin plugin;
    frit_backend backend;
    frit_fuser_table fuser;
    frit_program_table program; /* of the first program that was made */
    frit_native_table native;
    frit_capture_table capture;
    frit_profile_table profile;
    frit_collective_table collective;
    frit_custom_op ops; /* the first of its ops */
};

extern struct tables inner;

/* Puts a function that says what is not so into the slot of `outer`. */
void put_lies(struct tables *outer);
/* Programs with two candidates, of which `priority` is called. */
void put_two_candidates(struct tables *outer);
/* Whether it is this slot that sins. */
bool is_here(const char *table, const char *slot);
/* Whether the sin is this one; writes once that it was reached. */
bool reached(const char *table, const char *slot, const char *act);
/* Whether it is, without saying so. */
bool is_sin(const char *table, const char *slot, const char *act);

#endif
