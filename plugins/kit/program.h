/* SPDX-License-Identifier: Apache-2.0 */
/* Programs. */
#ifndef KIT_PROGRAM_H
#define KIT_PROGRAM_H

#include <stdint.h>

#include <frit/op.h>
#include <frit/program.h>
#include <frit/status.h>

struct kit_block;
struct kit_device;
struct kit_fuser;
struct kit_row;
struct choice;
struct program;

/* The program of a row or a fuser on the device; copies the block, whose arguments are numbered.
 * FRIT_INTERNAL with a text where nothing runs it. */
frit_status program_make(const struct kit_device *device, const struct kit_row *row,
                         const struct kit_fuser *fuser, const struct kit_block *block,
                         frit_program *out, frit_err *err);
/* The one that a LAUNCH names, NULL if it is none of the kit. */
struct program *program_of(const frit_launch *launch);
/* Its candidate, NULL if there is no such one. */
struct choice *choice_of(const frit_launch *launch);
/* Slots of frit.backend/1. */
frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);

#endif
