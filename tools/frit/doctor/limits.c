/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/limits.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/problems.h"
#include "term.h"

/* With less than `floor` a program is short soon: of memory for tensors, of threads, of descriptors
 * for plugins and kept files.  0: nothing depends on it. */
static const struct row {
    const char *name;
    int resource;
    bool is_count; /* else bytes */
    uint64_t floor;
    const char *advice;
} rows[LIMITS] = {
    {"address space", RLIMIT_AS, false, UINT64_C(1) << 30, "raise it: `ulimit -v`"},
    {"data", RLIMIT_DATA, false, UINT64_C(256) << 20, "raise it: `ulimit -d`"},
    {"stack", RLIMIT_STACK, false, UINT64_C(128) << 10, "raise it: `ulimit -s`"},
    {"locked memory", RLIMIT_MEMLOCK, false, 0, ""},
    {"size of files", RLIMIT_FSIZE, false, UINT64_C(16) << 20, "raise it: `ulimit -f`"},
    {"core files", RLIMIT_CORE, false, 0, ""},
    {"open files", RLIMIT_NOFILE, true, 64, "raise it: `ulimit -n`"},
    {"processes", RLIMIT_NPROC, true, 32, "raise it: `ulimit -u`"},
    {"seconds", RLIMIT_CPU, true, 60, "raise it: `ulimit -t`"},
};

static void read_limit(const struct row *row, struct limit *out)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    char bytes[16];

    (void)getrlimit((__rlimit_resource_t)row->resource, &limit);
    out->name = row->name;
    out->value = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
    if (out->value == UINT64_MAX)
        snprintf(out->text, sizeof(out->text), "unlimited");
    else if (row->is_count)
        snprintf(out->text, sizeof(out->text), "%" PRIu64, out->value);
    else
        snprintf(out->text, sizeof(out->text), "%s", term_bytes(out->value, bytes));
}

/* The first line of a file of the system; "" if there is none. */
static void read_line(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");

    if (!file || !fgets(text, (int)size, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* The word in brackets is the one that holds. */
static void read_huge_pages(char *out, size_t size)
{
    char line[96], *from, *to;

    read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line));
    from = strchr(line, '[');
    to = from ? strchr(from, ']') : NULL;
    if (to)
        *to = '\0';
    snprintf(out, size, "%s", to ? from + 1 : "");
}

static uint64_t read_group_memory(void)
{
    char line[32], *end;
    uint64_t bytes;

    read_line("/sys/fs/cgroup/memory.max", line, sizeof(line));
    bytes = strtoull(line, &end, 10);
    return end == line ? UINT64_MAX : bytes;
}

void limits_read(struct limits *out)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE),
               processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct utsname system = {0};
    cpu_set_t set;

    *out = (struct limits){0};
    for (size_t i = 0; i < LIMITS; i++)
        read_limit(&rows[i], &out->at[i]);
    out->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    out->group_memory = read_group_memory();
    out->n_processors = processors > 0 ? (uint32_t)processors : 0;
    out->n_usable =
        sched_getaffinity(0, sizeof(set), &set) ? out->n_processors : (uint32_t)CPU_COUNT(&set);
    read_huge_pages(out->huge_pages, sizeof(out->huge_pages));
    (void)uname(&system);
    snprintf(out->system, sizeof(out->system), "%.40s %.60s %.40s", system.sysname, system.release,
             system.machine);
}

void limits_check(const struct limits *limits, struct problems *problems)
{
    for (size_t i = 0; i < LIMITS; i++)
        if (limits->at[i].value < rows[i].floor)
            problems_add(problems, rows[i].advice, "the limit of this process on %s is %s",
                         limits->at[i].name, limits->at[i].text);
    if (strcmp(limits->huge_pages, "never") == 0)
        problems_add(problems,
                     "as root: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`",
                     "transparent huge pages are off: large tensors in host memory are slower");
}
