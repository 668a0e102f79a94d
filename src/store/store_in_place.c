/* How long a file is, and making it longer or shorter at once: of a file in place (store.h). */
#include <errno.h>
#include <sys/stat.h>

#include "store/store_inside.h"
#include "store/store_io.h"

int store_resize(struct io_store *s, uint64_t size, struct brg_error *err)
{
    int rc = store_need_file(s, err);
    if (rc)
        return rc;
    rc = store_io_resize(s->fd, size);
    return rc ? store_failed(err, rc, s->token.path, (int64_t)size, "set the size of") : 0;
}

int store_size(struct io_store *s, uint64_t *size, struct brg_error *err)
{
    struct stat st;
    int rc = store_need_file(s, err);
    if (rc)
        return rc;
    if (fstat(s->fd, &st))
        return store_failed(err, -errno, s->token.path, -1, "find the size of");
    *size = (uint64_t)st.st_size;
    return 0;
}
