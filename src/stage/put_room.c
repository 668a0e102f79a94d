/* Whether a node has room for the image, told before any byte moves; then the folder to fill. What
 * must stay true: a node that has the image already needs none. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "stage/put.h"

void put_make_room(struct put *p)
{
    struct brg_error err;
    if (p->already || p->err.code)
        return;
    int rc = space_free(p->folder.fd, &p->have);
    if (rc)
        put_fail_text(p, rc, "cannot see how much is free in %s", p->folder.path);
    else if (p->have.bytes < p->need.bytes)
        put_fail_text(
            p, -ENOSPC,
            "%s has room for %" PRIu64 " MiB, the image needs %" PRIu64
            " MiB: give the job more memory, cap the image's with --memory, or choose another "
            "folder with BRIGADE_NODE_DIR",
            p->folder.path, p->have.bytes >> 20, (p->need.bytes >> 20) + 1);
    else if (p->have.inodes < p->need.inodes)
        put_fail_text(p, -ENOSPC,
                      "%s has room for %" PRIu64 " more files, the image has %" PRIu64
                      ": choose another folder with BRIGADE_NODE_DIR",
                      p->folder.path, p->have.inodes, p->need.inodes);
    else if (folder_tmp_create(&p->folder, p->id, &p->tmp, &err))
        put_fail(p, &err);
}
