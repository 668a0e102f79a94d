/* brigade-rank --probe: what a node allows, for `brigade doctor`. */
#ifndef BRG_VIEW_PROBE_H
#define BRG_VIEW_PROBE_H

/* Prints one JSON object in a line of less than 1,000 bytes: of each thing true, null if it could
 * not be tried, or what went wrong. `folder` holds the auditor and the preloaded library, `base` is
 * where staged folders would lie. Returns an exit status. */
int probe_print(const char *folder, const char *base);

#endif
