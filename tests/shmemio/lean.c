/* How much memory calls take: prints by how many KiB this rank's peak grew while it wrote and read
 * through windows, after it had its data and its group.
 *
 *   lean KIND LIBRARY FOLDER
 */
#include "job.h"

#define PIECE 4096
#define PIECES 512

static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &kib);
    fclose(status);
    return kib;
}

static SHMEM_File opened(const char *path, SHMEM_Datatype view, int me)
{
    SHMEM_File f;
    if (SHMEM_File_open(SHMEM_COMM_WORLD, path, SHMEM_MODE_CREATE | SHMEM_MODE_RDWR,
                        SHMEM_INFO_NULL, &f) ||
        SHMEM_File_set_view(f, (SHMEM_Offset)me * PIECE, SHMEM_BYTE, view, "native",
                            SHMEM_INFO_NULL)) {
        printf("FAIL %s\n", SHMEM_Last_error()->text);
        exit(1);
    }
    return f;
}

int main(int argc, char **argv)
{
    static char data[PIECE * PIECES], path[4096];
    struct job job;
    SHMEM_Datatype view;
    if (argc < 4)
        return 2;
    job_start(&job, argv + 1);
    memset(data, job.me + 1, sizeof data);
    snprintf(path, sizeof path, "%s/lean", argv[3]);
    SHMEM_Type_vector(PIECES, PIECE, (SHMEM_Count)PIECE * job.all, SHMEM_BYTE, &view);
    SHMEM_Type_commit(&view);
    SHMEM_File warm = opened(path, view, job.me), f = opened(path, view, job.me);
    int code = SHMEM_File_write_at_all(warm, 0, data, job.me == 0, SHMEM_BYTE, SHMEM_STATUS_IGNORE);
    long before = peak_kib();
    code |= SHMEM_File_write_at_all(f, 0, data, sizeof data, SHMEM_BYTE, SHMEM_STATUS_IGNORE);
    code |= SHMEM_File_read_at_all(f, 0, data, sizeof data, SHMEM_BYTE, SHMEM_STATUS_IGNORE);
    printf("%ld\n", peak_kib() - before);
    fflush(stdout);
    code |= SHMEM_File_close(&f) | SHMEM_File_close(&warm);
    SHMEM_Type_free(&view);
    job_end(&job, code);
}
