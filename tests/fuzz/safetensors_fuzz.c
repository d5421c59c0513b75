/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a safetensors file, and as a header of one: nothing outside them is read, what is
 * accepted covers the elements without holes, and what is read can be written and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "file/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_entries(const struct safetensors *parsed, uint64_t data_bytes)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < parsed->n_entries; i++) {
        const struct safetensors_entry *entry = &parsed->entries[i];

        check(entry->begin <= entry->end && entry->end <= data_bytes);
        check(entry->end - entry->begin ==
              frit_storage_bytes(entry->type.dtype, op_elements(&entry->type)));
        check(safetensors_find(parsed, entry->name) == entry);
        sum += entry->end - entry->begin;
    }
    check(sum == data_bytes);
}

/* Formats what was parsed, placed anew, and parses that. */
static void check_again(const struct safetensors *parsed, uint64_t data_bytes)
{
    const uint32_t n = parsed->n_entries;
    struct safetensors_entry *entries = malloc(n * sizeof(*entries) + 1);
    uint32_t *order = malloc(n * sizeof(*order) + 1);
    struct safetensors again;
    struct str out = {0};

    check(entries && order);
    if (n)
        memcpy(entries, parsed->entries, n * sizeof(*entries));
    check(!safetensors_place(entries, n, parsed->metadata, parsed->n_metadata, order, NULL));
    check(!safetensors_format(entries, n, parsed->metadata, parsed->n_metadata, &out, NULL));
    check(!safetensors_parse(out.text + SAFETENSORS_LENGTH_BYTES,
                             out.length - SAFETENSORS_LENGTH_BYTES, data_bytes, &again, NULL));
    check(again.n_entries == n && again.n_metadata == parsed->n_metadata);
    for (uint32_t i = 0; i < n; i++) {
        check(strcmp(again.entries[i].name, parsed->entries[i].name) == 0);
        check(op_type_equal(&again.entries[i].type, &parsed->entries[i].type));
    }
    for (uint32_t i = 0; i < again.n_metadata; i++)
        check(strcmp(again.metadata[i].value, parsed->metadata[i].value) == 0);
    check_entries(&again, data_bytes);
    safetensors_fini(&again);
    str_fini(&out);
    free(entries);
    free(order);
}

/* The last number of a header, which is where its elements end if it names the last tensor last;
 * so headers are accepted whose elements are not there. */
static uint64_t last_number(const char *header, size_t size)
{
    uint64_t end = 0;

    for (size_t i = 0; i < size; i++)
        if (header[i] >= '0' && header[i] <= '9')
            end = (i && header[i - 1] >= '0' && header[i - 1] <= '9' ? end * 10 : 0) +
                  (uint64_t)(header[i] - '0');
    return end;
}

static void check_header(const uint8_t *data, size_t size)
{
    char *header =
        malloc(size ? size : 1); /* of the exact size, so that a sanitizer sees its end */
    struct safetensors parsed;
    uint64_t data_bytes;

    check(header != NULL);
    if (size)
        memcpy(header, data, size);
    data_bytes = last_number(header, size);
    if (safetensors_parse(header, size, data_bytes, &parsed, NULL) == FRIT_OK) {
        check_entries(&parsed, data_bytes);
        check_again(&parsed, data_bytes);
    }
    safetensors_fini(&parsed);
    free(header);
}

static void read_entry(const struct safetensors_file *file, const struct safetensors_entry *entry)
{
    const uint64_t n_bytes = entry->end - entry->begin;
    void *copy = malloc(n_bytes + 1);

    check(copy != NULL);
    memcpy(copy, file->data + entry->begin, n_bytes);
    free(copy);
}

static void check_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("safetensors", 0);
    struct safetensors_file file;
    char path[64];

    check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (safetensors_open_file(path, &file, NULL) == FRIT_OK)
        for (uint32_t i = 0; i < file.parsed.n_entries; i++)
            read_entry(&file, &file.parsed.entries[i]);
    safetensors_close_file(&file);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_file(data, size);
    check_header(data, size);
    if (size > SAFETENSORS_LENGTH_BYTES)
        check_header(data + SAFETENSORS_LENGTH_BYTES, size - SAFETENSORS_LENGTH_BYTES);
    return 0;
}
