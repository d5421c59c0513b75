/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's tests have to know of collective-local. */
#include "plugins/collective/world.h"

static void set_device(uint32_t rank, frit_group_params *params)
{
    (void)rank;
    params->space = FRIT_STR("host.ptr");
}

const struct engine world_engine = {.plugin = "collective-local",
                                    .max_ranks = MAX_RANKS,
                                    .too_many_ranks = 65,
                                    .foreign_space = "cuda.ptr",
                                    .refuses_foreign_ids = true,
                                    .combines_16_bit_integers = true,
                                    .works_for_all = true,
                                    .scale = 1,
                                    .set_device = set_device};
