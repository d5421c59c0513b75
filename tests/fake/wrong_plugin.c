/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the wrong drivers: -DWRONG=WRONG_<row of wrongs.def>, -DWRONG_ID="...". */
#include "wrong.h"

const int wrong_row = WRONG;

static const frit_plugin plugin = {
    .struct_size = sizeof(plugin),
    .id = {WRONG_ID, sizeof(WRONG_ID) - 1},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .open = wrong_plugin_open,
    .close = fake_close,
    .get_interface = wrong_interface,
};

FRIT_DEFINE_PLUGIN(WRONG_ID, "1.0", "", &plugin)
