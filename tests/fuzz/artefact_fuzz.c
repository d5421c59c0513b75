/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the file of an artefact.  The first byte says how: 0 as they are; 1 with magic,
 * lengths and digest put right, so that they are what was kept; 2 likewise, but for a word of the
 * head, which the next five bytes give.  What is found is what the file has after its name, and
 * after any file a new artefact is kept and found. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "load/artefact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AS_FILE, AS_KEPT, AS_FORGED };
enum { MAX_BYTES = 1 << 20, LIMIT = 1 << 24 };

#define check(condition) ((condition) ? (void)0 : abort())

/* As host/load/artefact.c has it. */
struct head {
    char magic[8];
    uint64_t n_name, n_bytes;
    uint64_t digest[2];
};

static char folder[32], path[320];
static const struct artefact_name name = {"space", {"sub", 3}, "key", 3};
static unsigned char joined[64]; /* the name in the file */
static size_t n_joined;

/* Finds out what the file is called, and how the name stands in it, by keeping one byte. */
static void learn(void)
{
    struct head head;
    struct dirent *entry;
    DIR *dir;
    FILE *file;

    snprintf(folder, sizeof(folder), "%s/frit-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm"); /* faster */
    check(mkdtemp(folder) != NULL);
    check(artefact_put(folder, LIMIT, &name, "x", 1, NULL) == FRIT_OK);
    dir = opendir(folder);
    check(dir != NULL);
    while ((entry = readdir(dir)) && entry->d_name[0] == '.')
        continue;
    check(entry != NULL);
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    closedir(dir);
    file = fopen(path, "rb");
    check(file && fread(&head, sizeof(head), 1, file) == 1 && head.n_name <= sizeof(joined));
    n_joined = (size_t)head.n_name;
    check(fread(joined, 1, n_joined, file) == n_joined);
    fclose(file);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void seal(struct head *head, const void *bytes, size_t n_bytes)
{
    XXH128_hash_t first = XXH3_128bits(joined, n_joined);
    XXH128_hash_t all = XXH3_128bits_withSeed(bytes, n_bytes, first.low64 ^ first.high64);

    *head = (struct head){.n_name = n_joined, .n_bytes = n_bytes};
    memcpy(head->magic, "FritArt1", sizeof(head->magic));
    head->digest[0] = all.low64;
    head->digest[1] = all.high64;
}

/* Returns whether the bytes must be found. */
static bool write_file(const uint8_t *data, size_t size)
{
    const uint8_t how = data[0] % 3;
    FILE *file = fopen(path, "wb");
    struct head head;
    uint32_t word, old;

    check(file != NULL);
    data++;
    size--;
    if (how == AS_FILE) {
        check(fwrite(data, 1, size, file) == size);
        fclose(file);
        return false;
    }
    old = word = 0;
    if (how == AS_FORGED && size >= 5) {
        size_t at = data[0] % (sizeof(head) / sizeof(word)) * sizeof(word);

        seal(&head, data + 5, size - 5);
        memcpy(&old, (char *)&head + at, sizeof(old));
        memcpy(&word, data + 1, sizeof(word));
        memcpy((char *)&head + at, &word, sizeof(word));
        data += 5;
        size -= 5;
    } else {
        seal(&head, data, size);
    }
    check(fwrite(&head, sizeof(head), 1, file) == 1);
    check(fwrite(joined, 1, n_joined, file) == n_joined && fwrite(data, 1, size, file) == size);
    fclose(file);
    return word == old;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t n_found;
    void *found;
    bool must;

    if (!size || size > MAX_BYTES)
        return 0;
    if (!path[0]) {
        learn();
        atexit(remove_folder);
    }
    unlink(path);
    must = write_file(data, size);
    chmod(path, 0600);
    check(artefact_get(folder, &name, &found, &n_found, NULL) == FRIT_OK);
    check(found || !must);
    if (found) {
        const size_t before = data[0] % 3 == AS_KEPT     ? 1
                              : data[0] % 3 == AS_FORGED ? (size >= 6 ? 6 : 1)
                                                         : 1 + sizeof(struct head) + n_joined;

        check(n_found == size - before && memcmp(found, data + before, (size_t)n_found) == 0);
    }
    free(found);
    check(artefact_put(folder, LIMIT, &name, data, size, NULL) == FRIT_OK);
    check(artefact_get(folder, &name, &found, &n_found, NULL) == FRIT_OK);
    check(found && n_found == size && memcmp(found, data, size) == 0);
    free(found);
    return 0;
}
