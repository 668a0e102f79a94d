/* Files of some of the ranks, or of all in another order, that MPI may not have opened yet; the
 * lines must be the same with and without the library:
 *   halves    each half has a file, which it opens twice
 *   crossed   each rank is in two pairs, whose files are open at once; their communicators are gone
 *   orders    all ranks, in twelve orders
 *   refused   a file that one half cannot open
 * and, with POINTERS or HINTS:
 *   pointers  a pointer that the ranks of a half share
 *   hints     what is asked of the hints of files of two, three and four ranks */
#include "late_driver.h"

static MPI_Comm part(int color, int key)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    return comm;
}

static MPI_File open_by(MPI_Comm comm, const char *path)
{
    MPI_File f;
    if (MPI_File_open(comm, path, FOR_ALL, MPI_INFO_NULL, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return f;
}

/* Blocks of n ints in turns among the ranks of a communicator. What lies between runs past the end
 * of a file ROMIO fills with anything, so there is a file. */
static void turns_of(MPI_File f, MPI_Comm comm, int n)
{
    int all = rank, of = size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_File_write_at_all(f, rank * 1500, buf, 1500, MPI_BYTE, MPI_STATUS_IGNORE);
    set_turns(f, n);
    rank = all;
    size = of;
}

static void say_file(const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    say_bytes(path);
}

static void halves(const char *path)
{
    char name[2][1000];
    int half = rank / 2;
    MPI_Comm comm = part(half, rank);
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "%s.%d", path, i);
    for (int i = 0; i < 3; i++) {
        MPI_File f = open_by(comm, name[half]);
        MPI_Group group;
        MPI_Offset at;
        int n;
        MPI_File_get_group(f, &group);
        MPI_Group_size(group, &n);
        MPI_Group_free(&group);
        say("group", n);
        turns_of(f, comm, 3 + i);
        MPI_File_write_all(f, buf + i * 100 + half, 40, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_read_all(f, buf + 1000, 10, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_get_position(f, &at);
        say("position", at);
        MPI_File_set_size(f, 5000 + 100 * i);
        MPI_File_close(&f);
    }
    MPI_Comm_free(&comm);
    say_file(name[0]);
    say_file(name[1]);
}

static void crossed(const char *path)
{
    char name[4][1000];
    MPI_File f[2];
    MPI_Comm beside = part(rank / 2, rank), across = part(rank % 2, rank);
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s.%d", path, i);
    f[0] = open_by(beside, name[rank / 2]);
    f[1] = open_by(across, name[2 + rank % 2]);
    turns_of(f[0], beside, 2);
    turns_of(f[1], across, 7);
    MPI_Comm_free(&beside);
    MPI_Comm_free(&across);
    for (int call = 0; call < 6; call++)
        MPI_File_write_all(f[call % 2], buf + call, 50 + call, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(f[0]);
    MPI_File_close(&f[0]);
    MPI_File_write_all(f[1], buf, 21, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f[1]);
    for (int i = 0; i < 4; i++)
        say_file(name[i]);
}

static void orders(const char *path)
{
    char name[1000];
    for (int i = 0; i < 24; i++) {
        int of[4] = {0, 1, 2, 3}, left = i % 12;
        for (int n = 4; n > 1; left /= n, n--) { /* the left-th order of four */
            int last = of[n - 1], other = left % n;
            of[n - 1] = of[other];
            of[other] = last;
        }
        MPI_Comm comm = part(0, of[rank % 4]);
        snprintf(name, sizeof name, "%s.%d", path, i % 12);
        MPI_File f = open_by(comm, name);
        turns_of(f, comm, 1 + i % 5);
        MPI_File_write_all(f, buf + i, 30, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&f);
        MPI_Comm_free(&comm);
        say_file(name);
    }
}

#ifdef POINTERS
static void pointers(const char *path)
{
    char name[2][1000];
    int half = rank / 2;
    MPI_Comm comm = part(half, -rank);
    MPI_Offset at;
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "%s.%d", path, i);
    MPI_File f = open_by(comm, name[half]);
    memset(buf, 1 + half, sizeof buf);
    MPI_File_write_shared(f, buf, 100 + half, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_File_get_position_shared(f, &at);
    say("shared", at);
    memset(buf, 'a' + rank, sizeof buf);
    MPI_Barrier(comm);
    MPI_File_write_ordered(f, buf, 10 * (1 + rank), MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    MPI_Comm_free(&comm);
    say_file(name[0]);
    say_file(name[1]);
}

#endif

#ifdef HINTS
static void hints(const char *path)
{
    char name[1000], value[MPI_MAX_INFO_VAL + 1];
    for (int i = 0; i < 6; i++) {
        int color = i % 3 == 0 ? rank / 2 : i % 3 == 1 ? rank == 3 : 0, found, n;
        MPI_Comm comm = part(color, rank);
        MPI_Info info;
        snprintf(name, sizeof name, "%s.%d.%d", path, i, color);
        MPI_File f = open_by(comm, name);
        MPI_File_get_info(f, &info);
        MPI_Info_get_nkeys(info, &n);
        MPI_Info_get(info, "cb_nodes", MPI_MAX_INFO_VAL, value, &found);
        say("keys", n);
        say("cb_nodes", found ? atoi(value) : -1);
        MPI_Info_free(&info);
        MPI_File_close(&f);
        MPI_Comm_free(&comm);
    }
}

#endif

static void refused(const char *path)
{
    char name[1000];
    int half = rank / 2;
    MPI_Comm comm = part(half, rank);
    MPI_File f;
    snprintf(name, sizeof name, "%s.0", path);
    MPI_File made = open_by(MPI_COMM_WORLD, name);
    MPI_File_close(&made);
    snprintf(name, sizeof name, "%s.%d", path, half);
    for (int i = 0; i < 2; i++) {
        int rc = MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
        say("class", class_of(rc) == MPI_ERR_NO_SUCH_FILE);
        if (!rc)
            MPI_File_close(&f);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const struct what all[] = {
        {"halves", halves},     {"crossed", crossed}, {"orders", orders}, {"refused", refused},
#ifdef POINTERS
        {"pointers", pointers},
#endif
#ifdef HINTS
        {"hints", hints},
#endif
    };
    return late_main(argc, argv, MPI_THREAD_SINGLE, all, sizeof all / sizeof *all);
}
