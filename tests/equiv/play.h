/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a script on a device, through the public interface alone. */
#ifndef EQUIV_PLAY_H
#define EQUIV_PLAY_H

#include "script.h"

/* What a reading action got. */
struct reading {
    frit_status status;
    char *data; /* NULL: the action does not read, or is off */
};

struct play {
    struct reading *readings; /* one per action, then one per value that is left at the end */
    const char *fault;        /* NULL, or what went wrong beside the values; see `text` */
    char text[600];
};

/* `left`: as script_settle gave it.  All tensors are gone afterwards.  play_fini in any case. */
void play_script(struct play *play, frit_device *device, const struct script *script,
                 uint32_t variant, const uint8_t *left);
void play_fini(struct play *play, const struct script *script);

/* False, and how in `text`, where readings differ; NaNs are alike. */
bool play_compare(const struct script *script, uint32_t variant, const struct play *plain,
                  const struct play *fused, char *text, size_t size);

#endif
