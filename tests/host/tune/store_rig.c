/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tune/store_rig.h"

#include "unit.h"

#include <stdio.h>
#include <unistd.h>

struct tune_rig tune_rig_make(void)
{
    struct tune_rig rig = {.folder = "/tmp/frit-tune-XXXXXX"};

    assert_non_null(mkdtemp(rig.folder));
    snprintf(rig.path, sizeof(rig.path), "%s/a/tune.db", rig.folder);
    return rig;
}

void tune_rig_remove(struct tune_rig *rig)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", rig->folder);
    assert_int_equal(system(command), 0);
}

bool tune_rig_has(const struct tune_rig *rig, const char *suffix)
{
    char path[128];

    snprintf(path, sizeof(path), "%s%s", rig->path, suffix);
    return access(path, F_OK) == 0;
}

struct tune_store *tune_rig_open(const char *path)
{
    const struct tune_store_params params = {
        .path = path, .space = "s", .wait_ms = TUNE_RIG_PATIENCE_MS};
    struct tune_store *store;

    assert_int_equal(tune_store_open(&params, &store, NULL), FRIT_OK);
    return store;
}

uint64_t tune_rig_find(struct tune_store *store, uint64_t key)
{
    const struct tune_record *record = tune_store_find(store, &key, sizeof(key));

    if (!record)
        return 0;
    assert_int_equal(record->n_candidates, 3);
    return record->candidates[0].samples[0];
}

void tune_rig_add(struct tune_store *store, uint64_t key, uint64_t ns)
{
    struct tune_record *record = record_rig_small(key, ns);

    assert_int_equal(tune_store_add(store, record, NULL), FRIT_OK);
    tune_record_destroy(record);
}

bool tune_rig_claim(struct tune_store *store, uint64_t key)
{
    return tune_store_claim(store, &key, sizeof(key));
}

uint64_t tune_rig_read(const char *path, uint64_t key)
{
    struct tune_store *store = tune_rig_open(path);
    uint64_t ns = tune_rig_find(store, key);

    tune_store_close(store);
    return ns;
}
