/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: parameters are dealt to buckets, and the text that ranks compare. */
#include "dist/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "graph/dtype.h"

enum { LINE = 512 };

static const uint64_t default_bucket_bytes = 25u << 20;
static const uint64_t default_first_bytes = 1u << 20;

/* ---- dealing parameters to buckets ---- */

static uint64_t bytes_of(uint32_t dtype, uint64_t elements)
{
    return frit_storage_bytes(dtype, (int64_t)elements);
}

uint64_t schedule_bytes(const struct schedule_bucket *bucket)
{
    return bytes_of(bucket->dtype, bucket->elements);
}

/* The newest bucket of the element type, NULL: there is none. */
static struct schedule_bucket *newest(struct schedule *s, uint32_t dtype)
{
    for (uint32_t b = s->n_buckets; b-- > 0;) {
        if (s->buckets[b].dtype == dtype)
            return &s->buckets[b];
    }
    return NULL;
}

static bool is_first(const struct schedule *s, const struct schedule_bucket *bucket)
{
    const struct schedule_bucket *at = s->buckets;

    while (at->dtype != bucket->dtype)
        at++;
    return at == bucket;
}

static bool has_room(const struct schedule *s, const struct schedule_bucket *bucket, uint64_t n)
{
    return bytes_of(bucket->dtype, bucket->elements + n) <=
           (is_first(s, bucket) ? s->config.first_bucket_bytes : s->config.bucket_bytes);
}

/* Adds to the newest bucket of the parameter's type, or to a new one.  A bucket's list has room for
 * all parameters that are left, and the next bucket's list begins after it. */
static void deal(struct schedule *s, uint32_t number)
{
    struct schedule_param *param = &s->params[number];
    const uint64_t elements = (uint64_t)op_elements(&param->type);
    struct schedule_bucket *bucket = newest(s, param->type.dtype);

    if (!bucket || (bucket->elements && !has_room(s, bucket, elements))) {
        bucket = &s->buckets[s->n_buckets++];
        bucket->dtype = param->type.dtype;
    }
    param->bucket = (uint32_t)(bucket - s->buckets);
    param->at = bucket->elements;
    bucket->elements += elements;
    bucket->n++;
}

static int by_last_param(const void *a, const void *b)
{
    const struct schedule_bucket *const *x = a, *const *y = b;
    const uint32_t at_x = (*x)->params[(*x)->n - 1], at_y = (*y)->params[(*y)->n - 1];

    return (at_x < at_y) - (at_x > at_y);
}

/* Writes the buckets' lists, and puts the buckets into their order. */
static frit_status order_buckets(struct schedule *s, frit_err *err)
{
    const size_t n = s->n_buckets;
    uint32_t *lists = arena_array(&s->arena, s->n_params, sizeof(*lists));
    struct schedule_bucket **order = arena_array(&s->arena, n, sizeof(struct schedule_bucket *));
    struct schedule_bucket *sorted = arena_array(&s->arena, n, sizeof(*sorted));

    if (!lists || !order || !sorted)
        return fail_memory(err, n * sizeof(*sorted));
    for (uint32_t b = 0; b < n; b++) {
        order[b] = &s->buckets[b];
        s->buckets[b].params = lists;
        lists += s->buckets[b].n;
        s->buckets[b].n = 0;
    }
    for (uint32_t i = s->n_params; i-- > 0;) {
        struct schedule_bucket *bucket = &s->buckets[s->params[i].bucket];

        bucket->params[bucket->n++] = i;
    }
    qsort(order, n, sizeof(struct schedule_bucket *), by_last_param);
    for (uint32_t b = 0; b < n; b++) {
        sorted[b] = *order[b];
        for (uint32_t k = 0; k < sorted[b].n; k++)
            s->params[sorted[b].params[k]].bucket = b;
    }
    s->buckets = sorted;
    return FRIT_OK;
}

/* ---- texts ---- */

static const char *bytes_text(uint64_t bytes, char *text, size_t size)
{
    if (bytes >= 1u << 20)
        snprintf(text, size, "%.1f MiB", (double)bytes / (1u << 20));
    else if (bytes >= 1u << 10)
        snprintf(text, size, "%.1f KiB", (double)bytes / (1u << 10));
    else
        snprintf(text, size, "%" PRIu64 " bytes", bytes);
    return text;
}

static const char *param_text(const struct schedule_param *param, char *text, size_t size)
{
    char type[128];

    snprintf(text, size, "%s%s%s", param->is_named ? param->name : "", param->is_named ? " " : "",
             op_type_text(&param->type, type, sizeof(type)));
    return text;
}

const char *schedule_line(const struct schedule *schedule, uint32_t line, char *text, size_t size)
{
    const frit_replica_config *c = &schedule->config;

    if (line)
        (void)param_text(&schedule->params[line - 1], text, size);
    else
        snprintf(text, size, "%s%s%s%s, buckets of %" PRIu64 " bytes, the first of %" PRIu64,
                 c->flags & FRIT_REPLICA_SUM ? "sum" : "mean",
                 c->flags & FRIT_REPLICA_UNEVEN ? ", uneven" : "",
                 c->flags & FRIT_REPLICA_ALL_USED ? ", all used" : "",
                 c->flags & FRIT_REPLICA_KEEP ? ", keep" : "", c->bucket_bytes,
                 c->first_bucket_bytes);
    return text;
}

const char *schedule_bucket_span(const struct schedule *schedule, uint32_t number, char *text,
                                 size_t size)
{
    const struct schedule_bucket *bucket = &schedule->buckets[number];
    char bytes[32];

    snprintf(text, size, "%s %s, %s to %s",
             bytes_text(schedule_bytes(bucket), bytes, sizeof(bytes)), dtype_name(bucket->dtype),
             schedule->params[bucket->params[0]].name,
             schedule->params[bucket->params[bucket->n - 1]].name);
    return text;
}

const char *schedule_bucket_text(const struct schedule *schedule, uint32_t number, char *text,
                                 size_t size)
{
    char span[LINE];

    snprintf(text, size, "bucket %u of %u (%s)", number + 1, schedule->n_buckets,
             schedule_bucket_span(schedule, number, span, sizeof(span)));
    return text;
}

char *schedule_text(const struct schedule *schedule)
{
    struct str out = {0};
    char line[LINE];

    str_addf(&out, "%s, digest %016" PRIx64 "\n", schedule_line(schedule, 0, line, sizeof(line)),
             schedule->digest);
    for (uint32_t b = 0; b < schedule->n_buckets; b++) {
        const struct schedule_bucket *bucket = &schedule->buckets[b];

        str_addf(&out, "%s\n", schedule_bucket_text(schedule, b, line, sizeof(line)));
        for (uint32_t k = 0; k < bucket->n; k++) {
            const struct schedule_param *param = &schedule->params[bucket->params[k]];

            str_addf(&out, "  parameter %u %s at %" PRIu64 "\n", bucket->params[k],
                     param_text(param, line, sizeof(line)), param->at);
        }
    }
    if (!out.failed)
        return out.text;
    str_fini(&out);
    return NULL;
}

/* FNV-1a over all lines. */
static uint64_t digest_of(const struct schedule *s)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char text[LINE];

    for (uint32_t line = 0; line <= s->n_params; line++) {
        schedule_line(s, line, text, sizeof(text));
        for (const char *at = text; at == text || at[-1]; at++)
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    }
    return hash;
}

/* ---- making ---- */

static const char *name_of(struct schedule *s, const frit_replica_config *config, uint32_t i)
{
    char text[96];

    if (config->names && config->names[i])
        snprintf(text, sizeof(text), "'%.80s'", config->names[i]);
    else
        snprintf(text, sizeof(text), "%u", i);
    return arena_text(&s->arena, text, strlen(text));
}

frit_status schedule_init(struct schedule *schedule, const frit_replica_config *config,
                          const struct op_type *types, uint32_t n_params, frit_err *err)
{
    struct schedule *s = schedule;

    *s = (struct schedule){.config = *config, .n_params = n_params};
    s->config.names = NULL;
    if (!s->config.bucket_bytes)
        s->config.bucket_bytes = default_bucket_bytes;
    if (!s->config.first_bucket_bytes)
        s->config.first_bucket_bytes = default_first_bytes;
    s->params = arena_array(&s->arena, n_params, sizeof(*s->params));
    s->buckets = arena_array(&s->arena, n_params, sizeof(*s->buckets));
    if (!s->params || !s->buckets)
        return fail_memory(err, n_params * sizeof(*s->params));
    for (uint32_t i = 0; i < n_params; i++) {
        s->params[i].type = types[i];
        s->params[i].name = name_of(s, config, i);
        s->params[i].is_named = config->names && config->names[i];
        if (!s->params[i].name)
            return fail_memory(err, n_params * sizeof(*s->params));
    }
    for (uint32_t i = n_params; i-- > 0;)
        deal(s, i);
    TRY(order_buckets(s, err));
    s->digest = digest_of(s);
    return FRIT_OK;
}

void schedule_fini(struct schedule *schedule)
{
    arena_fini(&schedule->arena);
}
