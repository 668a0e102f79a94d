/* Host lists as Slurm writes them: "n[0-3,7],login,r[01-10]c[1-4]". */
#ifndef BRG_STAGE_HOSTLIST_H
#define BRG_STAGE_HOSTLIST_H

/* Whether `list` names `host`. A list with a mistake in it names nothing from there on. Numbers
 * with leading zeros keep their width. "ALL" names every host. */
int hostlist_has(const char *list, const char *host);

#endif
