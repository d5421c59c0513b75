/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object with the entry of a plugin that wants a function that nobody has. */
int nobody_has_this(void);
int frit_plugin_entry_v1(void);

int frit_plugin_entry_v1(void)
{
    return nobody_has_this();
}
