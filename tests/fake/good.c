/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that keeps every rule and runs nothing.  FAKE_ID and FAKE_DRIVER are its names. */
#include <string.h>

#include "driver.h"

static const frit_option options[] = {
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_I64,
     .name = {"devices", 7},
     .default_value = {"1", 1},
     .meaning = {"how many there are", 18},
     .min = 0,
     .max = 16},
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_STR,
     .name = {"type", 4},
     .default_value = {"software", 8},
     .meaning = {"of all devices", 14},
     .choices = {"unknown discrete accelerator integrated processor software", 58}},
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_F64,
     .name = {"speed", 5},
     .default_value = {"1.5", 3},
     .meaning = {"logged when it opens", 20}},
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_BOOL,
     .name = {"refuse", 6},
     .default_value = {"no", 2},
     .meaning = {"whether opening fails", 21}},
};

static uint32_t type_of(frit_str word)
{
    static const char *const words[] = {"unknown",    "discrete",  "accelerator",
                                        "integrated", "processor", "software"};

    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i]) == word.len && memcmp(words[i], word.ptr, word.len) == 0)
            return i;
    }
    return FRIT_DEVICE_UNKNOWN;
}

static frit_status configure(struct fake *fake, frit_err *err)
{
    void *self = fake->host->self;
    const frit_host_options *table = fake->host->get_interface(self, FRIT_STR(FRIT_HOST_OPTIONS));
    frit_str type = {NULL, 0};
    int64_t devices = 0;
    double speed = 0;
    uint32_t refuse = 0;

    if (!table || !FRIT_HAS(table, frit_host_options, get_bool) ||
        table->get_i64(self, FRIT_STR("devices"), &devices, err) ||
        table->get_str(self, FRIT_STR("type"), &type, err) ||
        table->get_f64(self, FRIT_STR("speed"), &speed, err) ||
        table->get_bool(self, FRIT_STR("refuse"), &refuse, err))
        return FRIT_INTERNAL;
    if (table->get_i64(self, FRIT_STR("type"), &devices, NULL) != FRIT_INVALID ||
        table->get_str(self, FRIT_STR("devises"), &type, NULL) != FRIT_INVALID)
        return fake_fail(fake, err, FRIT_INTERNAL, "options of a wrong type or name were given");
    if (refuse)
        return fake_fail(fake, err, FRIT_UNSUPPORTED, "refuses on request");
    fake->n_devices = (uint32_t)devices;
    fake->type = type_of(type);
    fake->core->log(self, FRIT_LOG_WARN, FRIT_STR("fake"),
                    speed > 1 ? FRIT_STR("fast") : FRIT_STR("slow"));
    return FRIT_OK;
}

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    struct fake *fake = NULL;
    frit_status status = fake_open(host, FAKE_DRIVER, &fake, err);

    if (status)
        return status;
    status = configure(fake, err);
    if (status) {
        fake_close(fake);
        return status;
    }
    *instance = fake;
    return FRIT_OK;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof(options) / sizeof(options[0]),
    .option_stride = sizeof(options[0]),
    .id = {FAKE_ID, sizeof(FAKE_ID) - 1},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .options = options,
    .open = plugin_open,
    .close = fake_close,
    .get_interface = fake_get_interface,
};

FRIT_DEFINE_PLUGIN(FAKE_ID, "1.0", "", &plugin)
