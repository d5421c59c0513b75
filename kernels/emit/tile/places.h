/* SPDX-License-Identifier: Apache-2.0 */
/* Places in scratch. */
#ifndef TILE_PLACES_H
#define TILE_PLACES_H

#include <stdint.h>

struct make;
struct tile_step;

/* Room in scratch. */
uint32_t make_space(struct make *m, uint64_t bytes, uint64_t align);
uint32_t make_uniform(struct make *m);
uint32_t make_const(struct make *m, uint64_t bits);
uint32_t make_take_reg(struct make *m, uint32_t type);
void make_put_reg(struct make *m, uint32_t type, uint32_t reg);
/* Frees the registers of values that are needed until `at`, once. */
void make_release(struct make *m, uint32_t at);
void make_step(struct make *m, const struct tile_step *step);

#endif
