/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a NumPy archive: nothing outside them is read, and what is accepted can be read or
 * is refused in words. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fail.h"
#include "file/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("npz", 0);
    frit_err err = ERR_INIT;
    struct npz_file npz;
    char path[64];

    check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (npz_open(path, &npz, &err) == FRIT_OK) {
        for (uint32_t i = 0; i < npz.n_entries; i++) {
            void *elements = NULL;
            frit_status st = npz_read(&npz, &npz.entries[i], &elements, &err);

            check(!elements == !!st && (!st || *err.text));
            free(elements);
        }
        npz_close(&npz);
    } else {
        check(*err.text != '\0');
    }
    close(fd);
    return 0;
}
