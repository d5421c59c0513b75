/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that one process is in, in a file that outlives it.
 *
 * `FOLDER/running/` holds one file for each process, of fixed size, mapped and locked by it.  A
 * file that nobody has locked is of a process that is gone.  A NULL file: nothing is kept. Threads:
 * the caller's lock. */
#ifndef LOAD_BREADCRUMB_FILE_H
#define LOAD_BREADCRUMB_FILE_H

enum { BREADCRUMB_CALLS = 16 };

struct breadcrumb_file;

/* Makes the folders; NULL where that fails. */
struct breadcrumb_file *breadcrumb_file_create(const char *folder);
/* Also from the folder. */
void breadcrumb_file_remove(struct breadcrumb_file *file);

void breadcrumb_file_set(struct breadcrumb_file *file, unsigned place, const char *path,
                         const char *slot);
void breadcrumb_file_clear(struct breadcrumb_file *file, unsigned place);

#endif
