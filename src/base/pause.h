/* Waiting for what comes without a word that would wake anybody: look again, then let others run,
 * then sleep, longer each time. Whoever has more ranks than processors waits for a rank that does
 * not run: not to sleep would take the time from it. */
#ifndef BRG_BASE_PAUSE_H
#define BRG_BASE_PAUSE_H

#include <stdint.h>

#define PAUSE_MOST_NS UINT64_C(200000) /* the longest sleep between two looks */

/* How long to let others run for what all come to at once. */
#define PAUSE_TOGETHER_NS UINT64_C(20000000)

/* All zero before the first look. */
struct pause {
    uint64_t began_ns, nap_ns;
};

/* Between two looks. yields_ns: how long others are let run before it sleeps. 1 if it slept. */
int pause_before_next(struct pause *pause, uint64_t yields_ns);

#endif
