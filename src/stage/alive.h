/* Whether a job still runs on this node: asked of /proc, with nothing changed.
 *
 * Every program under a view that can map files maps its job's state; a static one does not, but
 * its wrapper has left its process number and start time in a slot of the state. A process that
 * cannot be looked into, as of a program that may only be executed, is known by its slot alone.
 */
#ifndef BRG_STAGE_ALIVE_H
#define BRG_STAGE_ALIVE_H

#include <stdint.h>
#include <time.h>

/* A process of this user that uses the job's state, or 0. `state_fd`: the state, open for reading;
 * `tail`: how the path ends under which it is mapped: "<id>/jobs/<job>/state", or
 * "jobs/<job>/state" for that job in any image. Processes in other PID namespaces are not seen. */
uint32_t alive_user_of(int state_fd, const char *tail);

/* Whether `when` (CLOCK_REALTIME) lies some seconds before this process started. */
int alive_is_older(const struct timespec *when);

#endif
