/* The environment that puts a process and its children under the view. */
#ifndef BRG_VIEW_RANK_ENV_H
#define BRG_VIEW_RANK_ENV_H

/* Sets what docs/design/0002-start-up-contracts.md lists, for the views named in the comma list
 * `views`; `libraries` is the folder of the auditor and the preloaded library, `python` that of
 * the Python view (left out if it does not exist). The user's values are kept in BRIGADE_SAVED_*.
 * `watch`: what modules do is to be recorded, too (watch.h). 0; -ENOENT if a library is not there
 * or its path cannot stand in LD_PRELOAD; -ENOMEM. */
int rank_env_set(const char *views, const char *libraries, const char *python, int watch);

/* Whether the comma list `views` names `view`. */
int rank_env_names(const char *views, const char *view);

/* Takes away what a failed start has set, and gives the user's values back. */
void rank_env_clear(void);

#endif
