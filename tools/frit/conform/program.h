/* SPDX-License-Identifier: Apache-2.0 */
/* A case as a text program. */
#ifndef CONFORM_PROGRAM_H
#define CONFORM_PROGRAM_H

#include <stdbool.h>

#include <frit/frit.h>
#include <frit/status.h>

struct conform_case;
struct conform_program;

/* `wide`: with f64 in the place of the other floats.  False if the table's row cannot be read; the
 * text then says where. */
bool conform_program_of(const struct conform_case *one, bool wide, struct conform_program *out);
/* The program, not bound; NULL on failure. */
frit_status conform_graph_parse(const struct conform_program *program, frit_graph **out,
                                frit_err *err);
/* Binds it to its operands' shapes. */
frit_status conform_graph_bind(const struct conform_program *program, frit_graph *graph,
                               frit_err *err);
/* Both; NULL on failure. */
frit_status conform_graph_of(const struct conform_program *program, frit_graph **out,
                             frit_err *err);

#endif
