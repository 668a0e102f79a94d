/* Where in the staged tree the auditor sends ld.so.
 *
 * Freestanding, like the auditor. Paths are NUL-terminated; results in static buffers hold until
 * the next call of the same function.
 */
#ifndef BRG_VIEW_AUDIT_PLACE_H
#define BRG_VIEW_AUDIT_PLACE_H

#include "view/view.h"

/* Puts into `place` where the file of an absolute original path lies staged: its folder spelled as
 * in the original where that leads to the same folder, because ld.so takes $ORIGIN from it; else
 * resolved. Never shorter than `path`: the original name must fit into the same buffer. Returns 0
 * if there is no such place; does not look whether the file is there. */
int audit_staged_place(const struct view *v, const char *path, char *place, size_t size);

/* A path in the staged tree at which there is nothing, for one that is known to be missing: ld.so
 * finds that out without asking the shared file system. Without the staged tree in front it reads
 * as `path` does (hook_dlerror() takes that away), relative ones too. `path` itself if too long. */
char *audit_missing_place(const struct view *v, const char *path);

/* ld.so remembers that a directory of its search path is missing and never tries it again. A folder
 * that exists but has nothing staged must not look missing: makes the one of `candidate`, a path in
 * the staged tree, empty. */
void audit_make_folder(const struct view *v, const char *candidate);

#endif
