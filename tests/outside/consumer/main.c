/* SPDX-License-Identifier: Apache-2.0 */
/* consumer FACTOR: negates numbers on the configured device and checks that they came back times
 * FACTOR. */
#include <stdio.h>
#include <stdlib.h>

#include <frit/frit.h>

static int run(frit_device *dev, float factor)
{
    const float in[6] = {1, -2, 3.5f, 0, 5, -6};
    float out[6];
    frit_tensor *x = frit_from_host(dev, FRIT_F32, FRIT_SHAPE(2, 3), in, sizeof(in));
    frit_tensor *y = frit_neg(frit_take(x));
    int wrong = 0;

    if (frit_read(y, out, sizeof(out), NULL)) {
        fprintf(stderr, "%s\n", frit_tensor_error(y));
        frit_release(y);
        return 1;
    }
    frit_release(y);
    for (int i = 0; i < 6; i++)
        wrong += out[i] != factor * in[i];
    printf("%s: neg of %g is %g\n", frit_device_name(dev), (double)in[2], (double)out[2]);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host = NULL;
    frit_device *dev = NULL;
    int failed = 1;

    if (frit_host_open(NULL, &host, &err) || frit_device_open(host, NULL, &dev, &err))
        fprintf(stderr, "%s\n", err.text);
    else
        failed = run(dev, argc > 1 ? strtof(argv[1], NULL) : -1);
    frit_device_close(dev);
    frit_host_close(host);
    return failed;
}
