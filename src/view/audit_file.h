/* What the auditor asks of files, by system calls alone: it has no libc.
 *
 * Paths are as the kernel is to see them. None of these changes anything.
 */
#ifndef BRG_VIEW_AUDIT_FILE_H
#define BRG_VIEW_AUDIT_FILE_H

int audit_is_there(const char *path); /* and may be read */
int audit_is_elf(const char *path);
/* Whether ld.so would take the file: it is there and is for this kind of machine. */
int audit_is_loadable(const char *path);

#endif
