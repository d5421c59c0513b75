/* SPDX-License-Identifier: Apache-2.0 */
#include "load/probe_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/reason.h"

/* Whether the line begins with the word, which `*at` then stands after. */
static bool take_word(const char **at, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(*at, word, n) != 0 || ((*at)[n] != ' ' && (*at)[n] != '\0'))
        return false;
    *at += n + ((*at)[n] == ' ');
    return true;
}

static bool take_number(const char **at, uint32_t limit, uint32_t *out)
{
    char *end;
    unsigned long number;

    if (**at < '0' || **at > '9')
        return false;
    number = strtoul(*at, &end, 10);
    if (number > limit || (*end != ' ' && *end != '\0'))
        return false;
    *at = end + (*end == ' ');
    *out = (uint32_t)number;
    return true;
}

/* What a plugin wrote must not reach a terminal as control characters. */
static void copy_printable(char *into, size_t size, const char *text)
{
    size_t i = 0;

    for (; text[i] && i + 1 < size; i++)
        into[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
    into[i] = '\0';
}

static void take_place(struct probe_report *report, const char *rest)
{
    uint32_t file;

    if (!take_number(&rest, PROBE_FILES - 1, &file) || !*rest || strchr(rest, ' '))
        return;
    report->file = file;
    report->has_place = true;
    copy_printable(report->slot, sizeof(report->slot), rest);
}

static void take_change(struct probe_report *report, const char *rest)
{
    size_t used = strlen(report->changes);
    char words[PROBE_LINE];
    uint32_t file;

    if (!take_number(&rest, PROBE_FILES - 1, &file) || !*rest)
        return;
    copy_printable(words, sizeof(words), rest);
    snprintf(report->changes + used, sizeof(report->changes) - used, "%s%s",
             report->n_changes++ ? ", " : "", words);
}

/* REASON WORDS...; the first is kept. */
static void take_reason(struct probe_report *report, const char *rest)
{
    const size_t length = strcspn(rest, " ");
    char name[32];

    if (report->reason || length >= sizeof(name))
        return;
    memcpy(name, rest, length);
    name[length] = '\0';
    report->reason = reason_of_name(name);
    copy_printable(report->words, sizeof(report->words), rest + length + (rest[length] == ' '));
}

static void take_devices(struct probe_report *report, const char *rest)
{
    uint32_t file, count;

    if (!take_number(&rest, PROBE_FILES - 1, &file) || !take_number(&rest, 1 << 16, &count))
        return;
    report->n_devices += count;
    take_reason(report, rest);
}

static void take_refusal(struct probe_report *report, const char *rest)
{
    uint32_t file;

    if (take_number(&rest, PROBE_FILES - 1, &file))
        take_reason(report, rest);
}

static void take_crash(struct probe_report *report, const char *rest)
{
    uint32_t signal;

    if (report->signal || !take_number(&rest, 64, &signal) || !signal)
        return;
    report->signal = (int)signal;
    copy_printable(report->crash, sizeof(report->crash), rest);
}

void probe_report_take(struct probe_report *report, const char *line)
{
    if (take_word(&line, "frit-probe"))
        (void)take_number(&line, UINT16_MAX, &report->version);
    else if (!report->version || (report->done && strncmp(line, "crash ", 6) != 0))
        return;
    else if (take_word(&line, "at"))
        take_place(report, line);
    else if (take_word(&line, "changed"))
        take_change(report, line);
    else if (take_word(&line, "devices"))
        take_devices(report, line);
    else if (take_word(&line, "refused"))
        take_refusal(report, line);
    else if (take_word(&line, "crash"))
        take_crash(report, line);
    else if (take_word(&line, "done") && strcmp(line, report->token) == 0)
        report->done = true;
}
