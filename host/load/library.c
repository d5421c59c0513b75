/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's cache is read as glibc 2.2 and later write it: a header, entries, then texts at
 * offsets from the header. */
#include "load/library.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "conf/env.h"
#include "load/elf.h"

static const char cache_file[] = "/etc/ld.so.cache";
static const char cache_magic[] = "glibc-ld.so.cache1.1";
enum { CACHE_BYTES = 16 << 20 };

struct library_header {
    char magic[20];
    uint32_t n;
    uint32_t rest[6];
};

struct library_entry {
    int32_t flags;
    uint32_t name, path, system;
    uint64_t capabilities;
};

/* What the cache calls libraries of this machine. */
#if defined(__x86_64__)
enum { CACHE_FLAGS = 0x0303 };
#elif defined(__aarch64__)
enum { CACHE_FLAGS = 0x0a03 };
#else
enum { CACHE_FLAGS = 0 /* any */ };
#endif

static bool is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- folders ---- */

/* Appends a folder of a search path, $ORIGIN replaced by the folder of `file`. */
static void add_folder(struct str *out, const char *folder, size_t length, const char *file)
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    const char *slash = strrchr(file, '/');

    for (size_t i = 0; i < 2 && slash; i++) {
        size_t skip = strlen(origins[i]);

        if (length >= skip && memcmp(folder, origins[i], skip) == 0) {
            str_addf(out, "%.*s", (int)(slash - file), file);
            folder += skip;
            length -= skip;
            break;
        }
    }
    str_addf(out, "%.*s", (int)length, folder);
}

static bool find_in(const char *folders, const char *name, const char *file, char *path,
                    size_t size)
{
    bool found = false;

    while (folders && *folders && !found) {
        size_t length = strcspn(folders, ":;");
        struct str text = {0};

        if (length > 0) {
            add_folder(&text, folders, length, file);
            str_addf(&text, "/%s", name);
            found = text.text && strlen(text.text) < size && is_file(text.text);
        }
        if (found)
            memcpy(path, text.text, strlen(text.text) + 1);
        str_fini(&text);
        folders += length + (folders[length] != '\0');
    }
    return found;
}

/* ---- the loader's cache ---- */

static char *read_cache(size_t *bytes)
{
    struct stat info;
    int fd = open(cache_file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *text = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        info.st_size < CACHE_BYTES)
        text = malloc((size_t)info.st_size + 1);
    if (text && read(fd, text, (size_t)info.st_size) == info.st_size) {
        *bytes = (size_t)info.st_size;
        text[*bytes] = '\0';
    } else {
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

static bool find_entry(const char *cache, size_t bytes, const char *name, char *path, size_t size)
{
    struct library_header header;

    if (bytes < sizeof(header))
        return false;
    memcpy(&header, cache, sizeof(header));
    if (memcmp(header.magic, cache_magic, sizeof(header.magic)) != 0 ||
        header.n > (bytes - sizeof(header)) / sizeof(struct library_entry))
        return false;
    for (uint32_t i = 0; i < header.n; i++) {
        struct library_entry entry;

        memcpy(&entry, cache + sizeof(header) + i * sizeof(entry), sizeof(entry));
        if ((CACHE_FLAGS != 0 && entry.flags != CACHE_FLAGS) || entry.name >= bytes ||
            entry.path >= bytes || strcmp(cache + entry.name, name) != 0 ||
            strlen(cache + entry.path) >= size || !is_file(cache + entry.path))
            continue;
        memcpy(path, cache + entry.path, strlen(cache + entry.path) + 1);
        return true;
    }
    return false;
}

static bool find_in_cache(const char *name, char *path, size_t size)
{
    size_t bytes = 0;
    char *cache = read_cache(&bytes);
    bool found = cache && find_entry(cache, bytes, name, path, size);

    free(cache);
    return found;
}

/* ---- all of them ---- */

bool library_find(const char *name, const char *runpath, const char *file, char *path, size_t size)
{
    static const char system_folders[] = "/lib64:/usr/lib64:/lib:/usr/lib";

    if (strchr(name, '/')) {
        snprintf(path, size, "%s", name);
        return is_file(name);
    }
    return find_in(runpath, name, file, path, size) ||
           find_in(env_get(env_of_process(), "LD_LIBRARY_PATH"), name, file, path, size) ||
           find_in_cache(name, path, size) || find_in(system_folders, name, file, path, size);
}

unsigned library_list_missing(const struct elf_facts *facts, const char *file, struct str *out)
{
    char path[PATH_MAX];
    unsigned n = 0;

    for (uint32_t i = 0; i < facts->n_needed; i++) {
        if (library_find(facts->needed[i], facts->runpath, file, path, sizeof(path)))
            continue;
        str_addf(out, "%s%s", n++ ? ", " : "", facts->needed[i]);
    }
    return n;
}
