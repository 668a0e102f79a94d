/* brigade-slowfs BACKING MOUNTPOINT: serves one node's mount of the slow file system (slowfs.h).
 *
 *   --queue FILE       the page of the shared queue; the same for all nodes
 *   --counters FILE    the page in which this node counts (counters.h)
 *   --service-us N     microseconds that one metadata request takes
 *   --servers N        how many requests are served at a time
 *
 * Returns once the file system is mounted; a background process serves it until it is unmounted.
 */
#include "lab/slowfs.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_THREADS 256 /* each may be asleep, waiting for its turn or for a lock */

static struct slow_queue *queue;
static struct lab_page *page;
static int servers = 1;
static int64_t service_ns;

#define NAME_OF(id, name) {name, 0},
static const struct lab_kind_name names[] = {SLOW_REQUESTS(NAME_OF)};
#undef NAME_OF

void slow_serve(enum slow_request kind)
{
    lab_count(&page->kinds[kind].count, 1);
    slow_queue_wait(queue, servers, service_ns);
}

void slow_count_read(uint64_t bytes)
{
    lab_count(&page->bytes_read, bytes);
}

void slow_count_written(uint64_t bytes)
{
    lab_count(&page->bytes_written, bytes);
}

static void op_init(void *data, struct fuse_conn_info *connection)
{
    (void)data;
    unsigned wanted = FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_ATOMIC_O_TRUNC;
    connection->want |= wanted & connection->capable;
    connection->time_gran = 1;
}

static int fail(const char *what, const char *where)
{
    fprintf(stderr, "brigade-slowfs: %s %s: %s\n", what, where, strerror(errno));
    return 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: brigade-slowfs --queue FILE --counters FILE [--service-us N]"
                    " [--servers N] BACKING MOUNTPOINT\n");
    return 2;
}

/* Every inode the kernel knows holds a descriptor here. */
static void allow_many_files(void)
{
    struct rlimit limit = {1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int serve(struct fuse_session *session, const char *mountpoint)
{
    if (fuse_set_signal_handlers(session) != 0)
        return fail("setting signal handlers", "");
    if (fuse_session_mount(session, mountpoint) != 0)
        return fail("mounting on", mountpoint);
    fuse_daemonize(0);
#if FUSE_USE_VERSION >= 312
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_max_threads(config, MAX_THREADS);
    int result = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
#else
    struct fuse_loop_config config = {.clone_fd = 1, .max_idle_threads = 10};
    int result = fuse_session_loop_mt(session, &config);
#endif
    fuse_session_unmount(session);
    return result != 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"queue", required_argument, NULL, 'q'},
                                            {"counters", required_argument, NULL, 'c'},
                                            {"service-us", required_argument, NULL, 't'},
                                            {"servers", required_argument, NULL, 'n'},
                                            {NULL, 0, NULL, 0}};
    const char *queue_path = NULL, *page_path = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'q': queue_path = optarg; break;
        case 'c': page_path = optarg; break;
        case 't': service_ns = (int64_t)(atof(optarg) * 1000.0); break;
        case 'n': servers = atoi(optarg); break;
        default: return usage();
        }
    }
    if (argc - optind != 2 || !queue_path || !page_path || service_ns < 0 || servers < 1 ||
        servers > SLOW_MAX_SERVERS)
        return usage();
    const char *backing = argv[optind], *mountpoint = argv[optind + 1];
    allow_many_files();
    umask(0);
    if (!(queue = slow_queue_open(queue_path)))
        return fail("opening the queue", queue_path);
    if (!(page = lab_page_open(page_path, names, SLOW_REQUEST_KINDS)))
        return fail("opening the counters", page_path);
    int fd = open(backing, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || slow_inode_start(fd) != 0)
        return fail("opening", backing);

    struct fuse_lowlevel_ops ops = {.init = op_init};
    slow_meta_operations(&ops);
    slow_data_operations(&ops);
    slow_lock_operations(&ops);
    char *words[] = {argv[0], "-o",
                     "allow_other,default_permissions,nosuid,nodev,"
                     "fsname=brigade-slow,subtype=brigade-slow",
                     NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    struct fuse_session *session = fuse_session_new(&args, &ops, sizeof ops, NULL);
    if (!session)
        return 1; /* libfuse has said why */
    int result = serve(session, mountpoint);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return result;
}
