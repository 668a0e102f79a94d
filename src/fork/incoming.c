/* See incoming.h. */
#include "fork/incoming.h"
#include "base/sys.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    ASK_MS = 5000 /* for the rest of a request */
};

static int is_whole(const struct fork_request *r, uint64_t bytes)
{
    return bytes >= sizeof *r && r->magic == FORK_MAGIC && r->bytes == bytes &&
           r->descriptors_off == sizeof *r &&
           r->environment_off == sizeof *r + r->n_descriptors * sizeof(int32_t) &&
           r->environment_off + r->environment_bytes == bytes;
}

static int map_file(struct incoming *in)
{
    struct stat st;
    if (sys_fstat(in->request.file, &st) != 0 || st.st_size < (int64_t)sizeof *in->request.head)
        return -EBADMSG;
    const struct fork_request *r =
        sys_map((size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, in->request.file);
    if (!r)
        return -ENOMEM;
    if (!is_whole(r, (uint64_t)st.st_size)) {
        sys_unmap((void *)r, (size_t)st.st_size);
        return -EBADMSG;
    }
    in->request.head = r;
    in->request.environment = (const char *)r + r->environment_off;
    in->passed_bytes = (r->n_descriptors + 1) * sizeof *in->passed;
    in->passed = sys_map(in->passed_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    for (uint32_t i = 0; in->passed && i < r->n_descriptors; i++)
        in->passed[i] = -1;
    return in->passed ? 0 : -ENOMEM;
}

static int receive_descriptors(struct incoming *in, int from)
{
    struct fork_message m;
    int passed[FORK_PASSED];
    for (uint32_t got = 0; got < in->request.head->n_descriptors; got += m.n_passed) {
        struct pollfd ready = {from, POLLIN, 0};
        if (poll(&ready, 1, ASK_MS) != 1)
            return -ETIMEDOUT;
        int rc = fork_receive(from, &m, passed, 1);
        if (rc != 1)
            return rc ? rc : -EPIPE;
        int fits = m.kind == FORK_DESCRIPTORS && m.n_passed > 0 &&
                   m.n_passed <= in->request.head->n_descriptors - got;
        for (uint32_t i = 0; i < m.n_passed && !fits; i++)
            sys_close(passed[i]);
        if (!fits)
            return -EBADMSG;
        memcpy(in->passed + got, passed, m.n_passed * sizeof *passed);
    }
    return 0;
}

int incoming_take(struct incoming *in, int socket, int file, int line)
{
    *in = (struct incoming){.request = {.file = file}, .line = line};
    int err = map_file(in);
    return err ? err : receive_descriptors(in, socket);
}

void incoming_close_passed(struct incoming *in)
{
    for (uint32_t i = 0; in->passed && i < in->request.head->n_descriptors; i++)
        if (in->passed[i] >= 0)
            sys_close(in->passed[i]);
}

void incoming_forget(struct incoming *in)
{
    struct template_request *r = &in->request;
    if (r->head)
        sys_unmap((void *)r->head, r->head->bytes);
    if (in->passed)
        sys_unmap(in->passed, in->passed_bytes);
    if (r->file >= 0)
        sys_close(r->file);
    if (in->line >= 0)
        sys_close(in->line);
    *in = INCOMING_NONE;
}
