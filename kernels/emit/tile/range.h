/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that are true in one range of lanes. */
#ifndef TILE_RANGE_H
#define TILE_RANGE_H

struct tile_step;

/* range.c */
void tile_range(const struct tile_step *step, char *scratch);
void tile_range_and(const struct tile_step *step, char *scratch);
void tile_range_fill(const struct tile_step *step, char *scratch);

#endif
