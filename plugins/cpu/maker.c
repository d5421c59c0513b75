/* SPDX-License-Identifier: Apache-2.0 */
#include "maker.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit/llvm/llvm.h"

/* False: there is no such file. */
static bool describe(const char *path, char text[MAKER_TEXT])
{
    const char *slash = strrchr(path, '/');
    struct stat info;

    if (stat(path, &info))
        return false;
    snprintf(text, MAKER_TEXT, "%.64s %lld %lld.%09ld", slash ? slash + 1 : path,
             (long long)info.st_size, (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return true;
}

void maker_of(const struct llvm *llvm, const char *option, struct maker *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->option, sizeof out->option, "%s", option);
    if (!llvm_file(llvm, out->path, sizeof out->path) || !describe(out->path, out->text))
        out->text[0] = '\0';
}

bool maker_is_current(const struct maker *kept, const char *option)
{
    char now[MAKER_TEXT];

    if (strcmp(kept->option, option) != 0 &&
        (option[0] != '/' || access(option, F_OK) == 0)) /* it leads to another */
        return false;
    return !describe(kept->path, now) || strcmp(now, kept->text) == 0;
}
