/* SPDX-License-Identifier: Apache-2.0 */
/* A node is one cache line and points to its first child, on most paths the only one; further
 * children are in a table.  A node is filled before it is published; afterwards only answers, each
 * once, and children are added.
 *
 * Generations are counted under the lock and freed only by automaton_reap, because freeing a plan
 * calls plugins.  A walker references its generation and the previous one, so a node's `twin`,
 * which only walkers in the node's generation access, stays valid. */
#include "plan/automaton.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "plan/intern.h"
#include "plan/plan.h"
#include "plan/table.h"

enum { SLAB_NODES = 32, NODE_ALIGN = 64 };

/* Value of `lazy`: wait for more ops. */
#define GO_ON ((uintptr_t)1)

/* Fields that few nodes need. */
struct node_more {
    _Atomic(struct plan *) sync;
    struct table children; /* all but the first */
};

struct automaton_node {
    struct op_key key;
    _Atomic(struct automaton_node *) child; /* the child that was added first */
    _Atomic(uintptr_t) lazy;                /* 0 (unknown), GO_ON or the plan */
    _Atomic(struct node_more *) more;       /* or NULL */
    struct node_origin *origin;
};
_Static_assert(sizeof(struct automaton_node) == NODE_ALIGN, "one cache line");

/* Fields that only growth and visits access. */
struct node_origin {
    struct automaton_node *parent; /* NULL: the root */
    struct automaton_node *twin;   /* the same path in the previous generation, or NULL */
    struct automaton_node *newer;  /* next in the list of nodes with answers not taken */
    bool is_new;                   /* it is in that list */
    uint64_t visit;                /* number of the last visit, and its mark */
    int64_t mark;
};

struct node_slab {
    struct node_slab *older;
    struct automaton_node *nodes;
    uint32_t used;
    struct node_origin origins[SLAB_NODES];
};

/* A reference to a saved plan that another took the place of: walkers may still look at it. */
struct replaced {
    struct plan *plan;
    struct replaced *next;
};

struct automaton_generation {
    struct automaton_generation
        *before; /* valid while a walker is here or this is the current generation */
    struct automaton_node *root;
    struct node_slab *slab; /* newest */
    struct automaton_node *oldest_new, *newest_new;
    struct arena arena;
    struct intern intern;
    uint64_t serial;
    uint64_t refs; /* walkers here and in the next generation, and the automaton */
    uint64_t nodes, plans, bytes;
    struct replaced *replaced;
    struct automaton_generation *next_gone;
};

struct automaton {
    pthread_mutex_t lock;
    _Atomic(struct automaton_generation *) gone; /* to be freed; written under the lock */
    _Atomic(struct automaton_generation *) current;
    uint64_t store_bytes;
    uint64_t generations;
    uint64_t visits; /* number of the current visit */
    uint32_t last_id;
};

static struct automaton_generation *newest(struct automaton *automaton)
{
    return atomic_load_explicit(&automaton->current, memory_order_acquire);
}

/* ---- nodes ---- */

static struct automaton_node *node_create(struct automaton_generation *generation)
{
    struct node_slab *slab = generation->slab;

    if (!slab || slab->used == SLAB_NODES) {
        size_t size = sizeof(*slab) + NODE_ALIGN + SLAB_NODES * sizeof(struct automaton_node);
        unsigned char *nodes;

        slab = arena_alloc(&generation->arena, size);
        if (!slab)
            return NULL;
        nodes = (unsigned char *)(slab + 1);
        nodes += -(uintptr_t)nodes & (NODE_ALIGN - 1);
        slab->nodes = (struct automaton_node *)(void *)nodes;
        slab->older = generation->slab;
        generation->slab = slab;
        generation->bytes += size;
    }
    generation->nodes++;
    slab->nodes[slab->used].origin = &slab->origins[slab->used];
    return &slab->nodes[slab->used++];
}

static struct node_more *node_more(struct automaton_generation *generation,
                                   struct automaton_node *node)
{
    struct node_more *more = atomic_load_explicit(&node->more, memory_order_relaxed);

    if (!more && (more = arena_alloc(&generation->arena, sizeof(*more)))) {
        generation->bytes += sizeof(*more);
        atomic_store_explicit(&node->more, more, memory_order_release);
    }
    return more;
}

static inline bool same_key(const struct op_key *a, const struct op_key *b)
{
    return ((a->word[0] ^ b->word[0]) | (a->word[1] ^ b->word[1]) | (a->word[2] ^ b->word[2]) |
            (a->word[3] ^ b->word[3])) == 0;
}

static uint64_t hash_key(const struct op_key *key)
{
    uint64_t hash = 0;

    for (int i = 0; i < 4; i++) {
        hash = (hash ^ key->word[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

static struct automaton_node *find_in_table(const struct automaton_node *node,
                                            const struct op_key *key)
{
    const struct node_more *more = atomic_load_explicit(&node->more, memory_order_acquire);
    const struct table_rows *rows = more ? table_rows(&more->children) : NULL;
    uint64_t hash = rows ? hash_key(key) : 0;
    struct automaton_node *child;
    uint32_t probe = 0;

    while ((child = table_next(rows, hash, &probe)) && !same_key(&child->key, key))
        continue;
    return child;
}

static inline struct automaton_node *find_child(const struct automaton_node *node,
                                                const struct op_key *key)
{
    struct automaton_node *child = atomic_load_explicit(&node->child, memory_order_acquire);

    if (!child || same_key(&child->key, key))
        return child;
    return find_in_table(node, key);
}

static uintptr_t lazy_of(const struct automaton_node *node)
{
    return atomic_load_explicit(&node->lazy, memory_order_acquire);
}

static struct plan *sync_of(const struct automaton_node *node)
{
    const struct node_more *more = atomic_load_explicit(&node->more, memory_order_acquire);

    return more ? atomic_load_explicit(&more->sync, memory_order_acquire) : NULL;
}

/* References a plan and counts it in the generation. */
static void hold_plan(struct automaton_generation *generation, struct plan *plan)
{
    plan_ref(plan);
    generation->plans++;
    generation->bytes += plan->bytes;
}

static void put_lazy(struct automaton_generation *generation, struct automaton_node *node,
                     uintptr_t lazy)
{
    if (lazy > GO_ON)
        hold_plan(generation, (struct plan *)lazy);
    atomic_store_explicit(&node->lazy, lazy, memory_order_release);
}

static void put_sync(struct automaton_generation *generation, struct automaton_node *node,
                     struct plan *plan)
{
    struct node_more *more = node_more(generation, node);

    if (!more)
        return; /* the answer stays unknown */
    hold_plan(generation, plan);
    atomic_store_explicit(&more->sync, plan, memory_order_release);
}

/* Adds the node to the list of nodes with answers not taken.  Requires the lock. */
static void list_as_new(struct automaton_generation *generation, struct automaton_node *node)
{
    if (node->origin->is_new)
        return;
    node->origin->is_new = true;
    node->origin->newer = NULL;
    if (generation->newest_new)
        generation->newest_new->origin->newer = node;
    else
        generation->oldest_new = node;
    generation->newest_new = node;
}

/* ---- generations ---- */

static struct automaton_generation *generation_create(struct automaton_generation *before)
{
    struct automaton_generation *generation = calloc(1, sizeof(*generation));

    if (!generation)
        return NULL;
    generation->root = node_create(generation);
    if (!generation->root) {
        free(generation);
        return NULL;
    }
    generation->nodes = 0; /* the root is not counted */
    generation->refs = 1;
    generation->before = before;
    if (before)
        generation->root->origin->twin = before->root;
    return generation;
}

static void generation_free(struct automaton_generation *generation)
{
    if (!generation)
        return;
    for (const struct node_slab *slab = generation->slab; slab; slab = slab->older) {
        for (uint32_t i = 0; i < slab->used; i++) {
            uintptr_t lazy = lazy_of(&slab->nodes[i]);

            if (lazy > GO_ON)
                plan_unref((struct plan *)lazy);
            plan_unref(sync_of(&slab->nodes[i]));
        }
    }
    for (const struct replaced *each = generation->replaced; each; each = each->next)
        plan_unref(each->plan);
    intern_fini(&generation->intern);
    arena_fini(&generation->arena);
    free(generation);
}

/* Requires the lock. */
static void drop_ref(struct automaton *automaton, struct automaton_generation *generation)
{
    if (!generation || --generation->refs > 0)
        return;
    generation->next_gone = atomic_load_explicit(&automaton->gone, memory_order_relaxed);
    atomic_store_explicit(&automaton->gone, generation, memory_order_relaxed);
}

static uint64_t generation_bytes(const struct automaton_generation *generation)
{
    return generation ? generation->bytes + generation->intern.bytes : 0;
}

/* If out of memory, the current one continues.  Requires the lock. */
static void begin_generation(struct automaton *automaton)
{
    struct automaton_generation *current = newest(automaton);
    struct automaton_generation *next = generation_create(current);

    if (!next)
        return;
    next->serial = ++automaton->generations;
    atomic_store_explicit(&automaton->current, next, memory_order_release);
    drop_ref(automaton, current->before);
}

/* Begins the next generation if this one is full.  Requires the lock. */
static void begin_generation_if_full(struct automaton *automaton,
                                     const struct automaton_generation *grown)
{
    if (grown == newest(automaton) && generation_bytes(grown) > automaton->store_bytes / 2)
        begin_generation(automaton);
}

void automaton_renew(struct automaton *automaton)
{
    pthread_mutex_lock(&automaton->lock);
    begin_generation(automaton);
    pthread_mutex_unlock(&automaton->lock);
}

frit_status automaton_create(uint64_t store_bytes, struct automaton **out, frit_err *err)
{
    struct automaton_generation *first = generation_create(NULL);
    struct automaton *automaton = calloc(1, sizeof(*automaton));

    *out = NULL;
    if (!first || !automaton) {
        generation_free(first);
        free(automaton);
        return fail_memory(err, sizeof(*automaton));
    }
    pthread_mutex_init(&automaton->lock, NULL);
    atomic_init(&automaton->current, first);
    automaton->store_bytes = store_bytes;
    first->serial = automaton->generations = 1;
    *out = automaton;
    return FRIT_OK;
}

void automaton_destroy(struct automaton *automaton)
{
    if (!automaton)
        return;
    automaton_reap(automaton);
    generation_free(newest(automaton)->before);
    generation_free(newest(automaton));
    pthread_mutex_destroy(&automaton->lock);
    free(automaton);
}

bool automaton_has_gone(struct automaton *automaton)
{
    return atomic_load_explicit(&automaton->gone, memory_order_relaxed);
}

void automaton_reap(struct automaton *automaton)
{
    struct automaton_generation *gone;

    pthread_mutex_lock(&automaton->lock);
    gone = atomic_load_explicit(&automaton->gone, memory_order_relaxed);
    atomic_store_explicit(&automaton->gone, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&automaton->lock);
    while (gone) {
        struct automaton_generation *next = gone->next_gone;

        generation_free(gone);
        gone = next;
    }
}

void automaton_stats(struct automaton *automaton, struct automaton_stats *out)
{
    const struct automaton_generation *generation;

    *out = (struct automaton_stats){.store_bytes = automaton->store_bytes};
    pthread_mutex_lock(&automaton->lock);
    out->generations = automaton->generations;
    generation = newest(automaton);
    for (int i = 0; i < 2 && generation; i++) {
        out->nodes += generation->nodes;
        out->plans += generation->plans;
        out->bytes += generation_bytes(generation);
        generation = generation->before;
    }
    pthread_mutex_unlock(&automaton->lock);
}

/* ---- walkers ---- */

static void enter(struct walker *walker)
{
    struct automaton *automaton = walker->automaton;

    pthread_mutex_lock(&automaton->lock);
    walker->generation = newest(automaton);
    walker->serial = walker->generation->serial;
    walker->generation->refs++;
    if (walker->generation->before)
        walker->generation->before->refs++;
    pthread_mutex_unlock(&automaton->lock);
}

static void leave(struct walker *walker)
{
    struct automaton_generation *generation = walker->generation, *before = generation->before;

    pthread_mutex_lock(&walker->automaton->lock);
    drop_ref(walker->automaton, before);
    drop_ref(walker->automaton, generation);
    pthread_mutex_unlock(&walker->automaton->lock);
    walker->generation = NULL;
}

void walker_init(struct walker *walker, struct automaton *automaton)
{
    *walker = (struct walker){.automaton = automaton};
    enter(walker);
    walker->node = walker->generation->root;
}

void walker_fini(struct walker *walker)
{
    if (walker->generation)
        leave(walker);
    *walker = (struct walker){0};
}

void walker_restart(struct walker *walker)
{
    if (walker->generation != newest(walker->automaton)) {
        leave(walker);
        enter(walker);
    }
    walker->node = walker->generation->root;
    walker->depth = 0;
}

/* Requires the lock. */
static struct automaton_node *make_child(struct automaton_generation *generation,
                                         struct automaton_node *node, const struct op_key *key)
{
    struct automaton_node *twin = node->origin->twin ? find_child(node->origin->twin, key) : NULL;
    struct automaton_node *child = node_create(generation);
    struct node_more *more;

    if (!child)
        return NULL;
    child->key = *key;
    child->origin->parent = node;
    child->origin->twin = twin;
    if (twin) {
        put_lazy(generation, child, lazy_of(twin));
        if (sync_of(twin))
            put_sync(generation, child, sync_of(twin));
    }
    if (!atomic_load_explicit(&node->child, memory_order_relaxed)) {
        atomic_store_explicit(&node->child, child, memory_order_release);
        return child;
    }
    more = node_more(generation, node);
    if (!more ||
        !table_add(&more->children, &generation->arena, hash_key(key), child, &generation->bytes))
        return NULL; /* the child's memory is unused until the generation ends */
    return child;
}

static struct automaton_node *grow(struct walker *walker, const struct op_key *key)
{
    struct automaton *automaton = walker->automaton;
    struct automaton_node *child;

    pthread_mutex_lock(&automaton->lock);
    child = find_child(walker->node, key);
    if (!child) {
        child = make_child(walker->generation, walker->node, key);
        begin_generation_if_full(automaton, walker->generation);
    }
    pthread_mutex_unlock(&automaton->lock);
    return child;
}

void walker_step(struct walker *walker, const struct op_key *key)
{
    struct automaton_node *child;

    walker->depth++;
    if (!walker->node)
        return;
    child = find_child(walker->node, key);
    walker->node = child ? child : grow(walker, key);
}

enum lazy_kind walker_lazy(const struct walker *walker, struct plan **plan)
{
    uintptr_t lazy = walker->node ? lazy_of(walker->node) : 0;

    *plan = lazy > GO_ON ? (struct plan *)lazy : NULL;
    if (!lazy)
        return LAZY_UNKNOWN;
    return *plan ? LAZY_RUN : LAZY_GO_ON;
}

struct plan *walker_sync(const struct walker *walker)
{
    return walker->node ? sync_of(walker->node) : NULL;
}

void walker_set_lazy(struct walker *walker, struct plan *plan)
{
    if (!walker->node)
        return;
    pthread_mutex_lock(&walker->automaton->lock);
    if (!lazy_of(walker->node)) {
        put_lazy(walker->generation, walker->node, plan ? (uintptr_t)plan : GO_ON);
        list_as_new(walker->generation, walker->node);
    }
    begin_generation_if_full(walker->automaton, walker->generation);
    pthread_mutex_unlock(&walker->automaton->lock);
}

void walker_set_sync(struct walker *walker, struct plan *plan)
{
    if (!walker->node)
        return;
    pthread_mutex_lock(&walker->automaton->lock);
    if (!sync_of(walker->node)) {
        put_sync(walker->generation, walker->node, plan);
        list_as_new(walker->generation, walker->node);
    }
    begin_generation_if_full(walker->automaton, walker->generation);
    pthread_mutex_unlock(&walker->automaton->lock);
}

/* Requires the lock.  Returns false if out of memory, and then the reference stays where it is. */
static bool keep_replaced(struct automaton_generation *generation, struct plan *plan)
{
    struct replaced *replaced = arena_alloc(&generation->arena, sizeof(*replaced));

    if (!replaced)
        return false;
    *replaced = (struct replaced){.plan = plan, .next = generation->replaced};
    generation->replaced = replaced;
    generation->bytes += sizeof(*replaced);
    generation->plans--;
    return true;
}

void walker_replace_saved(struct walker *walker, const struct plan *saved, struct plan *plan)
{
    struct automaton_generation *generation = walker->generation;
    struct automaton_node *node = walker->node;

    if (!node)
        return;
    pthread_mutex_lock(&walker->automaton->lock);
    if (lazy_of(node) == (uintptr_t)saved && keep_replaced(generation, (struct plan *)saved))
        put_lazy(generation, node, (uintptr_t)plan);
    if (sync_of(node) == saved && keep_replaced(generation, (struct plan *)saved)) {
        if (plan)
            hold_plan(generation, plan);
        atomic_store_explicit(&node_more(generation, node)->sync, plan, memory_order_release);
    }
    begin_generation_if_full(walker->automaton, generation);
    pthread_mutex_unlock(&walker->automaton->lock);
}

/* ---- interned bytes ---- */

/* Requires the lock. */
static uint32_t intern_here(struct walker *walker, const void *bytes, size_t n_bytes)
{
    struct automaton_generation *generation = walker->generation;
    const struct intern_entry *entry = intern_find(&generation->intern, bytes, n_bytes);
    uint32_t id;

    if (entry)
        return entry->id;
    if (generation->before)
        entry = intern_find(&generation->before->intern, bytes, n_bytes);
    if (!entry && walker->automaton->last_id == UINT32_MAX)
        return 0;
    id = entry ? entry->id : ++walker->automaton->last_id;
    return intern_add(&generation->intern, bytes, n_bytes, id) ? id : 0;
}

uint32_t walker_intern(struct walker *walker, const void *bytes, size_t n_bytes)
{
    const struct intern_entry *entry = intern_find(&walker->generation->intern, bytes, n_bytes);
    uint32_t id;

    if (entry)
        return entry->id;
    pthread_mutex_lock(&walker->automaton->lock);
    id = intern_here(walker, bytes, n_bytes);
    begin_generation_if_full(walker->automaton, walker->generation);
    pthread_mutex_unlock(&walker->automaton->lock);
    return id;
}

const void *walker_interned(const struct walker *walker, uint32_t id, size_t *n_bytes)
{
    const struct automaton_generation *generation = walker->generation;
    const struct intern_entry *entry = intern_find_id(&generation->intern, id);

    if (!entry && generation->before)
        entry = intern_find_id(&generation->before->intern, id);
    *n_bytes = entry ? entry->n_bytes : 0;
    return entry ? entry->bytes : NULL;
}

/* ---- nodes with answers ---- */

static bool list_add(struct automaton_list *list, struct automaton_node *node)
{
    if (!array_grow(&list->nodes, &list->capacity, list->count, 1, sizeof(*list->nodes)))
        return false;
    list->nodes[list->count++] = node;
    return true;
}

/* In order of creation, so that ancestors precede their descendants. */
static bool list_all(struct automaton_list *list, const struct automaton_generation *generation)
{
    for (const struct node_slab *slab = generation->slab; slab; slab = slab->older) {
        for (uint32_t i = slab->used; i-- > 0;) {
            struct automaton_node *node = &slab->nodes[i];

            if ((lazy_of(node) || sync_of(node)) && !list_add(list, node))
                return false;
        }
    }
    for (uint32_t i = 0; i < list->count / 2; i++) {
        struct automaton_node *last = list->nodes[list->count - 1 - i];

        list->nodes[list->count - 1 - i] = list->nodes[i];
        list->nodes[i] = last;
    }
    return true;
}

static bool list_new(struct automaton_list *list, const struct automaton_generation *generation)
{
    struct automaton_node *node = generation ? generation->oldest_new : NULL;

    for (; node; node = node->origin->newer) {
        if (!list_add(list, node))
            return false;
    }
    return true;
}

static void clear_new(struct automaton_generation *generation)
{
    struct automaton_node *node = generation ? generation->oldest_new : NULL;

    for (; node; node = node->origin->newer)
        node->origin->is_new = false;
    if (generation)
        generation->oldest_new = generation->newest_new = NULL;
}

/* Requires the lock. */
static bool fill_list(const struct walker *walker, enum automaton_part part,
                      struct automaton_list *list)
{
    struct automaton_generation *here = walker->generation, *before = here->before;

    if (part == AUTOMATON_ALL)
        return list_all(list, here);
    if (!list_new(list, before))
        return false;
    list->n_before = list->count;
    return list_new(list, here);
}

frit_status automaton_take(const struct walker *walker, enum automaton_part part,
                           struct automaton_list *out, frit_err *err)
{
    bool filled;

    *out = (struct automaton_list){0};
    pthread_mutex_lock(&walker->automaton->lock);
    filled = fill_list(walker, part, out);
    if (filled) {
        clear_new(walker->generation->before);
        clear_new(walker->generation);
    }
    pthread_mutex_unlock(&walker->automaton->lock);
    if (filled)
        return FRIT_OK;
    automaton_list_fini(out);
    return fail_memory(err, 0);
}

void automaton_put_back(const struct walker *walker, const struct automaton_list *list)
{
    struct automaton_generation *here = walker->generation;

    pthread_mutex_lock(&walker->automaton->lock);
    for (uint32_t i = 0; i < list->count; i++)
        list_as_new(i < list->n_before ? here->before : here, list->nodes[i]);
    pthread_mutex_unlock(&walker->automaton->lock);
}

void automaton_list_fini(struct automaton_list *list)
{
    free(list->nodes);
    *list = (struct automaton_list){0};
}

struct visit {
    uint64_t serial;
    automaton_visitor visitor;
    void *ctx;
    struct automaton_list path;
};

static frit_status visit_node(const struct visit *v, struct automaton_node *node, bool answers,
                              frit_err *err)
{
    struct node_origin *origin = node->origin;
    uintptr_t lazy = answers ? lazy_of(node) : 0;

    if (origin->visit != v->serial)
        origin->mark = 0;
    origin->visit = v->serial;
    return v->visitor(
        v->ctx,
        &(struct automaton_place){
            .key = &node->key,
            .lazy = lazy > GO_ON ? LAZY_RUN : (enum lazy_kind)lazy,
            .plan = lazy > GO_ON ? (struct plan *)lazy : NULL,
            .sync = answers ? sync_of(node) : NULL,
            .parent = origin->parent->origin->parent ? origin->parent->origin->mark : 0,
            .mark = &origin->mark,
        },
        err);
}

/* Visits the node's ancestors that this visit has not visited yet, then the node. */
static frit_status visit_path(struct visit *v, struct automaton_node *node, frit_err *err)
{
    struct automaton_node *up = node->origin->parent;

    v->path.count = 0;
    for (; up->origin->parent && up->origin->visit != v->serial; up = up->origin->parent) {
        if (!list_add(&v->path, up))
            return fail_memory(err, v->path.count * sizeof(up));
    }
    while (v->path.count)
        TRY(visit_node(v, v->path.nodes[--v->path.count], false, err));
    return visit_node(v, node, true, err);
}

frit_status automaton_visit(const struct walker *walker, const struct automaton_list *list,
                            automaton_visitor visitor, void *ctx, frit_err *err)
{
    struct visit v = {.visitor = visitor, .ctx = ctx};
    frit_status st = FRIT_OK;

    pthread_mutex_lock(&walker->automaton->lock);
    v.serial = ++walker->automaton->visits;
    pthread_mutex_unlock(&walker->automaton->lock);
    for (uint32_t i = 0; i < list->count && !st; i++)
        st = visit_path(&v, list->nodes[i], err);
    automaton_list_fini(&v.path);
    return st;
}
