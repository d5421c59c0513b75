/* SPDX-License-Identifier: Apache-2.0 */
/* The options: a row each.  Whole numbers and booleans are read by their rows. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"

#define NUMBERS(ROW)                                                                           \
    ROW(cost_ns, "100000", 0, "a launch of the first candidate takes so many nanoseconds")     \
    ROW(mib_ns, "0", 0, "and so many for each MiB; a quarter of them in cache_bytes")          \
    ROW(fast_calls, "1", 0, "so many launches of fast_once, per program, are fast")            \
    ROW(sleep_ms, "60000", 0, "a launch of sleeps takes so many milliseconds")                 \
    ROW(refuse_after, "1", 0, "prepare accepts refuses_later so often, per device driver")     \
    ROW(refuse_size, "0", 0, "extent of dim 0 of the first operand that refuses_size refuses") \
    ROW(split, "4096", 0, "elements up to which `small` is fast, and from which `large` is")   \
    ROW(workspace_bytes, "1073741824", 0, "workspace that big_workspace requires")             \
    ROW(memory_bytes, "268435456", 0, "memory of a device; 0: no cap")                         \
    ROW(cache_bytes, "0", 0, "of the last level of cache, as the device reports it")           \
    ROW(version, "1", 1, "of all candidates")                                                  \
    ROW(devices, "1", 0, "how many there are")                                                 \
    ROW(fuses, "0", 0, "ops of add and mul, at most 8, that are fused into one program")       \
    ROW(add_refuses, "0", 0, "elements from which add by itself is refused; 0: never")

#define SWITCHES(ROW)                                                                         \
    ROW(host_pointers, "yes", "whether memory has host pointers")                             \
    ROW(compiles, "no", "whether each candidate has to be compiled before it runs")           \
    ROW(captures, "no",                                                                       \
        "whether submits can be recorded; then the queue is none that runs inside of submit") \
    ROW(means, "no", "whether there are programs of mean")

#define NUMBER_OPTION(field, value, least, text) \
    {.struct_size = sizeof(frit_option),         \
     .type = FRIT_OPTION_I64,                    \
     .name = FRIT_STR_INIT(#field),              \
     .default_value = FRIT_STR_INIT(value),      \
     .meaning = FRIT_STR_INIT(text),             \
     .min = least,                               \
     .max = INT64_MAX},
#define SWITCH_OPTION(field, value, text)   \
    {.struct_size = sizeof(frit_option),    \
     .type = FRIT_OPTION_BOOL,              \
     .name = FRIT_STR_INIT(#field),         \
     .default_value = FRIT_STR_INIT(value), \
     .meaning = FRIT_STR_INIT(text)},

const frit_option options_list[N_OPTIONS] = {
    NUMBERS(NUMBER_OPTION) SWITCHES(SWITCH_OPTION){
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("candidates"),
        .meaning = FRIT_STR_INIT("those after the first, in this order: NAME or NAME:PERCENT"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("clock"),
        .default_value = FRIT_STR_INIT("real"),
        .meaning = FRIT_STR_INIT("what timestamps count"),
        .choices = FRIT_STR_INIT("real simulated none"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("fingerprint"),
        .default_value = FRIT_STR_INIT("candidates-1"),
        .meaning = FRIT_STR_INIT("of the devices"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("log"),
        .meaning = FRIT_STR_INIT("a file that gets a line for each launch"),
    },
};

/* ---- the list of candidates ---- */

static bool is_between(char c)
{
    return c == ',' || c == ' ';
}

/* Cuts the next NAME or NAME:PERCENT off the list; an empty word: there is none. */
static frit_str next_word(frit_str *list)
{
    frit_str word;

    while (list->len && is_between(*list->ptr)) {
        list->ptr++;
        list->len--;
    }
    word = (frit_str){list->ptr, 0};
    while (word.len < list->len && !is_between(word.ptr[word.len]))
        word.len++;
    list->ptr += word.len;
    list->len -= word.len;
    return word;
}

/* Cuts :PERCENT off the word; -1: it has none, or no number there. */
static int64_t cut_percent(frit_str *word)
{
    const char *colon = memchr(word->ptr, ':', word->len);
    char digits[16] = "", *end;
    uint64_t n;
    int64_t percent;

    if (!colon)
        return -1;
    n = word->len - (uint64_t)(colon + 1 - word->ptr);
    if (n == 0 || n >= sizeof digits)
        return -1;
    memcpy(digits, colon + 1, n);
    percent = strtoll(digits, &end, 10);
    if (*end || percent < 0)
        return -1;
    word->len = (uint64_t)(colon - word->ptr);
    return percent;
}

static bool is_offered(const struct instance *instance, uint32_t kind)
{
    for (uint32_t i = 0; i < instance->n_offers; i++)
        if (instance->offers[i].kind == kind)
            return true;
    return false;
}

static frit_status read_offers(struct instance *instance, frit_str list, frit_err *err)
{
    instance->offers[0] = (struct offer){KIND_first, kinds[KIND_first].percent};
    instance->n_offers = 1;
    for (frit_str word = next_word(&list); word.len; word = next_word(&list)) {
        int64_t percent = cut_percent(&word);
        uint32_t kind = kind_find(word);

        if (kind == N_KINDS || is_offered(instance, kind))
            return plug_fail(&instance->plug, err, FRIT_INVALID,
                             "option.candidates: '%.*s' is unknown, or there already",
                             (int)word.len, word.ptr);
        instance->offers[instance->n_offers++] =
            (struct offer){(enum kind)kind, percent < 0 ? kinds[kind].percent : percent};
    }
    return FRIT_OK;
}

/* ---- reading ---- */

static frit_status open_log(struct instance *instance, frit_err *err)
{
    frit_str name = instance->options.log;
    char path[4096];

    instance->log = -1;
    if (!name.len)
        return FRIT_OK;
    if (name.len >= sizeof path)
        return plug_fail(&instance->plug, err, FRIT_INVALID, "option.log is too long");
    memcpy(path, name.ptr, name.len);
    path[name.len] = '\0';
    instance->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (instance->log < 0)
        return plug_fail(&instance->plug, err, FRIT_IO, "option.log: cannot write '%s'", path);
    return FRIT_OK;
}

frit_status options_read(void *self, const frit_host_options *table, frit_err *err)
{
    struct instance *instance = self;
    struct options *options = &instance->options;
    void *host = instance->plug.host->self;
    frit_str list, clock;
    frit_status status;
    uint32_t yes;

#define READ_NUMBER(field, value, least, text)                             \
    status = table->get_i64(host, FRIT_STR(#field), &options->field, err); \
    if (status)                                                            \
        return status;
#define READ_SWITCH(field, value, text)                          \
    status = table->get_bool(host, FRIT_STR(#field), &yes, err); \
    if (status)                                                  \
        return status;                                           \
    options->field = yes;
    NUMBERS(READ_NUMBER)
    SWITCHES(READ_SWITCH)
    status = table->get_str(host, FRIT_STR("candidates"), &list, err);
    if (!status)
        status = table->get_str(host, FRIT_STR("clock"), &clock, err);
    if (!status)
        status = table->get_str(host, FRIT_STR("fingerprint"), &options->fingerprint, err);
    if (!status)
        status = table->get_str(host, FRIT_STR("log"), &options->log, err);
    if (status)
        return status;
    options->clock = plug_is(clock, FRIT_STR("real"))        ? CLOCK_REAL
                     : plug_is(clock, FRIT_STR("simulated")) ? CLOCK_SIMULATED
                                                             : CLOCK_NONE;
    instance->heap = hosted_heap((uint64_t)options->memory_bytes);
    status = read_offers(instance, list, err);
    return status ? status : open_log(instance, err);
}
