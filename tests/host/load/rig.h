/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader's tests share: a registry over given settings, searched in one directory, and the
 * log lines that were written meanwhile. */
#ifndef TESTS_LOAD_RIG_H
#define TESTS_LOAD_RIG_H

#include <frit/frit.h>

#include "base/str.h"
#include "load/registry.h"

struct rig {
    struct conf *conf;
    struct registry *registry;
    frit_err err;
};

/* The build tree's tests/fake, and a file in it; both live until the next call. */
const char *rig_fake_dir(void);
const char *rig_fake(const char *name);

/* Makes an empty directory the only one that is searched, and collects the log.  Of the whole
 * process: call it as the group's setup and teardown. */
int rig_setup(void **state);
int rig_teardown(void **state);
/* That directory. */
const char *rig_dir(void);

/* `settings` end with a NULL section.  Fails the test if the configuration is refused. */
frit_status rig_open(struct rig *rig, const frit_setting *settings);
void rig_close(struct rig *rig);

/* The only plugin with this id or file name, with its devices enumerated; fails the test if there
 * is none, or several. */
const struct plugin *rig_plugin(const struct rig *rig, const char *name);

/* What was logged since the last call of rig_open or rig_forget_log. */
const char *rig_log(void);
/* Waits until what a thread logs has the text. */
bool rig_wait_logged(const char *text, uint32_t limit_ms);
void rig_forget_log(void);

/* Fails the test, showing both, unless `text` contains `part`. */
void rig_contains(const char *text, const char *part);

#endif
