/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is not a plugin. */
int plain_answer(void);

int plain_answer(void)
{
    return 42;
}
