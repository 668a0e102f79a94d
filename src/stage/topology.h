/* Which switches lie above a node: from a file in the syntax of Slurm's topology.conf.
 *
 *   SwitchName=spine Switches=leaf[0-1]
 *   SwitchName=leaf0 Nodes=n[0-3]          # BlockName=b0 Nodes=n[0-3] counts as a switch, too
 *
 * Keys are matched without regard to case, others are ignored; '#' begins a comment, a backslash at
 * the end of a line continues it.
 */
#ifndef BRG_STAGE_TOPOLOGY_H
#define BRG_STAGE_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

struct topology_switch {
    const char *name, *nodes, *switches; /* "" where there are none */
};

struct topology {
    const char *path; /* the caller's */
    char *text;
    struct topology_switch *switches;
    uint32_t n;
};

/* 0, or -errno with text that names the file and the line. */
int topology_read(struct topology *t, const char *path, struct brg_error *err);
void topology_free(struct topology *t);

/* The switches above `host`, from the top down: "spine.leaf0". The part of the name before its
 * first dot will do. 0, -ENOENT: in no switch, -ELOOP: switches contain each other, or
 * -ENAMETOOLONG. */
int topology_address(const struct topology *t, const char *host, char *out, size_t room,
                     struct brg_error *err);

#endif
