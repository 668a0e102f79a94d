/* What programs do besides writing and reading: a function each, all in the working folder. A line
 * for every rank: what was done, the code that it gave, and of a failure its rank and offset. */
#include <mpi.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "brigade/io.h"

#define BYTES 100000u

static int rank;
static char buf[BYTES];
static const char *hints;

static void tell(const char *what, int rc, const struct brg_error *err)
{
    printf("%s %d %d %d %ld\n", what, rank, rc, rc ? err->rank : -1, rc ? (long)err->offset : -1);
    fflush(stdout);
}

/* This rank's bytes, and the end. The first failure, or 0. */
static int finish(brg_file *f, struct brg_error *err)
{
    struct brg_error later;
    int rc = brg_file_write(f, (uint64_t)rank * BYTES, buf, BYTES, err);
    if (!rc)
        rc = brg_file_commit(f, err);
    brg_file_close(f, &later);
    return rc;
}

static int open_new(MPI_Comm comm, const char *name, brg_file **f, struct brg_error *err)
{
    return brg_file_open(comm, name, BRG_WRITE | BRG_CREATE, hints, f, err);
}

static int make(const char *name, struct brg_error *err)
{
    brg_file *f;
    int rc = open_new(MPI_COMM_WORLD, name, &f, err);
    return rc ? rc : finish(f, err);
}

static int a_communicator_that_is_freed(struct brg_error *err)
{
    MPI_Comm comm;
    brg_file *f, *other;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int rc = open_new(comm, "freed", &f, err);
    rc = rc ? rc : open_new(comm, "freed2", &other, err);
    MPI_Comm_free(&comm);
    rc = rc ? rc : finish(f, err);
    return rc ? rc : finish(other, err);
}

static int files_at_the_same_time(struct brg_error *err)
{
    char name[32];
    brg_file *own, *all;
    snprintf(name, sizeof name, "own%d", rank);
    int rc = open_new(MPI_COMM_SELF, name, &own, err);
    rc = rc ? rc : open_new(MPI_COMM_WORLD, "all", &all, err);
    rc = rc ? rc : brg_file_write(own, 0, buf, 10, err);
    rc = rc ? rc : finish(all, err);
    rc = rc ? rc : brg_file_commit(own, err);
    return rc ? rc : brg_file_close(own, err);
}

/* Rank 0's hints count: of ways to meet that are there already, and of one that is not. */
static int hints_of_each_rank(struct brg_error *err)
{
    static const char *const segments[] = {"1M", "64K", "1M", "128K"};
    char name[32], own[128];
    int rc = 0;
    for (int i = 0; !rc && i < 4; i++) {
        brg_file *f;
        snprintf(name, sizeof name, "hints%d", i);
        snprintf(own, sizeof own, "%s:segment=%s", hints, segments[rank ? (i + rank) % 4 : i]);
        rc = brg_file_open(MPI_COMM_WORLD, name, BRG_WRITE | BRG_CREATE, own, &f, err);
        rc = rc ? rc : finish(f, err);
    }
    return rc;
}

/* Between being opened and read: all ranks go on with the old one. */
static int a_file_that_is_replaced(struct brg_error *err)
{
    brg_file *f, *other;
    struct brg_error later;
    char old[BYTES];
    int rc = make("replaced", err);
    rc = rc ? rc : brg_file_open(MPI_COMM_WORLD, "replaced", BRG_READ, hints, &f, err);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rc && rank == 0) {
        rc = brg_file_open_alone("replaced", BRG_WRITE | BRG_CREATE, NULL, &other, err);
        rc = rc ? rc : brg_file_write(other, 3 * BYTES, "new", 3, err);
        rc = rc ? rc : brg_file_commit(other, err);
        brg_file_close(other, &later);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    rc = rc ? rc : brg_file_read(f, (uint64_t)rank * BYTES, old, BYTES, err);
    brg_file_close(f, &later);
    return rc ? rc : memcmp(old, buf, BYTES) != 0;
}

static int a_child_that_exits(struct brg_error *err)
{
    brg_file *f;
    int rc = open_new(MPI_COMM_WORLD, "forked", &f, err);
    rc = rc ? rc : brg_file_write(f, (uint64_t)rank * 10, buf, 10, err);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return rc ? rc : finish(f, err);
}

static int another_folder(struct brg_error *err)
{
    char here[4096];
    brg_file *f;
    int rc = open_new(MPI_COMM_WORLD, "relative", &f, err);
    if (!getcwd(here, sizeof here) || chdir("/"))
        return 1;
    rc = rc ? rc : finish(f, err);
    return chdir(here) ? 1 : rc;
}

static int a_link(struct brg_error *err)
{
    return make("link", err);
}

static int a_link_to_nothing(struct brg_error *err)
{
    return make("dangling", err);
}

static int no_name(struct brg_error *err)
{
    int rc = make(rank == 1 ? NULL : "unnamed", err);
    return rank == 1 && err->path[0] ? 0 : rc;
}

/* Of a small array and of a large one, being written and read. The first call that does not refuse
 * makes it 0. */
static int no_memory_for_an_array(struct brg_error *err)
{
    brg_file *f;
    struct brg_error none;
    uint64_t small = 10, large = 1 << 20, zero = 0;
    char *mine = rank == 1 ? NULL : buf;
    int rc = open_new(MPI_COMM_WORLD, "arrays", &f, err);
    if (rc)
        return rc;
    for (int i = 0; i < 2; i++) {
        uint64_t *shape = i ? &large : &small;
        const char *name = i ? "large" : "small";
        rc = brg_file_write_array(f, name, BRG_INT8, 1, shape, &zero, shape, NULL, NULL, &none);
        rc = rc != -EINVAL ? 0
                           : brg_file_write_array(f, name, BRG_INT8, 1, shape, &zero, &small, NULL,
                                                  buf, &none);
        if (rc)
            break;
    }
    rc = rc ? rc : brg_file_commit(f, err);
    brg_file_close(f, &none);
    rc = rc ? rc : brg_file_open(MPI_COMM_WORLD, "arrays", BRG_READ, hints, &f, err);
    if (rc)
        return rc;
    rc = brg_file_read_array(f, "small", &zero, &small, NULL, mine, &none);
    rc = rc != -EINVAL ? 0 : brg_file_read_array(f, "large", &zero, &small, NULL, mine, err);
    brg_file_close(f, &none);
    return rc;
}

/* What ranks got that were refused, for all; the others have written a file. */
static int refused_on(MPI_Comm comm, const char *name, int who, struct brg_error *err)
{
    brg_file *f;
    int rc = open_new(comm, name, &f, err);
    if (rank != who)
        rc = rc ? rc : finish(f, err);
    MPI_Bcast(&rc, 1, MPI_INT, who, MPI_COMM_WORLD);
    err->rank = -1;
    err->offset = -1;
    return rc;
}

static int no_communicator(struct brg_error *err)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &comm);
    int rc = refused_on(comm, "without1", 1, err);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    return rc;
}

static int a_communicator_of_two_groups(struct brg_error *err)
{
    MPI_Comm mine, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, rank == 0, 0, &both);
    brg_file *f;
    int rc = open_new(both, "between", &f, err);
    err->rank = -1;
    err->offset = -1;
    MPI_Comm_free(&both);
    MPI_Comm_free(&mine);
    return rc;
}

/* MPICH's numbers are the handles themselves. */
#ifdef OPEN_MPI
#define NO_NUMBER 0x7ffffff
#else
#define NO_NUMBER 0
#endif

static int no_number_of_a_communicator(struct brg_error *err)
{
    brg_file *f;
    int rc = brg_file_open_fortran(NO_NUMBER, "numbered", BRG_WRITE | BRG_CREATE, hints, &f, err);
    err->rank = -1;
    err->offset = -1;
    return rc;
}

static int two_names(struct brg_error *err)
{
    return make(rank == 1 ? "one" : "another", err);
}

static int other_flags(struct brg_error *err)
{
    brg_file *f;
    unsigned flags = BRG_WRITE | BRG_CREATE | (rank == 2 ? BRG_EXCLUSIVE : 0);
    int rc = brg_file_open(MPI_COMM_WORLD, "flags", flags, hints, &f, err);
    return rc ? rc : finish(f, err);
}

static int a_name_without_room_for_sums(struct brg_error *err)
{
    char name[253];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    return make(name, err);
}

/* And the file is as it was: what follows succeeds. */
static int a_byte_past_all_checksums(struct brg_error *err)
{
    brg_file *f;
    struct brg_error none;
    int rc = open_new(MPI_COMM_WORLD, "far", &f, err);
    rc = rc ? rc : brg_file_write(f, UINT64_C(1) << 60, buf, rank == 1, err);
    return finish(f, &none) ? 1 : rc;
}

/* The same of an array, when it is defined. */
static int an_array_past_all_checksums(struct brg_error *err)
{
    brg_file *f;
    struct brg_error none;
    uint64_t shape = UINT64_C(1) << 60, zero = 0, small = 10;
    int rc = open_new(MPI_COMM_WORLD, "long", &f, err);
    rc = rc ? rc : brg_file_write_array(f, "a", BRG_INT8, 1, &shape, &zero, &small, NULL, buf, err);
    int after = brg_file_write_array(f, "a", BRG_INT8, 1, &small, &zero, &small, NULL, buf, &none);
    after = after ? after : brg_file_commit(f, &none);
    brg_file_close(f, &none);
    return after ? 1 : rc;
}

/* The others go on, and do not hear of it. */
static int one_rank_after_the_commit(struct brg_error *err)
{
    brg_file *f;
    struct brg_error none;
    uint64_t one = 1, zero = 0;
    int rc = open_new(MPI_COMM_WORLD, "committed", &f, err);
    rc = rc ? rc : brg_file_commit(f, err);
    if (!rc && rank == 1) {
        rc = brg_file_write(f, 0, buf, 1, err);
        rc = rc != -EBADF ? 1 : brg_file_read(f, 0, buf, 1, err);
        rc = rc != -EBADF ? 1 : brg_file_commit(f, err);
        rc = rc != -EBADF
                 ? 1
                 : brg_file_write_array(f, "a", BRG_INT8, 1, &one, &zero, &one, NULL, buf, err);
    }
    MPI_Bcast(&rc, 1, MPI_INT, 1, MPI_COMM_WORLD);
    err->rank = -1;
    err->offset = -1;
    return brg_file_close(f, &none) ? 1 : rc;
}

static int a_limit_of_file_sizes(struct brg_error *err)
{
    struct rlimit before, now;
    getrlimit(RLIMIT_FSIZE, &before);
    now = before;
    now.rlim_cur = BYTES + BYTES / 2;
    setrlimit(RLIMIT_FSIZE, &now);
    int rc = make("limited", err);
    setrlimit(RLIMIT_FSIZE, &before);
    return rc;
}

static int a_file_that_shrinks(struct brg_error *err)
{
    brg_file *f;
    struct brg_error later;
    int rc = make("shrinks", err);
    rc = rc ? rc : brg_file_open(MPI_COMM_WORLD, "shrinks", BRG_READ, hints, &f, err);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && truncate("shrinks", 10))
        return 1;
    MPI_Barrier(MPI_COMM_WORLD);
    rc = rc ? rc : brg_file_read(f, (uint64_t)rank * 1000, buf, 1000, err);
    brg_file_close(f, &later);
    return rc;
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Reading, and opening for what a file does not allow, again and again: none is left open. */
static int descriptors_that_are_given_back(struct brg_error *err)
{
    brg_file *f;
    int before = 0, rc = make("reread", err);
    for (int i = 0; !rc && i < 20; i++) {
        if (i == 10) /* MPI has what it wants */
            before = count_descriptors();
        rc = brg_file_open(MPI_COMM_WORLD, "reread", BRG_READ, hints, &f, err);
        rc = rc ? rc : brg_file_close(f, err);
        if (!rc && brg_file_open(MPI_COMM_WORLD, "reread", BRG_WRITE | BRG_CREATE | BRG_EXCLUSIVE,
                                 hints, &f, err) != -EEXIST)
            return -1;
        if (!rc && brg_file_open(MPI_COMM_WORLD, "folder/", BRG_READ, hints, &f, err) == 0)
            return -1;
    }
    return rc ? rc : count_descriptors() - before;
}

static int open_until_the_end(struct brg_error *err)
{
    brg_file *f;
    int rc = open_new(MPI_COMM_WORLD, "unfinished", &f, err);
    return rc ? rc : brg_file_write(f, (uint64_t)rank * 10, buf, 10, err);
}
/* The first call that does not refuse a file that never opened makes it 0. */
static int a_file_that_did_not_open(struct brg_error *err)
{
    brg_file *f = NULL;
    brg_request *request = NULL;
    brg_array array;
    brg_type type;
    const void *values;
    uint64_t zero = 0, one = 1;
    size_t n;
    int done = 0;
    if (open_new(MPI_COMM_WORLD, "nowhere/at all", &f, err) != -ENOENT || f)
        return 0;
    int rc = brg_file_write(f, 0, buf, 1, err);
    rc = rc != -EBADF ? 0 : brg_file_read(f, 0, buf, 1, err);
    rc = rc != -EBADF ? 0 : brg_file_write_pieces(f, NULL, 0, NULL, err);
    rc = rc != -EBADF ? 0 : brg_file_write_block(f, 0, 1, 1, &one, &zero, &one, NULL, buf, err);
    rc = rc != -EBADF ? 0 : brg_file_read_block(f, 0, 1, 1, &one, &zero, &one, NULL, buf, err);
    rc = rc != -EBADF
             ? 0
             : brg_file_write_array(f, "a", BRG_INT8, 1, &one, &zero, &one, NULL, buf, err);
    rc = rc != -EBADF ? 0 : brg_file_read_array(f, "a", &zero, &one, NULL, buf, err);
    rc = rc != -EBADF ? 0 : brg_file_find_array(f, "a", &array, err);
    rc = rc != -EBADF ? 0 : brg_file_array_at(f, 0, &array);
    rc = rc != -EBADF ? 0 : brg_file_set_attribute(f, NULL, "a", BRG_INT8, 1, buf, err);
    rc = rc != -EBADF ? 0 : brg_file_get_attribute(f, NULL, "a", &type, &n, &values, err);
    rc = rc != -EBADF ? 0 : brg_file_commit_start(f, &request, err);
    rc = rc != -EBADF || request ? 0 : brg_request_test(request, &done, err);
    rc = rc != -EBADF || !done ? 0 : brg_request_wait(request, err);
    rc = rc != -EBADF ? 0 : brg_file_commit(f, err);
    brg_file_on_progress(f, NULL, NULL);
    int empty = brg_file_size(f) == 0 && brg_file_array_count(f) == 0 &&
                brg_file_attribute_count(f, NULL) == 0 && !brg_file_attribute_name(f, NULL, 0) &&
                !*brg_file_explain(f);
    return empty && brg_file_close(f, NULL) == 0 ? rc : 0;
}

#define DO(what)                \
    do {                        \
        int rc_ = what(&err);   \
        tell(#what, rc_, &err); \
    } while (0)

int main(int argc, char **argv)
{
    struct brg_error err;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    hints = argc > 1 ? argv[1] : NULL;
    memset(buf, 'a' + rank, sizeof buf);
    DO(a_communicator_that_is_freed);
    DO(files_at_the_same_time);
    DO(hints_of_each_rank);
    DO(a_file_that_is_replaced);
    DO(a_child_that_exits);
    DO(another_folder);
    DO(a_link);
    DO(descriptors_that_are_given_back);
    DO(a_link_to_nothing);
    DO(no_name);
    DO(a_file_that_did_not_open);
    DO(no_memory_for_an_array);
    DO(no_communicator);
    DO(a_communicator_of_two_groups);
    DO(no_number_of_a_communicator);
    DO(two_names);
    DO(other_flags);
    DO(a_name_without_room_for_sums);
    DO(a_byte_past_all_checksums);
    DO(an_array_past_all_checksums);
    DO(one_rank_after_the_commit);
    DO(a_limit_of_file_sizes);
    DO(a_file_that_shrinks);
    DO(open_until_the_end);
    MPI_Finalize();
    return 0;
}
