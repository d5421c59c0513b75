/* SPDX-License-Identifier: Apache-2.0 */
#include "advance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    (void)gethostname(host, sizeof host - 1);
    snprintf(message.text, sizeof message.text, "host %s, pid %ld", host, (long)getpid());
    send_to_all(group, &message);
    while (job_take_early(group->job, group->key, &early))
        advance_receive(group, &early);
}

/* With the lock. */
static void receive_join(frit_group *group, const struct message *message)
{
    struct peer *peer = &group->peers[message->rank];

    if (message->header.size != group->size) {
        group_fail(group, FRIT_MISMATCH, "rank %u joins a group of %u ranks, rank %u one of %u",
                   message->rank, message->header.size, group->rank, group->size);
        return;
    }
    if (message->rank == 0)
        group->channel = message->channel;
    memcpy(peer->where, message->text, sizeof peer->where);
    group->n_joined += !peer->has_joined;
    peer->has_joined = true;
    peer->has_left = false;
}

static void receive_leave(frit_group *group, struct peer *peer, const struct message *message)
{
    peer->has_left = true;
    if (message->header.size == group->size)
        return;
    group->n_joined -= peer->has_joined; /* it gave up waiting for others */
    peer->has_joined = false;
}

void advance_receive(frit_group *group, const struct message *message)
{
    struct peer *peer;

    if (message->rank >= group->size || message->rank == group->rank)
        return;
    peer = &group->peers[message->rank];
    pthread_mutex_lock(&group->job->lock);
    if (message->kind == MESSAGE_JOIN) {
        receive_join(group, message);
    } else if (message->kind == MESSAGE_HEADER) {
        peer->headers[message->number % N_HEADERS] = message->header;
        peer->n_headers = message->number;
    } else if (message->kind == MESSAGE_ABORT) {
        group_fail(group, message->status, "%s", message->text);
    } else if (message->kind == MESSAGE_LEAVE) {
        receive_leave(group, peer, message);
    }
    pthread_cond_broadcast(&group->job->change);
    pthread_mutex_unlock(&group->job->lock);
}

/* ---- failures ---- */

static void drop_pieces(frit_group *group)
{
    for (uint32_t i = 0; i < N_PIECES; i++) {
        piece_drop(group->pieces[i]);
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

static bool announce(frit_group *group, uint64_t issued)
{
    struct message message = new_message(group, MESSAGE_HEADER);
    const bool moved = group->announced < issued;

    while (group->announced < issued) {
        message.number = ++group->announced;
        message.header = group->begun[message.number % MAX_PENDING].header;
        send_to_all(group, &message);
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
    enum { TAGS_PER_GROUP = 2 * N_PIECES, N_CHANNELS = 4096 }; /* tags go to 32767 at least */

    for (int i = 0; i < N_PIECES; i++) {
        const int tag = TAG_DATA + (int)(group->channel % N_CHANNELS) * TAGS_PER_GROUP + 2 * i;

        if (!group->pieces[i])
            group->pieces[i] = piece_create(group->job, group->rank, group->size, tag);
        if (!group->pieces[i]) {
            fail_now(group, FRIT_NO_HOST_MEMORY, "no memory for messages");
            return false;
        }
    }
    return true;
}

static bool start_op(frit_group *group, uint64_t number)
{
    if (!is_begun_by_all(group, number) || !agree(group, number) || !create_pieces(group))
        return false;
    group->op = (struct progress_of_op){.is_running = true};
    return true;
}

static void set_done(frit_group *group)
{
    group->op.is_running = false;
    pthread_mutex_lock(&group->job->lock);
    group->done++;
    pthread_cond_broadcast(&group->job->change);
    pthread_mutex_unlock(&group->job->lock);
}

/* Gives the free piece whose turn it is the next elements; false: there are none. */
static bool start_piece(frit_group *group, const struct begun *begun, enum piece_result *result)
{
    struct progress_of_op *op = &group->op;
    struct piece *piece = group->pieces[op->started % N_PIECES];
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
    piece->count = piece_count(piece, piece->kind, buffer, op->at);
    op->at += piece->count;
    op->started++;
    *result = piece_start(piece);
    return true;
}

/* Both may be under way; their requests end in any order, since each has tags of its own. */
static enum piece_result step_pieces(frit_group *group)
{
    enum piece_result moved = PIECE_STILL;

    for (uint32_t i = 0; i < N_PIECES; i++) {
        struct piece *piece = group->pieces[i];
        enum piece_result result = piece->phase == PIECE_FREE ? PIECE_STILL : piece_step(piece);

        if (result == PIECE_FAILED)
            return result;
        group->op.finished += result == PIECE_DONE;
        if (result != PIECE_STILL)
            moved = PIECE_MOVED;
    }
    return moved;
}

static bool run_op(frit_group *group, const struct begun *begun)
{
    enum piece_result started = PIECE_STILL, result = step_pieces(group);
    bool moved = result == PIECE_MOVED;

    while (result != PIECE_FAILED && started != PIECE_FAILED && start_piece(group, begun, &started))
        moved = true;
    if (result == PIECE_FAILED || started == PIECE_FAILED) {
        fail_now(group, FRIT_PEER_LOST, "MPI reports an error of a transfer: a rank is lost");
        return true;
    }
    if (group->op.started == group->op.finished) {
        set_done(group);
        moved = true;
    }
    return moved;
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

bool advance_step(frit_group *group, bool *is_busy)
{
    uint64_t issued, done;
    bool failed, leaving, moved;

    pthread_mutex_lock(&group->job->lock);
    issued = group->issued;
    done = group->done;
    failed = group->error.status && !group->is_quiet;
    leaving = group->is_leaving;
    moved = group->is_quiet;
    pthread_mutex_unlock(&group->job->lock);
    if (failed)
        end_group(group);
    if (leaving)
        let_go(group);
    if (failed || leaving || moved) /* it has ended */
        return failed || leaving;
    moved = announce(group, issued);
    if (done == issued)
        return moved;
    *is_busy = true;
    if (!group->op.is_running && !start_op(group, done + 1))
        return moved;
    return run_op(group, &group->begun[(done + 1) % MAX_PENDING]) || moved;
}
