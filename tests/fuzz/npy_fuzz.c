/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a NumPy file: nothing outside them is read, what is accepted fits into them, and
 * what is read can be written and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_parse(const uint8_t *data, size_t size)
{
    void *bytes = malloc(size ? size : 1); /* of the exact size, so that a sanitizer sees its end */
    char head[NPY_HEAD_OUT];
    struct npy npy, again;

    check(bytes != NULL);
    if (size)
        memcpy(bytes, data, size);
    if (npy_parse(bytes, size, size, &npy, NULL) == FRIT_OK) {
        check(npy.offset <= size && npy.bytes <= size - npy.offset);
        check(npy.bytes == frit_storage_bytes(npy.type.dtype, op_elements(&npy.type)));
        size = npy_format(&npy.type, head);
        check(npy_parse(head, size, size + npy.bytes, &again, NULL) == FRIT_OK);
        check(op_type_equal(&npy.type, &again.type));
    }
    free(bytes);
}

static void check_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("npy", 0);
    struct op_type type;
    void *dense = NULL;
    char path[64];

    check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (npy_read_file(path, &type, &dense, NULL) == FRIT_OK) {
        unsigned char *bytes = dense;
        uint64_t n = frit_storage_bytes(type.dtype, op_elements(&type));

        check(n <= size);
        for (uint64_t i = 0; i < n && type.dtype == FRIT_BOOL; i++)
            check(bytes[i] <= 1);
    } else {
        check(dense == NULL);
    }
    free(dense);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_parse(data, size);
    check_file(data, size);
    return 0;
}
