/* SPDX-License-Identifier: Apache-2.0 */
/* The README's example: rows of a small matrix, shifted, through gelu, averaged. */
#include <frit/frit.h>
#include <stdio.h>

int main(void)
{
    float data[] = {-3, -2, -1, 0, 1, 2}, mean[2];
    frit_host *host = NULL;
    frit_device *dev = NULL;
    frit_err err;

    if (frit_host_open(NULL, &host, &err) || frit_device_open(host, NULL, &dev, &err))
        return fprintf(stderr, "%s\n", err.text), 1;

    frit_scope scope = frit_scope_begin(dev);
    frit_tensor *x = frit_from_host(dev, FRIT_F32, FRIT_SHAPE(2, 3), data, sizeof(data));
    frit_tensor *h = frit_gelu(frit_add_f(x, 1));
    frit_tensor *y = frit_keep(frit_mean(h, .axes = FRIT_AXES(1)));
    frit_scope_end(scope); /* x and h are gone */

    if (frit_read(y, mean, sizeof(mean), &err)) /* the only place that waits */
        return fprintf(stderr, "%s\n", err.text), 1;
    printf("%s: %.4f %.4f\n", frit_device_name(dev), (double)mean[0], (double)mean[1]);
    frit_release(y);
    frit_host_close(host);
    return 0;
}
