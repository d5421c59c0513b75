/* SPDX-License-Identifier: Apache-2.0 */
/* What ran instead of a program that refused or failed; counted per device. */
#ifndef DEVICE_FALLBACK_KIND_H
#define DEVICE_FALLBACK_KIND_H

enum fallback {
    FALLBACK_CANDIDATE,  /* the program's next candidate */
    FALLBACK_OPS,        /* the ops of a block, one by one */
    FALLBACK_DECOMPOSED, /* what a composite op stands for */
    FALLBACK_DEVICE,     /* another device */
    FALLBACKS
};

#endif
