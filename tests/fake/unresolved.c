/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that wants a function that nobody has. */
int nobody_has_this(void);
int unresolved_answer(void);

int unresolved_answer(void)
{
    return nobody_has_this();
}
