/* SPDX-License-Identifier: Apache-2.0 */
/* The options: their schema, and what they say. */
#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>
#include <frit/plugin.h>

#include "null.h"

const frit_option null_options[NULL_N_OPTIONS] = {
#define NULL_OPTION(word, TYPE, standard, low, high, words, text) \
    {.struct_size = sizeof(frit_option),                          \
     .type = FRIT_OPTION_##TYPE,                                  \
     .name = FRIT_STR_INIT(#word),                                \
     .default_value = FRIT_STR_INIT(standard),                    \
     .meaning = FRIT_STR_INIT(text),                              \
     .min = (low),                                                \
     .max = (high),                                               \
     .choices = FRIT_STR_INIT(words)},
#include "options.def"
};

/* ---- planted faults ---- */

static bool status_find(const char *name, frit_status *out)
{
    static const struct {
        const char *name;
        frit_status status;
    } names[] = {
#define FRIT_STATUS(value, NAME, name, meaning) {name, value},
#include <frit/status.def>
    };

    if (name[0] >= '1' && name[0] <= '9') {
        *out = (frit_status)strtol(name, NULL, 10);
        return true;
    }
    for (size_t i = 1; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].status;
            return true;
        }
    return false;
}

/* "N[:STATUS]"; `text` is written into. */
static bool fault_parse(char *text, struct fault *out)
{
    char *colon = strchr(text, ':'), *end;

    out->status = FRIT_INTERNAL;
    if (colon) {
        *colon = 0;
        if (!status_find(colon + 1, &out->status))
            return false;
    }
    out->nth = strtoull(text, &end, 10);
    return out->nth > 0 && !*end && text[0] >= '0' && text[0] <= '9';
}

/* "NAME:N[:STATUS]" */
static bool call_parse(char *text, struct fault *out)
{
    char *colon = strchr(text, ':');

    if (!colon)
        return false;
    out->call = null_counter_find((frit_str){text, (uint64_t)(colon - text)});
    return out->call < NULL_N_CALLS && fault_parse(colon + 1, out);
}

bool null_listed(frit_str list, const char *name, frit_str *suffix)
{
    uint64_t n = strlen(name), end;

    for (uint64_t at = 0; at < list.len; at = end + 1) {
        for (end = at; end < list.len && list.ptr[end] != ' ';)
            end++;
        if (end - at < n || memcmp(list.ptr + at, name, n) != 0)
            continue;
        if (suffix)
            *suffix = (frit_str){list.ptr + at + n, 0};
        if (at + n == end)
            return true;
        if (suffix && list.ptr[at + n] == ':') {
            *suffix = (frit_str){list.ptr + at + n + 1, end - at - n - 1};
            return true;
        }
    }
    return false;
}

frit_status null_op_fault(const struct instance *instance, const frit_op_desc *op)
{
    frit_status status = FRIT_INTERNAL;
    char name[32] = "";
    frit_str suffix;

    if (!null_listed(instance->options.fail_ops, frit_op_info_at(op->id)->name, &suffix))
        return FRIT_OK;
    if (suffix.len > 0 && suffix.len < sizeof name) {
        memcpy(name, suffix.ptr, suffix.len);
        status_find(name, &status);
    }
    return status;
}

/* ---- reading ---- */

/* The host's options; `status` has the first failure, after which every value is 0. */
struct reader {
    const struct instance *instance;
    const frit_host_options *table;
    frit_err *err;
    frit_status status;
};

static int64_t read_i64(struct reader *r, frit_str key)
{
    int64_t value = 0;

    if (!r->status)
        r->status = r->table->get_i64(r->instance->host->self, key, &value, r->err);
    return value;
}

static bool read_bool(struct reader *r, frit_str key)
{
    uint32_t value = 0;

    if (!r->status)
        r->status = r->table->get_bool(r->instance->host->self, key, &value, r->err);
    return value != 0;
}

static frit_str read_str(struct reader *r, frit_str key)
{
    frit_str value = {NULL, 0};

    if (!r->status)
        r->status = r->table->get_str(r->instance->host->self, key, &value, r->err);
    return value;
}

static bool str_is(frit_str str, const char *text)
{
    return str.len == strlen(text) && memcmp(str.ptr, text, str.len) == 0;
}

static void read_fault(struct reader *r, frit_str key, bool (*parse)(char *, struct fault *),
                       struct fault *out)
{
    frit_str value = read_str(r, key);
    char text[96];

    if (value.len == 0)
        return;
    if (value.len < sizeof text) {
        memcpy(text, value.ptr, value.len);
        text[value.len] = 0;
        if (parse(text, out))
            return;
    }
    r->status = null_fail(r->instance, r->err, FRIT_INVALID,
                          "option.%.*s = %.*s is not a fault that can be planted; see the README",
                          (int)key.len, key.ptr, (int)value.len, value.ptr);
}

frit_status options_read(struct instance *instance, frit_err *err)
{
    const frit_host_root *host = instance->host;
    struct reader r = {.instance = instance,
                       .table = host->get_interface(host->self, FRIT_STR(FRIT_HOST_OPTIONS)),
                       .err = err};
    struct options *o = &instance->options;
    frit_str memory, clock;

    memory = read_str(&r, FRIT_STR("memory"));
    o->has_memory = !str_is(memory, "none");
    clock = read_str(&r, FRIT_STR("clock"));
    o->clock = str_is(clock, "none")        ? CLOCK_NONE
               : str_is(clock, "backwards") ? CLOCK_BACKWARDS
                                            : CLOCK_STEADY;
    o->pinned = read_bool(&r, FRIT_STR("pinned"));
    o->opaque = read_bool(&r, FRIT_STR("opaque"));
    o->is_mapped = str_is(memory, "host") && !o->opaque;
    o->no_suballoc = read_bool(&r, FRIT_STR("no_suballoc"));
    o->static_shapes = read_bool(&r, FRIT_STR("static_shapes"));
    o->inline_queue = read_bool(&r, FRIT_STR("inline"));
    o->permute = read_bool(&r, FRIT_STR("permute"));
    o->check = read_bool(&r, FRIT_STR("check"));
    o->seed = (uint64_t)read_i64(&r, FRIT_STR("seed"));
    o->latency_ns = (uint64_t)read_i64(&r, FRIT_STR("latency"));
    o->transfer_ns = (uint64_t)read_i64(&r, FRIT_STR("transfer_latency"));
    o->hold = (uint64_t)read_i64(&r, FRIT_STR("hold"));
    o->heap = (uint64_t)read_i64(&r, FRIT_STR("heap"));
    o->compile_ms = read_i64(&r, FRIT_STR("compile_ms"));
    o->gate = read_bool(&r, FRIT_STR("compile_gate"));
    o->compiles = o->gate || o->compile_ms >= 0;
    o->max_fused_ops = (uint32_t)read_i64(&r, FRIT_STR("max_fused_ops"));
    o->n_fusers = (uint32_t)read_i64(&r, FRIT_STR("fusers"));
    o->derive = read_bool(&r, FRIT_STR("derive"));
    o->refuse = read_str(&r, FRIT_STR("refuse"));
    o->fail_ops = read_str(&r, FRIT_STR("fail_ops"));
    read_fault(&r, FRIT_STR("fail_call"), call_parse, &o->call);
    read_fault(&r, FRIT_STR("fail_launch"), fault_parse, &o->launch);
    read_fault(&r, FRIT_STR("fail_copy"), fault_parse, &o->copy);
    return r.status;
}
