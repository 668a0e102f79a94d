/* `put --held`: the processes start, and stage nothing before rank 0 has read a line. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "stage/put.h"

#define NOT_WANTED UINT64_MAX
#define LOOK_MS 100 /* a signal may have gone to a thread of MPI's */

/* The line's bytes so far; without its end nobody has finished saying it. */
struct line {
    char *bytes;
    size_t n, room;
};

/* Returns 1 at the line's end, 0 if there is more to come, or -errno. */
static int read_more(struct line *l)
{
    if (l->room - l->n < 4096) {
        char *grown = realloc(l->bytes, l->room * 2 + 8192);
        if (!grown)
            return -ENOMEM;
        l->bytes = grown;
        l->room = l->room * 2 + 8192;
    }
    ssize_t got = read(STDIN_FILENO, l->bytes + l->n, l->room - l->n);
    if (got < 0) /* EAGAIN: somebody else has what is there, or made it so */
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (got == 0)
        return -ENODATA;
    char *end = memchr(l->bytes + l->n, '\n', (size_t)got);
    l->n += (size_t)got;
    if (end)
        *end = '\0';
    return end != NULL;
}

static int read_line(struct line *l)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    int rc = 0;
    while (!rc) {
        if (put_interrupted)
            return -EINTR;
        if (poll(&in, 1, LOOK_MS) > 0)
            rc = read_more(l);
    }
    return rc < 0 ? rc : 0;
}

static int tell(struct stream_net *net, void *bytes, size_t n)
{
    struct stream_request request = {0};
    struct relay_job patience = {.net = net,
                                 .interrupted = &put_interrupted,
                                 .timeout_ns = UINT64_MAX, /* who looks takes his time */
                                 .grace_ns = PUT_GRACE_NS};
    int rc = net->broadcast(net, bytes, n, 0, &request);
    return rc ? rc : relay_wait(&patience, &request);
}

/* The numbers that the line says, or NULL and why. */
static uint32_t *understand(const struct line *l, size_t *found, struct brg_error *err)
{
    uint32_t *changed = malloc((strlen(l->bytes) / 2 + 1) * sizeof *changed);
    if (!changed)
        brg_error_system(err, -ENOMEM, "a line of %zu bytes", l->n);
    else if (put_numbers(l->bytes, changed, found)) {
        brg_error_set(err, -EINVAL, "%zu bytes of input are no list of numbers", l->n);
        free(changed);
        changed = NULL;
    }
    return changed;
}

/* On rank 0: what the line says, for all. NULL, with *n not wanted, if there is none, and why. */
static uint32_t *hear(uint64_t *n, struct brg_error *err)
{
    struct line line = {0};
    uint32_t *changed = NULL;
    size_t found = 0;
    int rc = read_line(&line);
    if (rc == -ENODATA)
        brg_error_set(err, rc, "the input ended after %zu bytes, before its line did", line.n);
    else if (rc)
        brg_error_system(err, rc, "reading the input, after %zu bytes", line.n);
    else
        changed = understand(&line, &found, err);
    *n = changed ? found : NOT_WANTED;
    free(line.bytes);
    return changed;
}

int put_hear(struct put_options *o, struct stream_net *net, int *stuck, struct brg_error *err)
{
    uint64_t begun = brg_clock_ns(), n = NOT_WANTED;
    brg_error_set(err, 0, "not all nodes heard it");
    uint32_t *changed = net->rank ? NULL : hear(&n, err);
    *stuck = tell(net, &n, sizeof n) != 0;
    if (*stuck || n == NOT_WANTED)
        return -ECANCELED;
    if (net->rank)
        changed = malloc((n + 1) * sizeof *changed);
    /* Without memory the others wait for one who does not come: they are told by the abort. */
    *stuck = !changed || (n && tell(net, changed, n * sizeof *changed));
    if (*stuck)
        return -ECANCELED;
    o->job.changed = changed; /* for as long as the process lives */
    o->job.n_changed = n;
    uint64_t waited = brg_clock_ns() - begun; /* what was not staging is not counted as such */
    o->start_ns += waited;
    o->ready_ns += waited;
    return 0;
}
