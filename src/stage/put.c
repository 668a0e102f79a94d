/* brigade-stage put: brings an image into the memory of every node, or leaves nothing anywhere.
 *
 *   0  ranks are put in the order of the ring: see place.h
 *   1  rank 0 reads the header and tells it; each node looks whether it has the image. With
 *      --memory rank 0 reads the head too, and may cut it to that: see fit.h
 *   2  rank 0 reads the head and tells what is needed; each node looks whether it has room
 *   3  the head goes round; each node makes directories and links
 *   4  the blocks go round; each node verifies, decompresses and writes
 *   5  each node completes its folder;  6  each node publishes it
 * Between any two steps all nodes agree that none has failed. A process that fails keeps taking
 * part until the next agreement. What must stay true: a node changes nothing under a final name
 * before all are complete; after a failure every process has taken away what it made.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "stage/fault.h"
#include "stage/put.h"

volatile sig_atomic_t put_interrupted;

int put_fail(struct put *p, const struct brg_error *err)
{
    pthread_mutex_lock(&p->err_lock);
    if (!p->err.code) {
        p->err = *err;
        if (err->code == -ENOSPC && p->folder.fd >= 0)
            space_free(p->folder.fd, &p->have);
    }
    pthread_mutex_unlock(&p->err_lock);
    return err->code;
}

int put_fail_text(struct put *p, int code, const char *format, ...)
{
    struct brg_error err = {.code = code};
    va_list args;
    va_start(args, format);
    vsnprintf(err.text, sizeof err.text, format, args);
    va_end(args);
    return put_fail(p, &err);
}

void put_undo(struct put *p)
{
    int removed;
    if (p->folder.fd < 0)
        return;
    folder_tmp_remove(&p->folder, &p->tmp);
    if (p->job_added || p->published)
        folder_job_remove(&p->folder, p->id, p->options->job.name, !p->published, NULL, NULL,
                          &removed, NULL);
    p->job_added = p->published = 0;
}

/* ---- agreement ---- */

void put_wait(struct put *p, int rc, struct stream_request *request)
{
    struct relay_job patience = put_patience(p);
    if (!rc)
        rc = relay_wait(&patience, request);
    if (!rc)
        return;
    p->stuck = 1;
    if (rc == -EINTR)
        put_fail_text(p, rc, "interrupted by signal %d", (int)put_interrupted);
    else
        put_fail_text(p, rc, "the other nodes did not answer: %s", strerror(-rc));
}

void put_broadcast(struct put *p, void *bytes, size_t n, uint32_t root)
{
    struct stream_request request = {0};
    put_wait(p, p->net->broadcast(p->net, bytes, n, root, &request), &request);
}

static void describe_failure(struct put *p, struct put_failure *f)
{
    memset(f, 0, sizeof *f);
    gethostname(f->host, sizeof f->host - 1);
    snprintf(f->reason, sizeof f->reason, "%s", p->err.text);
    f->damaged = p->err.code == -EBADMSG;
    if (p->err.code == -ENOSPC) {
        f->needed = p->need.bytes;
        f->free = p->have.bytes;
    }
}

/* Returns 0 when no process has failed; otherwise p->failure is that of the first rank that did. */
static int agree(struct put *p)
{
    struct stream_request request = {0};
    int64_t mine[2] = {INT64_MAX, p->already}, least[2];
    if (fault_at(FAULT_STEP, p->n_agreed++))
        raise(SIGKILL);
    if (put_interrupted && !p->stuck)
        put_fail_text(p, -EINTR, "interrupted by signal %d", (int)put_interrupted);
    if (p->err.code)
        mine[0] = p->net->rank;
    if (!p->stuck)
        put_wait(p, p->net->minimum(p->net, mine, least, 2, &request), &request);
    if (!p->stuck && least[0] == INT64_MAX) {
        p->all_already = (int)least[1];
        return 0;
    }
    describe_failure(p, &p->failure);
    if (!p->stuck) {
        struct put_failure told = p->failure;
        put_broadcast(p, &told, sizeof told, (uint32_t)least[0]);
        if (!p->stuck)
            p->failure = told;
    }
    return -1;
}

/* ---- steps; what fails is noted in p->err ---- */

static int open_image(struct put *p)
{
    struct stat st;
    struct brg_error err;
    if (p->image_fd >= 0)
        return 0;
    p->image_fd = open(p->options->image, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (p->image_fd < 0 || fstat(p->image_fd, &st)) {
        brg_error_system(&err, -errno, "cannot open the image %s", p->options->image);
        return put_fail(p, &err);
    }
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)BRG_PAGE)
        return put_fail_text(p, -EBADMSG, "%s is no Brigade image", p->options->image);
    /* Readers take turns: what the kernel would read ahead is another node's. */
    posix_fadvise(p->image_fd, 0, 0, POSIX_FADV_RANDOM);
    if (put_header(p)->magic && (uint64_t)st.st_size != put_header(p)->total_bytes)
        return put_fail_text(p, -ESTALE, "%s has another size here than on the first node",
                             p->options->image);
    return 0;
}

static void read_header(struct put *p)
{
    struct brg_error err;
    struct stat st;
    if (open_image(p) || put_read_image(p, p->page, BRG_PAGE, 0))
        return;
    if (fstat(p->image_fd, &st) == 0 &&
        brg_header_check(p->page, (uint64_t)st.st_size, p->options->image, &err))
        put_fail(p, &err);
}

static void look_whether_it_is_here(struct put *p)
{
    struct brg_error err;
    int found = 0;
    brg_id_text(put_header(p)->id, p->id);
    if (folder_open(&p->folder, p->options->base, 1, &err) ||
        folder_job_add(&p->folder, p->id, &p->options->job, BRG_NONE, &found, &err)) {
        put_fail(p, &err);
        return;
    }
    folder_sweep(&p->folder, NULL);
    dead_sweep(&p->folder, &p->options->dead, p->options->job.name);
    p->already = p->job_added = found;
}

static void allocate_head(struct put *p)
{
    p->head = malloc(put_header(p)->data_off);
    if (p->head)
        memcpy(p->head, p->page, BRG_PAGE);
    else
        put_fail_text(p, -ENOMEM, "no memory for the index: %" PRIu64 " bytes",
                      put_header(p)->data_off);
}

static void read_head(struct put *p)
{
    const struct brg_image_header *h = put_header(p);
    struct brg_error err;
    if (put_read_image(p, p->head + BRG_PAGE, h->data_off - BRG_PAGE, BRG_PAGE))
        return;
    if (brg_head_check(p->head, p->options->image, &err)) {
        put_fail(p, &err);
        return;
    }
    long page = sysconf(_SC_PAGESIZE);
    uint32_t page_bytes = page > 4096 ? (uint32_t)page : 4096;
    int rc = fit_memory(p->head, page_bytes, p->options->memory_bytes, &p->fit, &err);
    if (rc)
        put_fail(p, &err);
    memcpy(p->page, p->head, BRG_PAGE);
    p->need = space_needed(p->head, page_bytes);
}

/* Before anybody looks for the image by its id: cut, it has another. */
static void start_head(struct put *p)
{
    allocate_head(p);
    if (p->net->rank == 0 && !p->err.code)
        read_head(p);
}

/* Readers open the image before anything moves: who cannot read it says so now. */
static void open_as_reader(struct put *p)
{
    struct plan plan;
    plan_spread(&plan, p->net->size, p->options->readers, put_header(p)->n_blocks);
    if (put_header(p)->n_blocks && plan_flow_at(&plan, p->net->rank) != PLAN_END)
        open_image(p);
}

static void prepare_tree(struct put *p)
{
    struct brg_error err;
    if (p->net->rank && brg_head_check(p->head, p->options->image, &err)) {
        put_fail(p, &err);
        return;
    }
    if (put_plan_blocks(p) || p->already)
        return;
    if (tree_create(&p->tree, p->tmp.fd, p->head, &err))
        put_fail(p, &err);
}

static int write_index(struct put *p)
{
    const struct brg_image_header *h = put_header(p);
    int fd = openat(p->tmp.fd, "index", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    int rc = fd < 0 ? -errno : brg_io_pwrite(fd, p->head + h->index_off, h->index_bytes, 0, NULL);
    if (fd >= 0)
        close(fd);
    return rc;
}

static void complete(struct put *p)
{
    struct brg_error err;
    if (p->already)
        return;
    int rc = tree_finish(&p->tree, &err);
    if (!rc && (rc = write_index(p)))
        brg_error_system(&err, rc, "cannot write the index into the node's memory");
    if (!rc)
        rc = folder_job_create(p->tmp.fd, &p->options->job, brg_head_index(p->head)->n_entries,
                               &err);
    if (rc)
        put_fail(p, &err);
}

static void publish(struct put *p)
{
    struct brg_error err;
    int found = 0;
    if (p->already)
        return;
    if (folder_publish(&p->folder, p->id, &p->options->job, brg_head_index(p->head)->n_entries,
                       &p->tmp, &found, &err))
        put_fail(p, &err);
    else if (found)
        p->job_added = 1;
    else
        p->published = 1;
}

static int all_well_so_far(const struct put *p)
{
    return !p->err.code && !p->stuck && !p->elsewhere;
}

/* Returns 0 when every node has the image, -1 otherwise (p->failure). */
static int course(struct put *p)
{
    struct brg_error err;
    put_place(p);
    if (p->stuck)
        return agree(p);
    if (folder_job_check(p->options->job.name, &err))
        put_fail(p, &err);
    if (p->net->rank == 0)
        read_header(p);
    if (p->net->rank == 0 && !p->err.code && p->options->memory_bytes != UINT64_MAX)
        start_head(p);
    if (p->err.code)
        memset(p->page, 0, sizeof p->page); /* magic 0: there is no image */
    put_broadcast(p, p->page, sizeof p->page, 0);
    if (!p->err.code && put_header(p)->magic)
        look_whether_it_is_here(p);
    if (agree(p))
        return -1;
    if (p->all_already)
        return 0;

    if (!p->head)
        start_head(p);
    put_broadcast(p, &p->need, sizeof p->need, 0);
    if (!p->stuck && p->need.bytes) {
        put_make_room(p);
        open_as_reader(p);
    }
    if (agree(p))
        return -1;

    if (p->net->size > 1)
        put_move_head(p);
    if (all_well_so_far(p))
        prepare_tree(p);
    if (agree(p))
        return -1;

    put_move_blocks(p);
    if (all_well_so_far(p))
        complete(p);
    if (agree(p))
        return -1;
    publish(p);
    return agree(p);
}

static uint32_t choose_workers(const struct put *p)
{
    cpu_set_t allowed;
    if (p->options->workers)
        return p->options->workers < PUT_MAX_WORKERS ? p->options->workers : PUT_MAX_WORKERS;
    int n = sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : CPU_COUNT(&allowed);
    if (p->net->size > 1)
        n /= 2; /* the MPI thread and the reading one work too */
    return n < 1 ? 1 : n > (int)PUT_MAX_WORKERS ? PUT_MAX_WORKERS : (uint32_t)n;
}

int put_run(const struct put_options *options, struct stream_net *net, int *stuck)
{
    struct put *p = calloc(1, sizeof *p);
    if (!p) {
        *stuck = 1;
        return EXIT_NOT_STAGED;
    }
    p->options = options;
    p->net = p->own_net = net;
    p->image_fd = p->folder.fd = p->folder.lock_fd = p->tmp.fd = p->tree.root_fd = -1;
    pthread_mutex_init(&p->err_lock, NULL);
    p->n_workers = choose_workers(p);
    umask(0); /* modes are the source's; what is not for others lies in a 0700 folder */
    int failed = course(p) != 0;
    if (failed)
        put_undo(p);
    put_report(p, failed, p->stuck);
    *stuck = p->stuck;
    if (p->stuck)
        return failed ? EXIT_NOT_STAGED : 0; /* the net may still write into p */
    put_unplace(p);
    tree_destroy(&p->tree);
    if (p->image_fd >= 0)
        close(p->image_fd);
    folder_close(&p->folder);
    free(p->head);
    free(p->firsts);
    free(p->stops);
    pthread_mutex_destroy(&p->err_lock);
    free(p);
    return failed ? EXIT_NOT_STAGED : 0;
}
