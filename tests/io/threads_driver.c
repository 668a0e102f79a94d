/* Two threads, or one after the other where MPI allows no more, write and read each its own file,
 * on its own communicator, every other time in the background. `driver LEVEL` asks for a level of
 * threads; each rank prints it, and how many times bytes were wrong. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brigade/io.h>

#define N 50000

struct user {
    MPI_Comm comm;
    char name[16];
    int wrong;
};

static int rank, ranks;

static int round_trip(struct user *user, const char *hints, const int *buf, int *back)
{
    struct brg_error err = {.code = 0};
    brg_file *f;
    uint64_t shape[] = {N, (uint64_t)ranks}, start[] = {0, (uint64_t)rank}, count[] = {N, 1};
    if (brg_file_open(user->comm, user->name, BRG_WRITE | BRG_CREATE, hints, &f, &err) ||
        brg_file_write_block(f, 0, 4, 2, shape, start, count, NULL, buf, &err) ||
        brg_file_commit(f, &err) || brg_file_close(f, &err) ||
        brg_file_open(user->comm, user->name, BRG_READ, NULL, &f, &err) ||
        brg_file_read_block(f, 0, 4, 2, shape, start, count, NULL, back, &err) ||
        brg_file_close(f, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    return memcmp(buf, back, N * sizeof *buf);
}

static void *use(void *argument)
{
    struct user *user = argument;
    int *buf = malloc(N * sizeof *buf), *back = malloc(N * sizeof *back);
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < N; i++)
            buf[i] = rank * N + i + k + user->name[0];
        user->wrong += !!round_trip(user, k % 2 ? "async=yes:sync=no" : "sync=no", buf, back);
    }
    free(buf);
    free(back);
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    struct user users[2] = {{.name = "a"}, {.name = "b"}};
    pthread_t threads[2];
    MPI_Init_thread(&argc, &argv, atoi(argv[1]), &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &users[i].comm);
    for (int i = 0; i < 2; i++)
        if (level != MPI_THREAD_MULTIPLE)
            use(&users[i]);
        else if (pthread_create(&threads[i], NULL, use, &users[i]))
            return 1;
    for (int i = 0; i < 2; i++) {
        if (level == MPI_THREAD_MULTIPLE)
            pthread_join(threads[i], NULL);
        MPI_Comm_free(&users[i].comm);
    }
    printf("%s %d\n", level == MPI_THREAD_MULTIPLE ? "multiple" : "single",
           users[0].wrong + users[1].wrong);
    return MPI_Finalize();
}
