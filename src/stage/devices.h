/* The device numbers of an image's files on this node.
 *
 * Each node numbers what it mounts by itself (NFS, FUSE, whatever has no disk of its own), so the
 * numbers of the host where the image was made are not those that fstat gives of a file here.
 * Which mount a path lies on is read from the node's own table: no file system is asked.
 */
#ifndef BRG_STAGE_DEVICES_H
#define BRG_STAGE_DEVICES_H

#include "base/mountinfo.h"
#include "image/index.h"
#include "view/state.h"

/* Fills `devices` with the numbers that differ here; returns how many. An image's number stays as
 * it is when it is not known what it is here: its mount has yet to come (autofs, a part of an
 * export that is mounted when it is first entered), or there are too many. */
uint32_t devices_find(const struct brg_index *x, const struct mountinfo *here,
                      struct brg_device devices[BRG_STATE_DEVICES]);

/* The same for the index in a staged folder, and this process's mounts. 0 if one of them cannot be
 * read. */
uint32_t devices_of_staged(int staged_fd, struct brg_device devices[BRG_STATE_DEVICES]);

#endif
