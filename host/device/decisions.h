/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the tuner's decisions for a device (tune/store.h), in the file of option
 * [tune] store. */
#ifndef DEVICE_DECISIONS_H
#define DEVICE_DECISIONS_H

#include <frit/frit.h>

struct tune_store;

/* Its fusers are there.  Only memory fails. */
frit_status decisions_open(const frit_device *device, struct tune_store **out, frit_err *err);

#endif
