/* SPDX-License-Identifier: Apache-2.0 */
/* loss END AGAIN: computes on the configured device, loses it by the shell command END, and prints
 * what its user reads; then, after the command AGAIN, opens it anew and computes once more. */
#include <stdio.h>
#include <stdlib.h>

#include <frit/frit.h>

/* Prints the sum of what is computed, or why there is none. */
static void compute(frit_device *dev)
{
    const float numbers[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    frit_tensor *x = frit_from_host(dev, FRIT_F32, FRIT_SHAPE(3, 4), numbers, sizeof(numbers));
    frit_tensor *y = frit_sum(frit_exp(frit_take(x)));
    float sum;

    if (frit_read(y, &sum, sizeof(sum), NULL))
        printf("error: %s: %s\n", frit_status_name(frit_tensor_status(y)), frit_tensor_error(y));
    else
        printf("sum: %.3f\n", (double)sum);
    frit_release(y);
}

static int open_device(frit_host *host, frit_device **dev)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_status status = frit_device_open(host, NULL, dev, &err);

    if (status)
        printf("open: %s: %s\n", frit_status_name(status), err.text);
    return status != FRIT_OK;
}

int main(int argc, char **argv)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host *host = NULL;
    frit_device *dev = NULL;

    if (argc != 3 || frit_host_open(NULL, &host, &err) || open_device(host, &dev))
        return fprintf(stderr, "%s\n", err.text), 1;
    compute(dev);
    if (system(argv[1]))
        return fprintf(stderr, "the first command failed\n"), 1;
    compute(dev);
    compute(dev);
    frit_device_close(dev);
    if (system(argv[2]))
        return fprintf(stderr, "the second command failed\n"), 1;
    if (!open_device(host, &dev))
        compute(dev);
    frit_device_close(dev);
    frit_host_close(host);
    return 0;
}
