/* Files of a program that may call MPI from several threads at a time; the lines must be the same
 * with and without the library:
 *   after    files one after another, and three at once
 *   beside   two threads, each with files of its own, which come in another order on each rank
 *   pointer  two threads of a rank that write by the pointer of one file
 *   beneath  a thread that writes and reads alone, and asks for the size, while another one writes
 *            with all ranks and syncs: how many calls failed, or read something else */
#include "late_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void write_turns(MPI_File f, int n, int from)
{
    MPI_File_write_at_all(f, rank * 1500, buf, 1500, MPI_BYTE, MPI_STATUS_IGNORE);
    set_turns(f, n);
    MPI_File_write_all(f, buf + from, 60, MPI_INT, MPI_STATUS_IGNORE);
}

static void after(const char *path)
{
    char name[3][1000];
    MPI_File files[3];
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "%s.%d", path, i);
    for (int i = 0; i < 6; i++) {
        files[0] = open_file(name[0], FOR_ALL);
        write_turns(files[0], 1 + i, i);
        MPI_File_close(&files[0]);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            files[i] = open_file(name[i], FOR_ALL);
        for (int i = 0; i < 3; i++)
            write_turns(files[2 - i], 2 + i, round);
        for (int i = 0; i < 3; i++)
            MPI_File_close(&files[(i + round) % 3]);
    }
    for (int i = 0; i < 3; i++)
        say_bytes(name[i]);
}

struct part {
    pthread_t thread;
    MPI_Comm comm;
    int number;
    char name[1000];
};

static pthread_barrier_t both;

/* In every other round both threads have closed their files, and then open them in another order
 * on each rank. */
static void *run(void *context)
{
    struct part *part = context;
    for (int i = 0; i < 12; i++) {
        MPI_File f;
        if (i % 2)
            pthread_barrier_wait(&both);
        usleep(i % 2 ? 5000u * (part->number == rank % 2)
                     : (unsigned)((i * 7 + part->number * 5 + rank * 11) % 13 * 300));
        if (MPI_File_open(part->comm, part->name, FOR_ALL, MPI_INFO_NULL, &f))
            MPI_Abort(MPI_COMM_WORLD, 1);
        write_turns(f, 1 + i % 4, 20 * part->number + i);
        usleep((unsigned)((i * 5 + part->number * 7 + rank * 3) % 11 * 300));
        MPI_File_close(&f);
    }
    return NULL;
}

static void beside(const char *path)
{
    struct part parts[2];
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++) {
        parts[i].number = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &parts[i].comm);
        snprintf(parts[i].name, sizeof parts[i].name, "%s.%d", path, i);
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&parts[i].thread, NULL, run, &parts[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(parts[i].thread, NULL);
    for (int i = 0; i < 2; i++) {
        say_bytes(parts[i].name);
        MPI_Comm_free(&parts[i].comm);
    }
}

static void *append(void *file)
{
    for (int i = 0; i < 20000; i++)
        MPI_File_write(*(MPI_File *)file, buf, 16, MPI_INT, MPI_STATUS_IGNORE);
    return NULL;
}

static void pointer(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Offset at = 0;
    pthread_t threads[2];
    for (int i = 0; i < 2 && rank == 0; i++)
        pthread_create(&threads[i], NULL, append, &f);
    for (int i = 0; i < 2 && rank == 0; i++)
        pthread_join(threads[i], NULL);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_close(&f);
    say_bytes(path);
}

static atomic_int ends;
static int failed;

/* Its own bytes, behind those of all. */
static void *write_alone(void *file)
{
    MPI_File f = *(MPI_File *)file;
    MPI_Offset bytes, at = 10000 + rank * 1000;
    char read[100];
    for (int i = 0; i < 100 || !ends; i++) {
        char *mine = buf + i % 10;
        failed += MPI_File_write_at(f, at, mine, 100, MPI_BYTE, MPI_STATUS_IGNORE) != 0;
        failed += MPI_File_read_at(f, at, read, 100, MPI_BYTE, MPI_STATUS_IGNORE) != 0;
        failed += MPI_File_get_size(f, &bytes) != 0 || memcmp(read, mine, 100) != 0;
    }
    MPI_File_write_at(f, at, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    return NULL;
}

static void beneath(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    pthread_t thread;
    int other = 0;
    pthread_create(&thread, NULL, write_alone, &f);
    for (int i = 0; i < 300; i++) {
        other += MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE) != 0;
        other += i % 100 == 0 && MPI_File_sync(f) != 0;
    }
    ends = 1;
    pthread_join(thread, NULL);
    say("failed", failed + other);
    MPI_File_close(&f);
    say_bytes(path);
}

int main(int argc, char **argv)
{
    static const struct what all[] = {
        {"after", after}, {"beside", beside}, {"pointer", pointer}, {"beneath", beneath}};
    return late_main(argc, argv, MPI_THREAD_MULTIPLE, all, sizeof all / sizeof *all);
}
