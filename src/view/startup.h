/* How long a process starts up: what is the user's own is answered from the image only until then.
 *
 * It is over, for good, when the process has used 2 s of its own time, or 30 s have passed on the
 * clock, since it last looked up installed software (or since its first look-up, if it looks up
 * none); when its rank was started 120 s ago, whatever it looks up; and before it has begun, in a
 * process of a rank that has not looked up software for 30 s: a job that is driven by a script.
 *
 * Freestanding, async-signal-safe, thread-safe.
 */
#ifndef BRG_VIEW_STARTUP_H
#define BRG_VIEW_STARTUP_H

#include "view/view.h"

/* Whether the process is still starting up. */
int startup_goes_on(const struct view *v);

/* Notes that software was looked up. */
void startup_note(const struct view *v);

/* The process has been started, or has become a rank: it begins to start up with its next look-up.
 */
void startup_begin(struct view *v);

/* The process is a child of fork: it starts up as long as its parent, with a clock of its own. (Of
 * one that nobody tells of, a child of clone, the parent's time counts.) */
void startup_forked(struct view *v);

#endif
