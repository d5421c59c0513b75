/* SPDX-License-Identifier: Apache-2.0 */
#include "advance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frit/op.h>

#include "collective/combine.h"
#include "group.h"

/* ---- messages ---- */

static void send_to_all(frit_group *group, const struct message *message)
{
    for (uint32_t r = 0; r < group->size; r++) {
        if (r != group->rank)
            job_send(group->job, r, message);
    }
}

static struct message new_message(const frit_group *group, enum message_kind kind)
{
    return (struct message){.kind = kind, .rank = group->rank, .key = group->key};
}

void advance_begin_to_join(frit_group *group)
{
    struct message message = new_message(group, MESSAGE_JOIN), early;
    char host[100] = "?";

    if (group->rank == 0)
        group->channel = group->job->n_channels++;
    message.channel = group->channel;
    message.header.size = group->size;
    message.header.hash = group->segment_number;
    message.header.count = group->job->bell_number;
    (void)gethostname(host, sizeof host - 1);
    snprintf(message.text, sizeof message.text, "host %s, pid %ld", host, (long)getpid());
    send_to_all(group, &message);
    while (job_take_early(group->job, group->key, &early))
        advance_receive(group, &early);
}

static void answer(frit_group *group, uint32_t to, uint64_t number, bool opened)
{
    struct message message = new_message(group, MESSAGE_NEAR);

    message.header.hash = number;
    message.header.size = opened;
    job_send(group->job, to, &message);
}

/* Both ranks know of each other, and whether they share memory: only if both can. */
static void complete_join(frit_group *group, uint32_t rank)
{
    const struct peer *peer = &group->peers[rank];

    if (!peer_has_joined(peer))
        return;
    group->n_joined++;
    if (!peer->has_opened) {
        segment_close(group->near[rank], group->size);
        group->near[rank] = NULL;
    }
}

static void undo_join(frit_group *group, uint32_t rank)
{
    struct peer *peer = &group->peers[rank];

    group->n_joined -= peer_has_joined(peer);
    peer->has_come = peer->has_answered = false;
    segment_close(group->near[rank], group->size);
    group->near[rank] = NULL;
}

/* With the lock. */
static void receive_join(frit_group *group, const struct message *message)
{
    const uint32_t rank = message->rank;
    struct peer *peer = &group->peers[rank];

    if (message->header.size != group->size) {
        group_fail(group, FRIT_MISMATCH, "rank %u joins a group of %u ranks, rank %u one of %u",
                   rank, message->header.size, group->rank, group->size);
        return;
    }
    if (rank == 0)
        group->channel = message->channel;
    memcpy(peer->where, message->text, sizeof peer->where);
    if (!peer->has_come) {
        peer->has_come = true;
        job_open_bell(group->job, rank, message->header.count);
        group->near[rank] = segment_open(message->header.hash, group->size);
        answer(group, rank, message->header.hash, group->near[rank]);
        complete_join(group, rank);
    }
    peer->has_left = false;
}

/* With the lock.  Another hash: the answer to a group of this key that is gone. */
static void receive_near(frit_group *group, const struct message *message)
{
    struct peer *peer = &group->peers[message->rank];

    if (peer->has_answered || message->header.hash != group->segment_number)
        return;
    peer->has_answered = true;
    peer->has_opened = message->header.size;
    complete_join(group, message->rank);
}

/* With the lock. */
static void receive_header(frit_group *group, const struct message *message)
{
    struct peer *peer = &group->peers[message->rank];

    if (message->rank == 0)
        group->ways[message->number % N_HEADERS] = (uint8_t)message->channel;
    peer->headers[message->number % N_HEADERS] = message->header;
    peer->n_headers = message->number;
    if (message->header.small_bytes)
        memcpy(peer->small[message->number % N_SMALL], message->text, MESSAGE_TEXT);
}

/* With the lock. */
static void receive_leave(frit_group *group, const struct message *message)
{
    group->peers[message->rank].has_left = true;
    if (message->header.size != group->size) /* it gave up waiting for others */
        undo_join(group, message->rank);
}

void advance_receive(frit_group *group, const struct message *message)
{
    if (message->rank >= group->size || message->rank == group->rank)
        return;
    pthread_mutex_lock(&group->job->lock);
    if (message->kind == MESSAGE_JOIN)
        receive_join(group, message);
    else if (message->kind == MESSAGE_NEAR)
        receive_near(group, message);
    else if (message->kind == MESSAGE_HEADER)
        receive_header(group, message);
    else if (message->kind == MESSAGE_ABORT)
        group_fail(group, message->status, "%s", message->text);
    else if (message->kind == MESSAGE_LEAVE)
        receive_leave(group, message);
    pthread_mutex_unlock(&group->job->lock);
}

/* ---- failures ---- */

static void drop_pieces(frit_group *group)
{
    for (uint32_t i = 0; i < N_PIECES; i++) {
        group->is_kept |= !piece_drop(group->pieces[i]);
        group->pieces[i] = NULL;
    }
}

/* From now on no buffer is touched; the others are informed. */
static void end_group(frit_group *group)
{
    struct message message = new_message(group, MESSAGE_ABORT);

    drop_pieces(group);
    pthread_mutex_lock(&group->job->lock);
    message.status = group->error.status;
    snprintf(message.text, sizeof message.text, "%.*s", MESSAGE_TEXT - 1, group->error.text);
    group->is_quiet = true;
    pthread_cond_broadcast(&group->job->change);
    pthread_mutex_unlock(&group->job->lock);
    send_to_all(group, &message);
}

static void fail_now(frit_group *group, frit_status status, const char *text)
{
    pthread_mutex_lock(&group->job->lock);
    group_fail(group, status, "%s", text);
    pthread_mutex_unlock(&group->job->lock);
}

/* ---- headers ---- */

/* The elements of a small operation, of all its buffers. */
static void copy_small(const struct begun *begun, char *into)
{
    for (uint32_t i = 0; i < begun->header.n_buffers; i++) {
        const frit_collective_buffer *buffer = &begun->buffers[i];
        const uint64_t bytes = frit_storage_bytes(buffer->dtype, (int64_t)buffer->count);

        if (bytes)
            memcpy(into, buffer->from, bytes);
        into += bytes;
    }
}

/* Of the operations that have about as many elements in the first buffer. */
static struct trial *trial_of(frit_group *group, uint64_t number)
{
    const uint64_t count = group->begun[number % MAX_PENDING].header.count;
    uint32_t i = 0;

    while (i < N_TRIALS - 1 && count >> i > 1)
        i++;
    return &group->trials[i];
}

static uint8_t *way_of(frit_group *group, uint64_t number)
{
    return &group->ways[number % N_HEADERS];
}

/* A small operation is not announced before those before it are done, which may make what it
 * reads. */
bool advance_announce(frit_group *group)
{
    struct message message = new_message(group, MESSAGE_HEADER);
    uint64_t issued, done;
    bool moved = false;

    pthread_mutex_lock(&group->job->lock);
    issued = group->error.status ? 0 : group->issued;
    done = group->done;
    pthread_mutex_unlock(&group->job->lock);
    while (group->announced < issued) {
        const uint64_t number = group->announced + 1;
        const struct begun *begun = &group->begun[number % MAX_PENDING];

        if (begun->header.small_bytes && done < group->announced)
            break;
        if (begun->header.small_bytes) {
            copy_small(begun, message.text);
            memcpy(group->peers[group->rank].small[number % N_SMALL], message.text, MESSAGE_TEXT);
        }
        if (group->rank == 0 && !begun->header.small_bytes)
            *way_of(group, number) = (uint8_t)trial_next(trial_of(group, number));
        message.channel = *way_of(group, number);
        message.number = group->announced = number;
        message.header = begun->header;
        send_to_all(group, &message);
        moved = true;
    }
    return moved;
}

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {"nothing",   "barrier",    "all_reduce",
                                        "broadcast", "all_gather", "reduce_scatter"};

    return kind < sizeof names / sizeof *names ? names[kind] : names[0];
}

static const char *dtype_name(uint32_t dtype)
{
    switch (dtype) {
#define FRIT_DTYPE(id, NAME, name, ...) \
    case FRIT_##NAME:                   \
        return #name;
#include <frit/dtypes.def>
    default:
        return "elements";
    }
}

static void print_header(const struct header *header, bool with_note, char *text, size_t bytes)
{
    char elements[64] = "", more[40] = "", root[24] = "", note[FRIT_COLLECTIVE_NOTE + 4] = "";

    if (header->n_buffers)
        snprintf(elements, sizeof elements, " of %" PRIu64 " %.20s", header->count,
                 dtype_name(header->dtype));
    if (header->n_buffers > 1)
        snprintf(more, sizeof more, " and %u buffers more", header->n_buffers - 1);
    if (header->kind == FRIT_COLLECTIVE_BROADCAST)
        snprintf(root, sizeof root, " from rank %u", header->root);
    if (with_note && *header->note)
        snprintf(note, sizeof note, " (%.31s)", header->note);
    snprintf(text, bytes, "%.20s%s%s%s%s", kind_name(header->kind), elements, more, root, note);
}

static const struct header *header_of(const frit_group *group, uint32_t rank, uint64_t number)
{
    return rank == group->rank ? &group->begun[number % MAX_PENDING].header
                               : &group->peers[rank].headers[number % N_HEADERS];
}

/* True: operation `number` is the same on all ranks.  Every rank finds the same fault. */
static bool agree(frit_group *group, uint64_t number)
{
    const struct header *first = header_of(group, 0, number);
    char mine[192], theirs[192], text[MESSAGE_TEXT];
    bool with_note;

    for (uint32_t r = 1; r < group->size; r++) {
        const struct header *other = header_of(group, r, number);

        if (memcmp(first, other, sizeof *first) == 0)
            continue;
        with_note = strcmp(first->note, other->note) != 0;
        print_header(first, with_note, mine, sizeof mine);
        print_header(other, with_note, theirs, sizeof theirs);
        snprintf(text, sizeof text, "operation %" PRIu64 " is %.84s on rank 0, %.84s on rank %u",
                 number, mine, theirs, r);
        fail_now(group, FRIT_MISMATCH, text);
        return false;
    }
    return true;
}

/* True: all headers of operation `number` are there. */
static bool is_begun_by_all(frit_group *group, uint64_t number)
{
    char text[MESSAGE_TEXT + 64];

    for (uint32_t r = 0; r < group->size; r++) {
        const struct peer *peer = &group->peers[r];

        if (r == group->rank || peer->n_headers >= number)
            continue;
        if (peer->has_left) {
            snprintf(text, sizeof text, "rank %u (%s) has left the group", r, peer->where);
            fail_now(group, FRIT_PEER_LOST, text);
        }
        return false;
    }
    return true;
}

/* ---- operations ---- */

static bool create_pieces(frit_group *group)
{
    enum { TAGS_PER_GROUP = 2 * N_PIECES, N_CHANNELS = 500 }; /* tags go to 32767 at least */

    for (int i = 0; i < N_PIECES; i++) {
        const int tag = TAG_DATA + (int)(group->channel % N_CHANNELS) * TAGS_PER_GROUP + 2 * i;

        if (!group->pieces[i])
            group->pieces[i] = piece_create(group->job, group->rank, group->size, (uint32_t)i, tag,
                                            group->segment, group->near);
        if (!group->pieces[i]) {
            fail_now(group, FRIT_NO_HOST_MEMORY, "no memory for messages");
            return false;
        }
    }
    return true;
}

static bool start_op(frit_group *group, uint64_t number)
{
    if (group->announced < number || !is_begun_by_all(group, number) || !agree(group, number) ||
        !create_pieces(group))
        return false;
    group->op = (struct progress_of_op){.is_running = true, .begun_ns = now_ns()};
    group->op.is_streamed = *way_of(group, number) & WAY_STREAMED;
    group->op.most = *way_of(group, number) & WAY_FEW ? FEW_PIECES : N_PIECES;
    return true;
}

static void set_done(frit_group *group)
{
    group->op.is_running = false;
    pthread_mutex_lock(&group->job->lock);
    group->done++;
    if (group->job->n_waiting)
        pthread_cond_broadcast(&group->job->change);
    pthread_mutex_unlock(&group->job->lock);
}

/* Gives the free piece whose turn it is the next elements; false: there are none. */
static bool start_piece(frit_group *group, const struct begun *begun)
{
    struct progress_of_op *op = &group->op;
    struct piece *piece = group->pieces[op->started % op->most];
    const frit_collective_buffer *buffer;

    while (op->buffer < begun->header.n_buffers && op->at == begun->buffers[op->buffer].count) {
        op->buffer++;
        op->at = 0;
    }
    if (op->buffer == begun->header.n_buffers || piece->phase != PIECE_FREE)
        return false;
    buffer = &begun->buffers[op->buffer];
    piece->kind = begun->header.kind;
    piece->combine = begun->header.combine;
    piece->root = begun->header.root;
    piece->buffer = *buffer;
    piece->at = op->at;
    piece->is_streamed = op->is_streamed;
    piece->count = piece_count(piece, piece->kind, buffer, op->at);
    op->at += piece->count;
    op->started++;
    piece_start(piece);
    return true;
}

/* Those in one phase, the oldest first, up to one that must wait: what the next ones wait for comes
 * later.  Each look at a request makes MPI look at all its connections. */
static enum piece_result step_phase(frit_group *group, enum piece_phase phase)
{
    const uint64_t started = group->op.started;
    enum piece_result result, moved = PIECE_STILL;

    for (uint64_t i = group->op.finished; i < started; i++) {
        struct piece *piece = group->pieces[i % group->op.most];

        if (piece->phase != phase)
            continue;
        result = piece_step(piece);
        if (result == PIECE_FAILED)
            return result;
        if (result == PIECE_STILL)
            break;
        group->op.finished += result == PIECE_DONE;
        moved = PIECE_MOVED;
    }
    return moved;
}

/* A rank sends what the first phase needs before what the second does. */
static enum piece_result step_pieces(frit_group *group)
{
    enum piece_result result, moved = PIECE_STILL;

    for (enum piece_phase phase = PIECE_WAITING; phase <= PIECE_GATHER; phase++) {
        result = step_phase(group, phase);
        if (result == PIECE_FAILED)
            return result;
        if (result != PIECE_STILL)
            moved = PIECE_MOVED;
    }
    return moved;
}

/* Every rank has the elements of all. */
static void run_small(frit_group *group, const struct begun *begun, uint64_t number)
{
    char result[MESSAGE_TEXT];
    void *const into = result;
    const void *from[JOB_RANKS];
    uint64_t at = 0;

    for (uint32_t i = 0; i < begun->header.n_buffers; i++) {
        const frit_collective_buffer *buffer = &begun->buffers[i];
        struct combine combine = {.dtype = buffer->dtype,
                                  .mean = begun->header.combine == FRIT_CHOICE_combine_mean,
                                  .n_from = group->size,
                                  .n_into = 1,
                                  .from = from,
                                  .into = &into,
                                  .count = buffer->count};

        for (uint32_t r = 0; r < group->size; r++)
            from[r] = group->peers[r].small[number % N_SMALL] + at;
        if (buffer->count)
            combine_run(&combine);
        if (buffer->count)
            memcpy(buffer->into, result, frit_storage_bytes(buffer->dtype, (int64_t)buffer->count));
        at += frit_storage_bytes(buffer->dtype, (int64_t)buffer->count);
    }
    set_done(group);
}

static bool run_op(frit_group *group, const struct begun *begun, uint64_t number)
{
    bool moved = false;
    enum piece_result result;

    while (start_piece(group, begun))
        moved = true;
    result = step_pieces(group);
    if (result == PIECE_FAILED) {
        fail_now(group, FRIT_PEER_LOST, "MPI reports an error of a transfer: a rank is lost");
        return true;
    }
    if (group->op.buffer == begun->header.n_buffers && group->op.started == group->op.finished) {
        trial_report(trial_of(group, number), *way_of(group, number),
                     (double)(now_ns() - group->op.begun_ns) / (double)(begun->header.count + 1));
        set_done(group);
        moved = true;
    }
    return moved || result == PIECE_MOVED;
}

/* ---- leaving ---- */

static void let_go(frit_group *group)
{
    struct message message = new_message(group, MESSAGE_LEAVE);
    struct job *job = group->job;
    frit_group **at = &job->groups;

    drop_pieces(group);
    message.number = group->announced;
    message.header.size = group->n_joined + 1; /* that it has seen */
    send_to_all(group, &message);
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    pthread_mutex_lock(&job->lock);
    group->is_gone = true;
    pthread_cond_broadcast(&job->change);
    pthread_mutex_unlock(&job->lock);
}

bool advance_step(frit_group *group, enum expected *expected)
{
    const struct begun *begun;
    uint64_t issued, number;
    bool failed, leaving, ended, moved;

    pthread_mutex_lock(&group->job->lock);
    issued = group->issued;
    number = group->done + 1;
    failed = group->error.status && !group->is_quiet;
    leaving = group->is_leaving;
    ended = group->is_quiet;
    pthread_mutex_unlock(&group->job->lock);
    if (failed)
        end_group(group);
    if (leaving)
        let_go(group);
    if (failed || leaving || ended)
        return failed || leaving;
    moved = advance_announce(group);
    if (number > issued)
        return moved;
    begun = &group->begun[number % MAX_PENDING];
    *expected = EXPECTED_RANKS;
    if (!group->op.is_running && !start_op(group, number))
        return moved;
    *expected = EXPECTED_DATA;
    if (begun->header.small_bytes) {
        run_small(group, begun, number);
        return true;
    }
    return run_op(group, begun, number) || moved;
}
