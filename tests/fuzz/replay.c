/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every file of a folder through a fuzz target once: replay FOLDER.  Fails if there is none.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    uint8_t *data;
    size_t size;
    int rc = 1;

    if (!file || fstat(fileno(file), &info) != 0) {
        perror(path);
        if (file)
            fclose(file);
        return 1;
    }
    size = (size_t)info.st_size;
    data = malloc(size ? size : 1);
    if (data && fread(data, 1, size, file) == size)
        rc = LLVMFuzzerTestOneInput(data, size);
    else
        fprintf(stderr, "%s: cannot be read\n", path);
    free(data);
    fclose(file);
    return rc;
}

static int is_case(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int n, failed = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    n = scandir(argv[1], &entries, is_case, alphasort);
    if (n < 0)
        perror(argv[1]);
    for (int i = 0; i < n; i++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
        printf("%s\n", path);
        fflush(stdout); /* the last line names the file that crashed */
        failed += replay(path) != 0;
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return n > 0 && !failed ? 0 : 1;
}
