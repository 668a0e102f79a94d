/* Buffers in the memory of a device, as a library of device_fake.c has it: FILE WHAT LIBRARY, and a
 * line of each rank, with what is in the file then.
 *   none     the library is there, and has nothing
 *   managed  what it has, the host can reach too
 *   rank     rank 0's buffers are a device's, rank 1's are not
 *   later    the library is loaded when the file is open already; one call before the others is of
 *            memory that really cannot be read, which MPI makes of it what it can */
#include "late_driver.h"

#include <dlfcn.h>
#include <sys/mman.h>

static const char *library;
static char *block;
#define BLOCK (1 << 20)

static void load(int has, int is_managed)
{
    void (*device)(const void *, size_t, int);
    void *fake = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!fake)
        MPI_Abort(MPI_COMM_WORLD, 1);
    *(void **)&device = dlsym(fake, "fake_device");
    if (has)
        device(block, BLOCK, is_managed);
}

/* Of one rank in one run; begun to be collective; collective in one run, in many; of one rank in
 * two long ones. */
static void move(MPI_File f)
{
    MPI_Request request;
    MPI_Datatype apart;
    memset(block, 1 + rank, BLOCK);
    MPI_File_write_at(f, rank * 100, block, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(f, 200 + rank * 100, block, 100, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(f, 400 + rank * 100, block, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    set_turns_of(f, 1000, MPI_BYTE, 10);
    MPI_File_write_at_all(f, 0, block, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_vector(2, 1 << 17, 1 << 18, MPI_BYTE, &apart);
    MPI_Type_commit(&apart);
    MPI_File_set_view(f, 10000 + rank * (1 << 17), MPI_BYTE, apart, "native", MPI_INFO_NULL);
    if (rank) /* ROMIO reads and writes what lies between */
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_write_at(f, 0, block, 1 << 18, MPI_BYTE, MPI_STATUS_IGNORE);
    if (!rank)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&apart);
}

static void none(const char *path)
{
    load(0, 0);
    MPI_File f = open_file(path, FOR_ALL);
    move(f);
    MPI_File_close(&f);
}

static void managed(const char *path)
{
    load(1, 1);
    MPI_File f = open_file(path, FOR_ALL);
    move(f);
    MPI_File_close(&f);
}

static void one_rank(const char *path)
{
    load(rank == 0, 0);
    MPI_File f = open_file(path, FOR_ALL);
    move(f);
    MPI_File_close(&f);
}

static void later(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    load(rank == 0, 0);
    mprotect(block, BLOCK, PROT_NONE);
    MPI_File_write_at(f, rank * 100, block, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    mprotect(block, BLOCK, PROT_READ | PROT_WRITE);
    move(f);
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    static const struct what all[] = {
        {"none", none}, {"managed", managed}, {"rank", one_rank}, {"later", later}};
    library = argv[3];
    block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return late_main(argc, argv, MPI_THREAD_SINGLE, all, sizeof all / sizeof *all);
}
