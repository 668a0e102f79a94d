/* A template that is no Python: the program, stopped before main or before any constructor. */
#ifndef BRG_VIEW_FORK_PROGRAM_H
#define BRG_VIEW_FORK_PROGRAM_H

#include "view/view.h"

/* Whether a process that is started as a template of that kind will stop. */
int fork_program_stops(const char *kind);

/* From the library's constructor, in a template. Of kind "preinit" it serves here, and returns in
 * each rank; of kind "main" it will, when the auditor says that main is next. */
void fork_program_begin(struct view *v, char **argv, char **envp);

#endif
