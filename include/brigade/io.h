/* Checkpoints and shared files: many ranks, few writers, constant memory.
 *
 * A file is opened by all ranks of a communicator. Each rank writes its own bytes at its own
 * offsets; commit makes them a file, or leaves what was there before:
 *
 *     struct brg_error err;
 *     brg_file *f;
 *     brg_file_open(MPI_COMM_WORLD, "ckpt.0042", BRG_WRITE | BRG_CREATE, NULL, &f, &err);
 *     brg_file_write(f, offset, buf, bytes, &err);
 *     brg_file_commit(f, &err);
 *     brg_file_close(f, &err);
 *
 * **Collective.** All calls that take a brg_file are collective unless they say "local"; but the
 * number of writes may differ from rank to rank: a rank that has no more goes on to commit (or
 * close), and serves the others' writes there until they come to it as well.
 *
 * **Errors.** A call returns 0, or -errno with *err filled (err may be NULL). A collective call
 * returns the same value, rank, offset and path on every rank, whichever rank met the error, and
 * a file that failed once fails in every later call; close it. What is refused (bad arguments of
 * some rank; reading past the end, -ENODATA) fails on every rank as well, but the file goes on: of
 * a refused write, each rank's bytes are there or not. No call prints, exits or aborts.
 *
 * **Overlap.** Where several ranks write the same byte in one call, the highest rank's stays;
 * within the pieces of one rank, the last piece's; of several calls, the last call's.
 *
 * **Memory.** At most two segments a rank (hint `segment`, 4 MiB unless said), whatever is written.
 *
 * **Threads.** One thread at a time per file, the one that may call MPI (MPI_THREAD_FUNNELED is
 * enough; with MPI_THREAD_SINGLE too: the library's own threads never call MPI).
 *
 * Link with -lbrigade_io; it finds the program's own MPI (Open MPI, MPICH and its kin) when it
 * runs.
 * Without MPI (no mpi.h, or BRG_NO_MPI defined) a file belongs to one process.
 */
#ifndef BRIGADE_IO_H
#define BRIGADE_IO_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct brg_file brg_file;
typedef struct brg_request brg_request;

/* Ways to open. BRG_WRITE alone changes a file that is there: a copy, which is made now and takes
 * its place at commit (hint `update=copy`, the default: old or new, whole), or the file itself, at
 * once (`update=in-place`: no publish contract). */
enum {
    BRG_READ = 1,
    BRG_WRITE = 2,
    BRG_CREATE = 4,   /* with BRG_WRITE: a new file takes the place of one of that name at commit */
    BRG_EXCLUSIVE = 8 /* with BRG_CREATE: -EEXIST if the name is taken */
};

/* Bytes of the file that lie one after another in memory too. */
typedef struct brg_piece {
    uint64_t offset, bytes;
} brg_piece;

#define BRG_MAX_DIMS 16

/* Types of array elements; the file keeps the byte order of the machine that wrote it, and says
 * which. */
typedef enum brg_type {
    BRG_INT8 = 1,
    BRG_UINT8,
    BRG_INT16,
    BRG_UINT16,
    BRG_INT32,
    BRG_UINT32,
    BRG_INT64,
    BRG_UINT64,
    BRG_FLOAT32,
    BRG_FLOAT64,
    BRG_COMPLEX64,
    BRG_COMPLEX128,
    BRG_BOOL,
    BRG_TEXT /* attributes only: UTF-8, `count` bytes */
} brg_type;

/* Opens `path` for all ranks of comm. `info` holds hints, "key=value:key=value", or NULL; the
 * environment (BRIGADE_IO="PATTERN:key=value:..., PATTERN:...") wins over it. Every key is in
 * docs/reference/io.md; an unknown one is an error. Collective: path and flags are the same on
 * every rank (else -EINVAL), of hints rank 0's count. *f is set on success only. MPI_COMM_NULL and
 * intercommunicators are refused (-EINVAL), locally. */
BRG_API int brg_file_open_handle(uintptr_t comm, const char *path, unsigned flags, const char *info,
                                 brg_file **f, struct brg_error *err);
/* The same for a Fortran communicator. */
BRG_API int brg_file_open_fortran(int32_t comm, const char *path, unsigned flags, const char *info,
                                  brg_file **f, struct brg_error *err);
/* For all ranks of MPI_COMM_WORLD, from a program that has no mpi.h. */
BRG_API int brg_file_open_world(const char *path, unsigned flags, const char *info, brg_file **f,
                                struct brg_error *err);
/* One process, no MPI. */
BRG_API int brg_file_open_alone(const char *path, unsigned flags, const char *info, brg_file **f,
                                struct brg_error *err);
#if defined(MPI_VERSION) && !defined(BRG_NO_MPI)
static inline int brg_file_open(MPI_Comm comm, const char *path, unsigned flags, const char *info,
                                brg_file **f, struct brg_error *err)
{
    return brg_file_open_handle((uintptr_t)comm, path, flags, info, f, err);
}
#endif

/* Writes nbytes from buf at offset; 0 bytes (then buf may be NULL) takes part and writes nothing.
 * When it returns, buf may be used again. Here and below it is memory of the host, or managed: what
 * lies in that of a GPU is for the program to copy. */
BRG_API int brg_file_write(brg_file *f, uint64_t offset, const void *buf, size_t nbytes,
                           struct brg_error *err);
/* Writes n pieces, any order, whose bytes lie one after another in buf. */
BRG_API int brg_file_write_pieces(brg_file *f, const brg_piece *pieces, size_t n, const void *buf,
                                  struct brg_error *err);
/* Writes a block of an array that lies in C order at `offset` in the file: element_bytes each,
 * ndims (1 to BRG_MAX_DIMS) of shape[], of which this rank has count[] from start[] on. buf holds
 * the block in C order; strides (bytes to the next index of each dimension in memory) NULL means
 * that it lies without gaps. Any count 0 writes nothing. */
BRG_API int brg_file_write_block(brg_file *f, uint64_t offset, size_t element_bytes, int ndims,
                                 const uint64_t *shape, const uint64_t *start,
                                 const uint64_t *count, const int64_t *strides, const void *buf,
                                 struct brg_error *err);

/* The same for reading, by any number of ranks, however the file was written. Bytes past the end
 * of the file: -ENODATA on every rank, nothing promised about buf; holes read as zeros. */
BRG_API int brg_file_read(brg_file *f, uint64_t offset, void *buf, size_t nbytes,
                          struct brg_error *err);
BRG_API int brg_file_read_pieces(brg_file *f, const brg_piece *pieces, size_t n, void *buf,
                                 struct brg_error *err);
BRG_API int brg_file_read_block(brg_file *f, uint64_t offset, size_t element_bytes, int ndims,
                                const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                                const int64_t *strides, void *buf, struct brg_error *err);

/* Local. Size in bytes: of what has been written and agreed on so far, or of the file read. */
BRG_API uint64_t brg_file_size(const brg_file *f);

/* Synced, checksummed, renamed: the file is there under its name, whole, or (on failure) what was
 * there before. After it the file may only be closed: another call is refused (-EBADF) on the rank
 * that makes it, and meets nobody. */
BRG_API int brg_file_commit(brg_file *f, struct brg_error *err);
/* The same, while the program goes on: a thread of the library syncs and publishes. With hint
 * async=yes writing itself goes on in the background too: bytes are held back in memory of this
 * rank (hint `buffer`, beyond the two segments; a full one makes the call wait), at most `rate` a
 * second, and less where the program's collectives would suffer (docs/explanation/yielding.md).
 * Until the request is done the file may only be closed: that waits for the commit and returns
 * what it came to; the request stays and says the same, and is to be freed by test or wait. A
 * process that ends before its request is done publishes nothing. */
BRG_API int brg_file_commit_start(brg_file *f, brg_request **request, struct brg_error *err);
/* Collective. *done as MPI_Test; when done, the request is freed and the return value is commit's.
 * The same *done on every rank. */
BRG_API int brg_request_test(brg_request *request, int *done, struct brg_error *err);
BRG_API int brg_request_wait(brg_request *request, struct brg_error *err);

/* Frees f in any case. A file open for writing that was not committed leaves nothing behind. With
 * f NULL, as where opening failed, it does nothing; every other call returns -EBADF then, or has
 * nothing to tell. */
BRG_API int brg_file_close(brg_file *f, struct brg_error *err);

/* Local. What was chosen and why, one fact a line, NUL-terminated: transport, writers, window,
 * nodes; the last collective call's figures. Belongs to f. */
BRG_API const char *brg_file_explain(brg_file *f);

/* Local. From now on `progress` is called inside this rank's calls, now and then, with how many of
 * the bytes that the call has for this rank were moved: first with done 0, at last (unless the
 * call fails) with done == total, never where total is 0. It is called by the thread that called,
 * and must call neither this library nor MPI. NULL: no more. */
typedef void brg_progress(void *context, uint64_t done, uint64_t total);
BRG_API void brg_file_on_progress(brg_file *f, brg_progress *progress, void *context);

/* ---- named arrays: docs/format-io.md ----
 *
 * The first call with a name makes a file a container; it has no bytes of the program's own then:
 * where one rank writes such bytes and another has arrays or attributes, every rank gets -EINVAL.
 *
 * An array is written by one call or several. Its first call defines it: every rank makes one, with
 * a count of 0 (or, of an array without dimensions, buf NULL) where it has nothing, in the same
 * order for all arrays, with the same name, type and shape. If ranks differ, or one comes to commit
 * without an array of the others, every rank gets -EINVAL, naming array and rank. Further calls may
 * differ in number from rank to rank. Names are UTF-8 and may have slashes.
 *
 * Small arrays (1/64 of a segment and 16 KiB at most) are kept and written together, by a later
 * call or by commit: a failure comes out there. Where another rank's arguments are refused
 * meanwhile, they stay kept, for the next call. */

typedef struct brg_array {
    const char *name; /* belongs to the file */
    brg_type type;
    int ndims;
    uint64_t shape[BRG_MAX_DIMS];
    uint64_t offset; /* of element 0 in the file */
} brg_array;

BRG_API size_t brg_type_bytes(brg_type type);
BRG_API int brg_file_write_array(brg_file *f, const char *name, brg_type type, int ndims,
                                 const uint64_t *shape, const uint64_t *start,
                                 const uint64_t *count, const int64_t *strides, const void *buf,
                                 struct brg_error *err);
BRG_API int brg_file_read_array(brg_file *f, const char *name, const uint64_t *start,
                                const uint64_t *count, const int64_t *strides, void *buf,
                                struct brg_error *err);
/* Local. -ENOENT where there is no such array (or file of arrays). */
BRG_API int brg_file_find_array(brg_file *f, const char *name, brg_array *array,
                                struct brg_error *err);
BRG_API size_t brg_file_array_count(brg_file *f);
BRG_API int brg_file_array_at(brg_file *f, size_t i, brg_array *array);

/* Attributes of an array, or with array NULL of the file: `count` elements of type, at most 1 MiB.
 * Every rank sets them, and the values kept are rank 0's; no messages are sent. Text that is not
 * UTF-8 is refused (-EINVAL). Getting is local; *values belongs to the file, until the attribute is
 * set again. -ENODATA: there is none. */
BRG_API int brg_file_set_attribute(brg_file *f, const char *array, const char *name, brg_type type,
                                   size_t count, const void *values, struct brg_error *err);
BRG_API int brg_file_get_attribute(brg_file *f, const char *array, const char *name, brg_type *type,
                                   size_t *count, const void **values, struct brg_error *err);
BRG_API size_t brg_file_attribute_count(brg_file *f, const char *array);
BRG_API const char *brg_file_attribute_name(brg_file *f, const char *array, size_t i);

#ifdef __cplusplus
}
#endif

#endif
