/* SPDX-License-Identifier: Apache-2.0 */
/* A second queue.  Where there is one, the first holds its last copies and fills back until
 * somebody comes to it or waits for it, so that an ignored wait shows. */
#include "wrong_queue.h"

enum { HELD = 1024 };

static struct {
    void *device; /* whose first queue holds something back; NULL: none does */
    const void *has_second;
    frit_cmd cmds[HELD];
    uint32_t n;
} held;

static char second;

frit_status wrong_queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                               frit_err *err)
{
    (void)desc;
    if (held.has_second)
        return fake_fail(fake_of(self), err, FRIT_UNSUPPORTED, "two queues are enough");
    held.has_second = self;
    *out = (frit_queue *)(void *)&second;
    return FRIT_OK;
}

void wrong_queue_destroy(void *self, frit_queue *queue)
{
    if (queue && held.has_second == self)
        held.has_second = NULL;
}

static frit_status run_held(void *self, frit_err *err)
{
    uint64_t value;

    if (held.device != self)
        return FRIT_OK;
    held.device = NULL;
    return fake_of(self)->plain.submit(self, NULL, held.cmds, held.n, sizeof(held.cmds[0]), NULL, 0,
                                       &value, err);
}

static bool is_made(const void *self, const frit_queue *queue)
{
    return !queue || wrong_row == WRONG_STRANGER ||
           (held.has_second == self && queue == (const void *)&second);
}

frit_status wrong_queue_check(void *self, const frit_queue *queue, const frit_point *waits,
                              uint32_t n_waits, frit_err *err)
{
    const struct fake *fake = fake_of(self);
    frit_failure failure = {.struct_size = sizeof(failure)};
    bool made = is_made(self, queue);

    for (uint32_t i = 0; i < n_waits; i++) {
        made &= is_made(self, waits[i].queue);
        if (wrong_row != WRONG_TO_COME &&
            fake->plain.wait(self, NULL, waits[i].value, 0, &failure, err))
            return FRIT_INVALID;
    }
    return made ? FRIT_OK : fake_fail(fake, err, FRIT_INVALID, "a queue that was never made");
}

frit_status wrong_queue_enter(void *self, const frit_queue *queue, const frit_point *waits,
                              uint32_t n_waits, frit_err *err)
{
    frit_status status = wrong_queue_check(self, queue, waits, n_waits, err);

    if (status)
        return status;
    if (!queue)
        return run_held(self, err);
    for (uint32_t i = 0; i < n_waits && wrong_row != WRONG_WAITS; i++) {
        if (!waits[i].queue)
            return run_held(self, err);
    }
    return FRIT_OK;
}

bool wrong_queue_hold(void *self, const frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                      uint32_t stride)
{
    if (queue || held.has_second != self || count > HELD)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const void *cmd = (const char *)cmds + (size_t)stride * i;

        held.cmds[i] = *(const frit_cmd *)cmd;
        if (held.cmds[i].kind == FRIT_CMD_LAUNCH)
            return false;
    }
    held.device = self;
    held.n = count;
    return true;
}
