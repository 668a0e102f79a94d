/* Where the auditor leaves the process's view for the preloaded library.
 *
 * They live in two link-map namespaces of one address space. The preloaded library exports this
 * object, and so does the one that watches what modules do; the auditor finds it through the
 * library's own symbol table, before any code of the library has run. NULL: no auditor, make your
 * own view.
 */
#ifndef BRG_VIEW_HANDOFF_H
#define BRG_VIEW_HANDOFF_H

struct view;

#define BRG_HANDOFF_SYMBOL "brigade_handoff"
#define BRG_PRELOAD_NAME "libbrigade-preload.so"
#define BRG_WATCH_NAME "libbrigade-preload-watch.so" /* watch.h */
#define BRG_PRELOAD_MARK "libbrigade-preload"        /* in the names of both, and in no other */
#define BRG_AUDIT_NAME "libbrigade-audit.so"

extern struct view *brigade_handoff;

#endif
