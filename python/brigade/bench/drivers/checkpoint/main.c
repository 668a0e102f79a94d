/* The checkpoint benchmark: carries out a schedule, a file of one cell a line (cell.h).
 *
 *     checkpoint SCHEDULE FILE
 *
 * FILE is what each cell writes, by an absolute path; what it and its companions are called begins
 * with it, or has its name inside.
 *
 * Rank 0 prints a line for each cell: MARK and a JSON object with seconds of writing, and of
 * reading, which begin after a barrier: those of the slowest rank in each phase, and in total from
 * when the first rank began to when the last one ended. (Where ranks share processors, some begin
 * when others have ended: no rank's own clock sees what a job waits for.) What was read is compared
 * with what belongs there; with `check` so is the whole file, in other parts than it was written in
 * and by plain reading, which a mistake made twice would not survive. A failure ends the job: MARK
 * and {"id", "failed"}. The files are removed before and after each cell.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cell.h"
#include "companions.h"
#include "exchange.h"

#define LONGEST 1000 /* path of a file: endings are added to it */

static const struct back_end *const back_ends[] = {
    &back_end_brigade,      &back_end_onesided,  &back_end_mpiio,
    &back_end_posix_shared, &back_end_posix_own,
#ifdef WITH_HDF5
    &back_end_hdf5,
#endif
#ifdef WITH_ADIOS2
    &back_end_adios2,
#endif
};

static int rank, size;

__attribute__((noreturn)) static void fail(const struct cell *cell, const char *why)
{
    printf("%s{\"id\": %d, \"rank\": %d, \"failed\": ", MARK, cell->id, rank);
    exchange_text(why);
    puts("}");
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static const struct back_end *find_back_end(const struct cell *cell)
{
    for (size_t i = 0; i < sizeof back_ends / sizeof *back_ends; i++)
        if (strcmp(back_ends[i]->name, cell->back_end) == 0)
            return back_ends[i];
    fail(cell, "no such back end");
}

static void remove_files(const struct cell *cell, const struct back_end *back)
{
    char path[sizeof cell->path + 16];
    MPI_Barrier(cell->comm); /* others may still read */
    if (back->own_files) {
        snprintf(path, sizeof path, "%s.%d", cell->path, rank);
        companions_remove_one(path);
    } else if (rank == 0) {
        companions_remove(cell->path);
        snprintf(path, sizeof path, "%s.new", cell->path);
        companions_remove_one(path);
    }
    MPI_Barrier(cell->comm);
}

static void forget_pages(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

/* A file's, or those of a folder's files. */
static void forget_file(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        forget_pages(AT_FDCWD, path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        forget_pages(dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
}

/* Lets the kernel forget the pages of what was written and synced, so that reading begins at the
 * file system. Of what is not synced it would forget what happens to be on the disk by then. */
static void forget(const struct cell *cell, const struct back_end *back)
{
    char path[sizeof cell->path + 16];
    snprintf(path, sizeof path, back->own_files ? "%s.%d" : "%s", cell->path, rank);
    forget_file(path);
    if (!back->own_files)
        companions_each_hidden(cell->path, forget_file);
}

/* Compares this rank's share of the shared file, an even slice, with what belongs there. */
static void check_file(const struct cell *cell, uint64_t base)
{
    struct stat st;
    char why[WHY], *buf = malloc(1 << 20);
    uint64_t words = cell_file_bytes(cell) / 8, all = words * 8;
    uint64_t at = words * (uint64_t)rank / (uint64_t)size * 8;
    uint64_t end = words * ((uint64_t)rank + 1) / (uint64_t)size * 8;
    int fd = open(cell->path, O_RDONLY | O_CLOEXEC);
    if (!buf || fd < 0 || fstat(fd, &st) != 0)
        fail(cell, "the file that was written is not there");
    if (base == 0 && (uint64_t)st.st_size != all)
        fail(cell, "the file that was written has another size");
    while (at < end) {
        size_t want = end - at < 1 << 20 ? end - at : 1 << 20;
        ssize_t n = pread(fd, buf, want, (off_t)(base + at));
        int64_t wrong = n <= 0 ? (int64_t)at : bytes_wrong(cell, buf, at, (uint64_t)(n & ~7));
        if (wrong >= 0 || n < 8) {
            snprintf(why, sizeof why, "wrong byte at %lld of the file written", (long long)wrong);
            fail(cell, why);
        }
        at += (uint64_t)(n & ~7);
    }
    close(fd);
    free(buf);
}

/* That of a file; 0 or errno. */
static int sync_folder(const char *path)
{
    char folder[sizeof((struct cell *)0)->path];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') + 1 - path), path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    if (fd < 0 || fsync(fd))
        rc = errno;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* With `publish`, writes beside the name, and renames when all ranks are done, after which one of
 * them syncs the folder: what a program must do itself that wants its last checkpoint to be whole,
 * and what Brigade always does. */
static int write_file(const struct cell *cell, const struct back_end *back, char *buf,
                      struct outcome *outcome)
{
    struct cell beside = *cell;
    char from[sizeof cell->path + 16], to[sizeof cell->path + 16];
    int rc = 0, worst = 0;
    if (!cell->publish || strcmp(back->name, "brigade") == 0)
        return back->write(cell, buf, outcome);
    snprintf(beside.path, sizeof beside.path, "%.1000s.new", cell->path);
    if (back->write(&beside, buf, outcome))
        return -1;
    snprintf(from, sizeof from, back->own_files ? "%s.%d" : "%s", beside.path, rank);
    snprintf(to, sizeof to, back->own_files ? "%s.%d" : "%s", cell->path, rank);
    MPI_Barrier(cell->comm);
    if ((back->own_files || rank == 0) && rename(from, to))
        rc = errno;
    MPI_Allreduce(&rc, &worst, 1, MPI_INT, MPI_MAX, cell->comm);
    if (rank == 0 && worst == 0)
        rc = worst = sync_folder(to);
    MPI_Bcast(&worst, 1, MPI_INT, 0, cell->comm);
    outcome_lap(outcome, CLOSE);
    return worst ? outcome_fail(outcome, "%s: %s%s", to, strerror(worst),
                                rc == worst ? "" : ", at another rank")
                 : 0;
}

/* Runs one direction on all ranks; on rank 0 seconds[] becomes the slowest rank's phases, then the
 * total. */
static void timed(const struct cell *cell, const struct back_end *back, char *buf, int writing,
                  struct outcome *outcome, double seconds[PHASES + 1])
{
    double latest[PHASES + 1], first;
    *outcome = (struct outcome){.base = 0};
    MPI_Barrier(cell->comm);
    outcome->begin = outcome->last = now();
    if (writing ? write_file(cell, back, buf, outcome) : back->read(cell, buf, outcome))
        fail(cell, outcome->why);
    memcpy(latest, outcome->seconds, sizeof outcome->seconds);
    latest[PHASES] = outcome->last;
    MPI_Reduce(latest, seconds, PHASES + 1, MPI_DOUBLE, MPI_MAX, 0, cell->comm);
    MPI_Reduce(&outcome->begin, &first, 1, MPI_DOUBLE, MPI_MIN, 0, cell->comm);
    seconds[PHASES] -= first;
}

static void print_seconds(const char *name, const double seconds[PHASES + 1])
{
    printf(", \"%s\": {\"open\": %.6f, \"move\": %.6f, \"close\": %.6f, \"total\": %.6f}", name,
           seconds[OPEN], seconds[MOVE], seconds[CLOSE], seconds[PHASES]);
}

static void run_cell(struct cell *cell, char *buf, char *back_buf)
{
    const struct back_end *back = find_back_end(cell);
    struct outcome outcome, reading;
    double wrote[PHASES + 1], read[PHASES + 1];
    remove_files(cell, back);
    timed(cell, back, buf, 1, &outcome, wrote);
    MPI_Barrier(cell->comm); /* nobody reads what another has not closed */
    if (cell->read) {
        if (cell->sync)
            forget(cell, back);
        memset(back_buf, 0, cell_bytes(cell));
        timed(cell, back, back_buf, 0, &reading, read);
        int64_t wrong = cell_wrong(cell, back_buf);
        if (wrong >= 0) {
            snprintf(reading.why, sizeof reading.why, "wrong byte at %lld of the file read",
                     (long long)wrong);
            fail(cell, reading.why);
        }
    }
    if (cell->check && !back->own_files && !strstr(cell->hints, "layout=parts"))
        check_file(cell, outcome.base);
    remove_files(cell, back);
    if (rank == 0) {
        printf("%s{\"id\": %d", MARK, cell->id);
        print_seconds("write", wrote);
        if (cell->read)
            print_seconds("read", read);
        fputs(", \"note\": ", stdout);
        exchange_text(outcome.note);
        puts("}");
        fflush(stdout);
    }
}

static void *grow(void *old, size_t *room, size_t bytes, const struct cell *cell)
{
    if (bytes <= *room)
        return old;
    free(old);
    void *buf = malloc(bytes);
    if (!buf)
        fail(cell, "no memory for a rank's bytes");
    memset(buf, 0, bytes);
    *room = bytes;
    return buf;
}

static void say_hello(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int bytes, leader;
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &leader);
    int mine = leader == 0, nodes;
    MPI_Reduce(&mine, &nodes, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    MPI_Get_library_version(library, &bytes);
    if (rank == 0) {
        printf("%s{\"ranks\": %d, \"nodes\": %d, \"mpi\": ", MARK, size, nodes);
        exchange_text(library);
        puts("}");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct cell filled = {.seed = 0};
    char *buf = NULL, *back_buf = NULL, *rest = NULL;
    size_t room = 0, back_room = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    clock_agree(MPI_COMM_WORLD);
    say_hello();
    char *schedule = exchange_schedule(argc > 1 ? argv[1] : "");
    if (!schedule)
        fail(&(struct cell){.id = -1}, "cannot read the schedule");
    for (char *line = strtok_r(schedule, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct cell cell = {.calls = 1, .element = 1, .rank = rank, .size = size};
        cell.comm = MPI_COMM_WORLD;
        const char *wrong = cell_parse(&cell, line);
        if (!wrong && (argc < 3 || strlen(argv[2]) > LONGEST))
            wrong = "no file to write, or its path is too long";
        if (wrong)
            fail(&cell, wrong);
        strcpy(cell.path, argv[2]);
        buf = grow(buf, &room, cell_bytes(&cell), &cell);
        back_buf = grow(back_buf, &back_room, cell.read ? cell_bytes(&cell) : 0, &cell);
        if (cell.seed != filled.seed) /* a seed names the shape, too */
            cell_fill(&cell, buf);
        filled = cell;
        run_cell(&cell, buf, back_buf);
    }
    free(schedule);
    free(buf);
    free(back_buf);
    MPI_Finalize();
    return 0;
}
