/* SPDX-License-Identifier: Apache-2.0 */
/* Launches are numbered from 1 on, and those in flight are kept in a ring in the order of their
 * numbers, so that a number finds its entry.  What they read is kept in a second ring, as writers:
 * a launch's number, or a transfer's point with TRANSFER set.  A launch reads only what stands
 * before it, so that one pass in order finds all that is made from a failed one. */
#include "device/lineage.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/short_lock.h"
#include "device/device.h"
#include "device/label.h"
#include "device/lineage_batch.h"
#include "device/wait.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "memory/point.h"
#include "tensor/failure.h"

#define TRANSFER ((uint64_t)1 << 63)
#define PENDING  UINT64_MAX /* the point of a launch that is not submitted yet */

enum {
    LABEL_BITS = 16,
    FIRST_ENTRIES = 64,  /* of a ring; doubled as needed */
    MAX_ENTRIES = 16384, /* launches in flight; older ones are dropped */
    MAX_READS = 65536,
    MANY_ENTRIES = 256, /* with so many in flight, query the driver after as many new ones */
    RECENT = 16         /* failures that are found by their timeline value */
};

_Static_assert(LABELS_MAX < 1 << LABEL_BITS, "a cookie has room for a label");

struct entry {
    uint64_t point; /* 0: not submitted after all */
    uint64_t batch; /* number of its first launch */
    uint64_t reads; /* the first, of all that ever were */
    atomic_bool *disabled;
    uint32_t n_reads;
    uint32_t stream;
    uint32_t label;
    bool bad;
};

struct reported {
    uint64_t from, to;
    bool named; /* the launch is known */
    struct failure *failure;
};

struct lineage {
    frit_device *device;
    struct short_lock lock;
    struct entry *entries; /* by number modulo capacity, a power of two */
    uint64_t *reads;       /* likewise by count */
    uint64_t first, next;  /* numbers: in flight are first..next - 1 */
    uint64_t first_read, next_read;
    uint64_t capacity, reads_capacity;
    struct points dropped_to; /* launches up to these values may be missing */
    bool dropped_pending;     /* and some that were not submitted yet */
    struct {
        struct lineage_place place;  /* failures up to there */
        atomic_uint_least64_t value; /* of the place, read without the lock */
    } known[QUEUES_MAX];             /* by queue */
    struct reported recent[RECENT];
    uint32_t n_reported;     /* ever */
    struct failure *current; /* of what the launch being entered reads, a reference; NULL: none */
    bool entering;           /* it has an entry */
    uint64_t queried_at;     /* `next` when the driver was last queried */
};

frit_status lineage_create(frit_device *device, struct lineage **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    (*out)->device = device;
    (*out)->first = (*out)->next = 1;
    return FRIT_OK;
}

void lineage_destroy(struct lineage *lineage)
{
    if (!lineage)
        return;
    for (uint32_t i = 0; i < RECENT; i++)
        failure_unref(lineage->recent[i].failure);
    free(lineage->entries);
    free(lineage->reads);
    free(lineage);
}

/* ---- spoiled buffers; inside the lock ---- */

static void set_failure(struct lineage *lineage, struct buffer *buffer, struct failure *failure)
{
    if (atomic_load(&buffer->failure))
        return;
    atomic_store(&buffer->failure, failure_ref(failure));
    atomic_fetch_add(&lineage->device->n_spoiled, 1);
    if (buffer->whole)
        set_failure(lineage, buffer->whole, failure);
}

static void clear_failure(struct lineage *lineage, struct buffer *buffer)
{
    struct failure *failure = atomic_load(&buffer->failure);

    if (!failure)
        return;
    atomic_store(&buffer->failure, NULL);
    atomic_fetch_sub(&lineage->device->n_spoiled, 1);
    failure_unref(failure);
}

static void set_writer(struct lineage *lineage, struct buffer *buffer, uint64_t writer)
{
    atomic_store_explicit(&buffer->writer, writer, memory_order_relaxed);
    clear_failure(lineage, buffer);
    if (buffer->whole)
        set_writer(lineage, buffer->whole, writer);
}

/* ---- the rings; inside the lock ---- */

static struct entry *entry_at(const struct lineage *lineage, uint64_t number)
{
    return &lineage->entries[number & (lineage->capacity - 1)];
}

/* NULL: it is not in flight. */
static struct entry *find_entry(const struct lineage *lineage, uint64_t number)
{
    return number >= lineage->first && number < lineage->next ? entry_at(lineage, number) : NULL;
}

static void drop_first(struct lineage *lineage)
{
    const struct entry *entry = entry_at(lineage, lineage->first++);

    lineage->first_read = entry->reads + entry->n_reads;
}

static bool is_reached(const struct lineage *lineage, uint64_t point)
{
    return point != PENDING &&
           point_value(point) <=
               atomic_load_explicit(&lineage->device->queues[point_queue(point)].reached,
                                    memory_order_acquire);
}

static void drop_reached(struct lineage *lineage)
{
    while (lineage->first < lineage->next &&
           is_reached(lineage, entry_at(lineage, lineage->first)->point))
        drop_first(lineage);
    if (lineage->first == lineage->next && lineage->dropped_pending) {
        device_submitted(lineage->device, &lineage->dropped_to);
        lineage->dropped_pending = false;
    }
}

/* Not reached, but there is no room for it. */
static void drop_oldest(struct lineage *lineage)
{
    uint64_t point = entry_at(lineage, lineage->first)->point;

    if (point == PENDING)
        lineage->dropped_pending = true;
    else
        points_add(&lineage->dropped_to, point);
    drop_first(lineage);
}

/* Copies first..next - 1 into a ring of twice the size; false: it is large enough, or there is no
 * memory. */
static bool grow(void **ring, uint64_t *capacity, uint64_t first, uint64_t next, size_t size,
                 uint64_t most)
{
    uint64_t wanted = *capacity ? *capacity * 2 : FIRST_ENTRIES;
    char *larger = wanted <= most ? malloc(wanted * size) : NULL;

    if (!larger)
        return false;
    for (uint64_t i = first; i < next; i++)
        memcpy(larger + (i & (wanted - 1)) * size,
               (const char *)*ring + (i & (*capacity - 1)) * size, size);
    free(*ring);
    *ring = larger;
    *capacity = wanted;
    return true;
}

static bool has_room(struct lineage *lineage)
{
    if (lineage->next - lineage->first < lineage->capacity)
        return true;
    if (grow((void **)&lineage->entries, &lineage->capacity, lineage->first, lineage->next,
             sizeof(*lineage->entries), MAX_ENTRIES))
        return true;
    if (lineage->first < lineage->next)
        drop_oldest(lineage);
    return lineage->next - lineage->first < lineage->capacity;
}

static bool has_room_to_read(struct lineage *lineage)
{
    if (lineage->next_read - lineage->first_read < lineage->reads_capacity)
        return true;
    if (grow((void **)&lineage->reads, &lineage->reads_capacity, lineage->first_read,
             lineage->next_read, sizeof(*lineage->reads), MAX_READS))
        return true;
    while (lineage->first + 1 < lineage->next &&
           lineage->next_read - lineage->first_read >= lineage->reads_capacity)
        drop_oldest(lineage);
    return lineage->next_read - lineage->first_read < lineage->reads_capacity;
}

/* ---- entering launches ---- */

static void forget_current(struct lineage *lineage)
{
    if (!lineage->current)
        return;
    failure_unref(lineage->current);
    lineage->current = NULL;
}

void lineage_enter(struct lineage *lineage)
{
    short_lock_enter(&lineage->lock);
    drop_reached(lineage);
}

void lineage_leave(struct lineage *lineage)
{
    forget_current(lineage);
    lineage->entering = false;
    short_lock_leave(&lineage->lock);
}

uint64_t lineage_launch(struct lineage *lineage, struct lineage_batch *batch,
                        const struct lineage_launch *launch)
{
    uint64_t number;

    forget_current(lineage);
    lineage->entering = !(lineage->device->info->caps & FRIT_CAP_INLINE_QUEUE);
    if (!lineage->entering)
        return launch->label;
    number = lineage->next;
    if (has_room(lineage)) {
        lineage->next++;
        *entry_at(lineage, number) = (struct entry){.point = PENDING,
                                                    .batch = batch->first ? batch->first : number,
                                                    .reads = lineage->next_read,
                                                    .disabled = launch->disabled,
                                                    .stream = launch->stream,
                                                    .label = launch->label};
    } else { /* no ring at all */
        lineage->entering = false;
        lineage->first = ++lineage->next;
        lineage->dropped_pending = true;
    }
    batch->first = batch->first ? batch->first : number;
    batch->last = number;
    return launch->label | number << LABEL_BITS;
}

/* Whether a failure of it may still be reported. */
static bool is_open(const struct lineage *lineage, uint64_t writer)
{
    if (writer & TRANSFER)
        return !is_reached(lineage, writer & ~TRANSFER);
    return writer >= lineage->first;
}

void lineage_reads(struct lineage *lineage, const struct buffer *buffer)
{
    uint64_t writer = atomic_load_explicit(&buffer->writer, memory_order_relaxed);
    struct failure *failure = atomic_load_explicit(&buffer->failure, memory_order_relaxed);

    if (failure && !lineage->current)
        lineage->current = failure_ref(failure);
    if (!lineage->entering || !writer || !is_open(lineage, writer))
        return;
    if (!has_room_to_read(lineage)) {
        lineage->dropped_pending = true;
        return;
    }
    lineage->reads[lineage->next_read++ & (lineage->reads_capacity - 1)] = writer;
    entry_at(lineage, lineage->next - 1)->n_reads++;
}

void lineage_writes(struct lineage *lineage, struct buffer *buffer)
{
    set_writer(lineage, buffer, lineage->entering ? lineage->next - 1 : 0);
    if (lineage->current)
        set_failure(lineage, buffer, lineage->current);
}

/* ---- afterwards ---- */

static const struct reported *find_reported(const struct lineage *lineage, uint64_t point)
{
    for (uint32_t i = 0; i < RECENT; i++) {
        const struct reported *report = &lineage->recent[i];

        if (report->failure && point >= report->from && point <= report->to)
            return report;
    }
    return NULL;
}

void lineage_transferred(struct lineage *lineage, struct buffer *buffer, uint64_t point)
{
    const struct reported *report;

    short_lock_enter(&lineage->lock);
    set_writer(lineage, buffer, TRANSFER | point);
    report = find_reported(lineage, point);
    if (report)
        set_failure(lineage, buffer, report->failure);
    short_lock_leave(&lineage->lock);
}

void lineage_restore(struct lineage *lineage, struct buffer *buffer, uint64_t writer)
{
    short_lock_enter(&lineage->lock);
    atomic_store_explicit(&buffer->writer, writer, memory_order_relaxed);
    short_lock_leave(&lineage->lock);
}

/* ---- a failure spreads; inside the lock ---- */

struct spread {
    struct lineage *lineage;
    const struct lineage_report *report;
    struct failure *failure;
    const struct entry
        *failed;              /* the launch that is known to have failed; NULL: any of the range */
    uint64_t number;          /* of `failed` */
    bool everything;          /* launches were dropped: all that may have failed counts as failed */
    uint32_t streams[RECENT]; /* of the launches that failed */
    uint32_t n_streams;
};

/* Points of other queues are not. */
static bool is_in_range(const struct spread *s, uint64_t point)
{
    return point >= s->report->from && point <= s->report->to;
}

/* From the start of the range on, and whatever is pending on other queues, which may depend on it.
 */
static bool is_behind_start(const struct spread *s, uint64_t point)
{
    if (point != PENDING && point_queue(point) == point_queue(s->report->from))
        return point >= s->report->from;
    return !is_reached(s->lineage, point);
}

/* The one that the cookie names.  A driver that merged failures names a launch that reached another
 * value; then it may be any of this value. */
static void find_failed(struct spread *s)
{
    uint64_t number = s->report->cookie >> LABEL_BITS;
    const struct entry *entry = find_entry(s->lineage, number);
    uint64_t from = s->report->from;

    if (entry && (entry->point == PENDING || is_in_range(s, entry->point))) {
        s->failed = entry;
        s->number = number;
    }
    s->everything =
        s->lineage->dropped_pending ||
        (!s->failed && s->lineage->dropped_to.at[point_queue(from)] >= point_value(from));
}

static void add_stream(struct spread *s, uint32_t stream)
{
    for (uint32_t i = 0; i < s->n_streams && i < RECENT; i++) {
        if (s->streams[i] == stream)
            return;
    }
    if (s->n_streams < RECENT)
        s->streams[s->n_streams] = stream;
    s->n_streams++;
}

/* Whether the launch may be one that failed itself. */
static bool has_failed(const struct spread *s, const struct entry *entry, uint64_t number)
{
    if (s->everything)
        return is_behind_start(s, entry->point);
    if (s->failed && s->report->command != FRIT_ALL_COMMANDS)
        return number == s->number;
    if (s->failed)
        return number >= s->number && entry->batch == s->failed->batch;
    return is_in_range(s, entry->point);
}

static bool writer_is_bad(const struct spread *s, uint64_t writer)
{
    const struct entry *entry;

    if (writer & TRANSFER)
        return !s->failed && is_in_range(s, writer & ~TRANSFER);
    entry = find_entry(s->lineage, writer);
    return entry && entry->bad;
}

static bool reads_bad(const struct spread *s, const struct entry *entry)
{
    const struct lineage *lineage = s->lineage;

    for (uint32_t i = 0; i < entry->n_reads; i++) {
        if (writer_is_bad(s, lineage->reads[(entry->reads + i) & (lineage->reads_capacity - 1)]))
            return true;
    }
    return false;
}

static void mark_launches(struct spread *s)
{
    struct lineage *lineage = s->lineage;

    for (uint64_t number = lineage->first; number < lineage->next; number++) {
        struct entry *entry = entry_at(lineage, number);
        bool failed = entry->point && has_failed(s, entry, number);

        if (failed)
            add_stream(s, entry->stream);
        entry->bad |= failed || reads_bad(s, entry);
    }
}

static void spoil_buffer(struct buffer *buffer, void *ctx)
{
    struct spread *s = ctx;
    uint64_t writer = atomic_load(&buffer->writer);

    if (writer_is_bad(s, writer) ||
        (s->everything && is_behind_start(s, atomic_load(&buffer->last_write))))
        set_failure(s->lineage, buffer, s->failure);
}

static void spread(struct spread *s)
{
    mark_launches(s);
    memory_each_buffer(s->lineage->device->memory, spoil_buffer, s);
}

static void note_reported(struct spread *s)
{
    struct lineage *lineage = s->lineage;
    struct reported *report = &lineage->recent[lineage->n_reported++ % RECENT];
    uint32_t queue = point_queue(s->report->to);

    failure_unref(report->failure);
    *report = (struct reported){s->report->from, s->report->to, s->failed != NULL,
                                failure_ref(s->failure)};
    lineage->known[queue].place =
        (struct lineage_place){point_value(s->report->to), s->report->command};
    atomic_store(&lineage->known[queue].value, point_value(s->report->to));
}

/* The program that failed is not run again; others of the same label may be right. */
static bool disable_failed(const struct spread *s)
{
    return s->failed && s->failed->disabled && !is_reached(s->lineage, s->failed->point) &&
           !atomic_exchange(s->failed->disabled, true);
}

/* Outside of the lock. */
static void note_streams(const struct spread *s)
{
    frit_device *device = s->lineage->device;
    bool all = s->n_streams == 0 || s->n_streams > RECENT;

    if (!device->config.note_failure || device->info->caps & FRIT_CAP_INLINE_QUEUE)
        return;
    for (uint32_t i = 0; !all && i < s->n_streams; i++) {
        if (s->streams[i] != DEVICE_NO_STREAM)
            device->config.note_failure(device, s->failure, s->streams[i]);
    }
    if (all)
        device->config.note_failure(device, s->failure, DEVICE_ALL_STREAMS);
}

static bool is_behind(const struct lineage_report *report, const struct lineage_place *known)
{
    uint64_t to = point_value(report->to);

    return to > known->value || (to == known->value && report->command > known->command);
}

bool lineage_report(struct lineage *lineage, const struct lineage_report *report)
{
    const frit_device *device = lineage->device;
    const char *label = label_text(device->labels, lineage_label(report->cookie));
    const frit_err *reason = report->reason;
    struct spread s = {.lineage = lineage, .report = report};
    frit_err err = ERR_INIT;
    bool is_new, disabled = false;

    fail(&err, reason->status, "%s failed on %s: %s", label ? label : "a command", device->name,
         reason->text[0] ? reason->text : status_name(reason->status));
    s.failure = failure_create(&err);
    short_lock_enter(&lineage->lock);
    is_new = is_behind(report, &lineage->known[point_queue(report->to)].place);
    if (is_new) {
        find_failed(&s);
        spread(&s);
        note_reported(&s);
        disabled = disable_failed(&s);
    }
    short_lock_leave(&lineage->lock);
    if (disabled)
        device_note_disabled(lineage->device, label, "a command of it failed");
    if (is_new)
        note_streams(&s);
    failure_unref(s.failure);
    return is_new;
}

static void set_points(struct lineage *lineage, const struct lineage_batch *batch, uint64_t after,
                       uint64_t point)
{
    uint64_t number = after >= batch->first ? after + 1 : batch->first;

    for (number = number > lineage->first ? number : lineage->first; number <= batch->last;
         number++) {
        struct entry *entry = find_entry(lineage, number);

        if (entry && entry->batch == batch->first)
            entry->point = point;
    }
}

/* A failure at this point was reported before it was known whose it is. */
static void spread_again(struct lineage *lineage, uint64_t point)
{
    const struct lineage_report report = {.from = point, .to = point, .command = FRIT_ALL_COMMANDS};
    struct spread s = {.lineage = lineage, .report = &report};

    short_lock_enter(&lineage->lock);
    for (uint32_t i = 0; i < RECENT && !s.failure; i++) {
        const struct reported *seen = &lineage->recent[i];

        if (seen->failure && !seen->named && point >= seen->from && point <= seen->to)
            s.failure = failure_ref(seen->failure);
    }
    if (s.failure)
        spread(&s);
    short_lock_leave(&lineage->lock);
    if (s.n_streams)
        note_streams(&s);
    failure_unref(s.failure);
}

/* Inside the lock.  Returns the point of the oldest launch in flight if the driver should be
 * queried whether it is reached, else 0.  In a program that never waits, launches that ended would
 * stay in the ring without these queries. */
static uint64_t overdue(struct lineage *lineage)
{
    uint64_t point;

    if (lineage->next - lineage->first < MANY_ENTRIES ||
        lineage->next - lineage->queried_at < MANY_ENTRIES)
        return 0;
    point = entry_at(lineage, lineage->first)->point;
    lineage->queried_at = lineage->next;
    return point == PENDING ? 0 : point;
}

void lineage_end(struct lineage *lineage, struct lineage_batch *batch, uint64_t after,
                 uint64_t point)
{
    uint64_t oldest;

    if (!batch->first)
        return;
    short_lock_enter(&lineage->lock);
    set_points(lineage, batch, after, point);
    oldest = overdue(lineage);
    short_lock_leave(&lineage->lock);
    if (oldest)
        device_has_reached(lineage->device, oldest);
    batch->last = after;
    if (after < batch->first)
        *batch = (struct lineage_batch){0};
    if (point && lineage_knows(lineage, point))
        spread_again(lineage, point);
}

struct lineage_place lineage_known(struct lineage *lineage, uint32_t queue)
{
    struct lineage_place known;

    short_lock_enter(&lineage->lock);
    known = lineage->known[queue].place;
    short_lock_leave(&lineage->lock);
    return known;
}

void lineage_forget_programs(struct lineage *lineage)
{
    if (!lineage)
        return;
    short_lock_enter(&lineage->lock);
    for (uint64_t number = lineage->first; number < lineage->next; number++)
        entry_at(lineage, number)->disabled = NULL;
    short_lock_leave(&lineage->lock);
}

bool lineage_knows(struct lineage *lineage, uint64_t point)
{
    return atomic_load(&lineage->known[point_queue(point)].value) >= point_value(point);
}

struct failure *lineage_failure_at(struct lineage *lineage, uint64_t point)
{
    const struct reported *report;
    struct failure *failure;

    short_lock_enter(&lineage->lock);
    report = find_reported(lineage, point);
    failure = report ? failure_ref(report->failure) : NULL;
    short_lock_leave(&lineage->lock);
    return failure;
}

struct failure *lineage_failure_of(struct lineage *lineage, const struct buffer *buffer)
{
    struct failure *failure;

    if (!atomic_load(&buffer->failure))
        return NULL;
    short_lock_enter(&lineage->lock);
    failure = atomic_load(&buffer->failure);
    failure = failure ? failure_ref(failure) : NULL;
    short_lock_leave(&lineage->lock);
    return failure;
}

void lineage_spoil(struct lineage *lineage, struct buffer *buffer, struct failure *failure)
{
    short_lock_enter(&lineage->lock);
    set_failure(lineage, buffer, failure);
    short_lock_leave(&lineage->lock);
}
