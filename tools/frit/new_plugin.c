/* SPDX-License-Identifier: Apache-2.0 */
/* `frit new-plugin`: copies the template driver that is installed with the command, replacing its
 * name. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "command.h"
#include "invocation.h"

/* The name in the template's files.  In a copy it becomes part of the plugin's id
 * "org.example.NAME", which the contract limits to 40 bytes. */
static const char placeholder[] = "template";
enum { MAX_NAME = 40 - (sizeof("org.example.") - 1), MAX_FILE = 1 << 20 };

/* ---- the name ---- */

static bool is_driver_name(const char *name)
{
    if (*name < 'a' || *name > 'z' || strlen(name) > MAX_NAME)
        return false;
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Words with another meaning where a device is named, and the template's own name. */
static bool is_reserved(const char *name)
{
    return strcmp(name, "auto") == 0 || strcmp(name, "none") == 0 || strcmp(name, placeholder) == 0;
}

/* ---- files ---- */

/* The prefix that the command is installed under; "" if unknown. */
static void prefix_of_command(char *out, size_t capacity)
{
    ssize_t length = readlink("/proc/self/exe", out, capacity - 1);

    out[length > 0 ? length : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(out, '/');

        if (slash)
            *slash = '\0';
    }
}

static bool read_file(const char *path, struct str *out)
{
    FILE *file = fopen(path, "r");
    char piece[4096];
    size_t n;

    if (!file)
        return false;
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0 && out->length < MAX_FILE)
        str_add(out, piece, n);
    n = ferror(file) || !feof(file) || out->failed;
    fclose(file);
    return !n;
}

/* Writes the text with the placeholder replaced by `name`. */
static bool write_named(const char *path, const char *text, const char *name)
{
    FILE *file = fopen(path, "wx");
    const char *next;
    bool written;

    if (!file)
        return false;
    for (; (next = strstr(text, placeholder)); text = next + sizeof(placeholder) - 1) {
        fwrite(text, 1, (size_t)(next - text), file);
        fputs(name, file);
    }
    fputs(text, file);
    written = !ferror(file);
    return fclose(file) == 0 && written;
}

static int copy_file(const struct invocation *in, const char *from, const char *to,
                     const char *name)
{
    struct str text = {0};
    int status = CLI_FINE;

    if (!read_file(from, &text))
        status = fail_command(in, "%s cannot be read: %s", from, strerror(errno));
    else if (!write_named(to, text.text ? text.text : "", name))
        status = fail_command(in, "%s cannot be written: %s", to, strerror(errno));
    str_fini(&text);
    return status;
}

/* Copies all files of the folder, which has no subfolders. */
static int copy_files(const struct invocation *in, const char *from, const char *to,
                      const char *name)
{
    DIR *dir = opendir(from);
    const struct dirent *entry;
    int status = CLI_FINE;

    if (!dir)
        return fail_command(in, "%s is missing: %s; is Frit installed completely?", from,
                            strerror(errno));
    if (mkdir(to, 0777))
        status =
            fail_command(in, errno == EEXIST ? "%s exists already" : "%s cannot be created: %s", to,
                         strerror(errno));
    while (status == CLI_FINE && (entry = readdir(dir))) {
        struct str source = {0}, target = {0};

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        str_addf(&source, "%s/%s", from, entry->d_name);
        str_addf(&target, "%s/%s", to, entry->d_name);
        status = source.failed || target.failed ? fail_command(in, "no memory")
                                                : copy_file(in, source.text, target.text, name);
        str_fini(&source);
        str_fini(&target);
    }
    closedir(dir);
    return status;
}

/* ---- the command ---- */

static void show_next(const char *prefix, const char *dir, const char *name)
{
    printf("%s: a driver with ten ops and a fuser.  Now:\n\n"
           "  cmake -S %s -B %s/build -DCMAKE_PREFIX_PATH=%s\n"
           "  cmake --build %s/build\n"
           "  frit conform %s/build/libfrit-%s.so --quick\n\n"
           "%s/README.md describes the next steps.\n",
           dir, dir, dir, prefix, dir, dir, name, dir);
}

static int run(const struct invocation *in)
{
    const char *name = in->args[0], *dir = in->n_args > 1 ? in->args[1] : name;
    char prefix[PATH_MAX], from[PATH_MAX + sizeof(CLI_DATA_DIR) + sizeof(placeholder) + 2];
    int status;

    if (!is_driver_name(name))
        return fail_usage(
            in,
            "'%s' is not a valid driver name: use a lower-case letter, then letters, digits "
            "and -, at most %d characters",
            name, MAX_NAME);
    if (is_reserved(name))
        return fail_usage(in, "the name '%s' is reserved; choose another", name);
    prefix_of_command(prefix, sizeof(prefix));
    snprintf(from, sizeof(from), "%s/" CLI_DATA_DIR "/%s", prefix, placeholder);
    status = copy_files(in, from, dir, name);
    if (status == CLI_FINE)
        show_next(prefix, dir, name);
    return status;
}

const struct command new_plugin_command = {
    .name = "new-plugin",
    .summary = "create a driver from a template",
    .args = "NAME [DIR]",
    .details =
        "Creates the folder DIR, by default NAME, with the source of a driver that builds and\n"
        "passes `frit conform`: ten ops, a fuser, and a README with the next steps.\n"
        "All other ops run as several of its ops or on another device.",
    .options = (const struct option[]){{0}},
    .examples = (const char *const[]){"new-plugin npu", "new-plugin npu ~/src/frit-npu", NULL},
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
