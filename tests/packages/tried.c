/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody who has installed libfrit-dev: 1 + 2. */
#include <frit/frit.h>
#include <stdio.h>

int main(void)
{
    static const float one[] = {1, 1};
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host;
    frit_device *device;
    float sum[2] = {0, 0};

    if (frit_host_open(NULL, &host, &err) || frit_device_open(host, NULL, &device, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (frit_read(frit_take(frit_add_f(
                      frit_from_host(device, FRIT_F32, FRIT_SHAPE(2), one, sizeof(one)), 2)),
                  sum, sizeof(sum), &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%s: %g %g\n", frit_device_name(device), (double)sum[0], (double)sum[1]);
    frit_host_close(host);
    return 0;
}
