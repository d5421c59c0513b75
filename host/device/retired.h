/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that nobody has any more, until what they launched has run: nobody waits for the device
 * to destroy one.  Threads: any. */
#ifndef DEVICE_RETIRED_H
#define DEVICE_RETIRED_H

#include <frit/frit.h>

struct program;
struct retired;

frit_status retired_create(struct retired **out, frit_err *err);
/* Destroys all that are left.  NULL does nothing. */
void retired_destroy(struct retired *retired);
/* Takes a program without launches to come. */
void retired_add(frit_device *device, struct program *program);
/* Destroys those whose launches are known to have run by now; not inside a lock. */
void retired_reap(frit_device *device);

#endif
