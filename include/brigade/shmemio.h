/* Files of OpenSHMEM programs, as MPI-IO has them: datatypes, views, collective reading and
 * writing.
 *
 * A program of MPI-IO becomes one of these by renaming: MPI_File_write_at_all is
 * SHMEM_File_write_at_all, MPI_INT is SHMEM_INT, MPI_MODE_CREATE is SHMEM_MODE_CREATE. Arguments
 * and their order are MPI's, and so is what they mean, but where this header says otherwise:
 *
 *     SHMEM_File f;
 *     SHMEM_File_open(SHMEM_COMM_WORLD, "field", SHMEM_MODE_CREATE | SHMEM_MODE_RDWR,
 *                     SHMEM_INFO_NULL, &f);
 *     SHMEM_File_set_view(f, 0, SHMEM_DOUBLE, tile, "native", SHMEM_INFO_NULL);
 *     SHMEM_File_write_at_all(f, 0, field, n, SHMEM_DOUBLE, SHMEM_STATUS_IGNORE);
 *     SHMEM_File_close(&f);
 *
 * **Files** are plain bytes, written in place: what is not written keeps what it held, and other
 * programs see the file at once. With the info key `publish` set to `yes` a file appears, whole,
 * synced and with checksums, when it is closed, and not at all where anything failed; until then
 * the old one stays (docs/reference/shmemio.md lists all keys).
 *
 * **Collective** calls are made by all PEs of the file's group in the same order, and say so; all
 * others are local. What a collective call wrote is seen by every later call of every PE of the
 * group. What a local call wrote is seen by others after SHMEM_File_sync, a barrier, and
 * SHMEM_File_sync again, as in MPI. Of bytes that several PEs write in one call, any PE's arrive.
 *
 * **Errors.** A call returns SHMEM_SUCCESS or one of SHMEM_ERR_*. A collective call returns the
 * same on every PE, whichever PE met the error; SHMEM_Last_error has the words, the PE's rank in
 * the group, the offset and the path. No call prints, exits or aborts.
 *
 * **Memory.** A PE takes five segments of the symmetric heap for all files of a group (key
 * `segment`, 4 MiB unless said) whatever is moved and however many PEs there are.
 *
 * **Threads.** One at a time, the one that may call OpenSHMEM.
 *
 * Link with -lbrigade_shmemio (pkg-config brigade-shmemio); it finds the OpenSHMEM, 1.4 or later,
 * that runs in the program. Call shmem_init before the first file is opened, and close all files
 * before shmem_finalize. In a program of MPI without OpenSHMEM the same calls work over MPI's
 * windows. */
#ifndef BRIGADE_SHMEMIO_H
#define BRIGADE_SHMEMIO_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As MPI's large-count forms have them. Where MPI takes an `int` for one count, any integer will do
 * here; where it takes or fills an array or a pointer, int forms and (_c) 64-bit forms are
 * there. */
typedef int64_t SHMEM_Offset;
typedef int64_t SHMEM_Count;
typedef intptr_t SHMEM_Aint;

/* ---- errors ---- */

enum {
    SHMEM_SUCCESS = 0,
    SHMEM_ERR_COUNT,
    SHMEM_ERR_TYPE, /* no datatype, or one that is not committed */
    SHMEM_ERR_COMM,
    SHMEM_ERR_ARG,
    SHMEM_ERR_AMODE,
    SHMEM_ERR_FILE, /* no file */
    SHMEM_ERR_NOT_SAME,
    SHMEM_ERR_UNSUPPORTED_DATAREP,
    SHMEM_ERR_UNSUPPORTED_OPERATION,
    SHMEM_ERR_NO_SUCH_FILE,
    SHMEM_ERR_FILE_EXISTS,
    SHMEM_ERR_BAD_FILE, /* no file can have this name */
    SHMEM_ERR_ACCESS,
    SHMEM_ERR_READ_ONLY,
    SHMEM_ERR_NO_SPACE,
    SHMEM_ERR_QUOTA,
    SHMEM_ERR_FILE_IN_USE,
    SHMEM_ERR_IO,
    SHMEM_ERR_NO_MEM,
    SHMEM_ERR_INFO_KEY,
    SHMEM_ERR_INFO_VALUE,
    SHMEM_ERR_OTHER
};

#define SHMEM_MAX_ERROR_STRING 1024
/* What the last call of this process that failed has to say, with rank, offset and path; the code
 * in it is -errno. Before any has failed: code 0. Stays until the next failure. */
BRG_API const struct brg_error *SHMEM_Last_error(void);
/* The words of a code: of the last failure, if it had this code; else of the code alone. `text` has
 * room for SHMEM_MAX_ERROR_STRING bytes. */
BRG_API int SHMEM_Error_string(int code, char *text, int *length);

/* ---- groups ---- */

/* The PEs that share a file. Plain numbers: nothing is to be freed, equal groups are equal. */
typedef uint64_t SHMEM_Comm;
#define SHMEM_COMM_NULL ((SHMEM_Comm)0)
#define SHMEM_COMM_WORLD ((SHMEM_Comm)1)
#define SHMEM_COMM_SELF ((SHMEM_Comm)5)

/* The `size` PEs start, start + 2^log_stride, start + 2 * 2^log_stride... Collective over all PEs
 * of the job, of which each names the set that it wants, or size 0 (SHMEM_COMM_NULL); the first
 * time, memory for the files of sets is taken from the symmetric heap (64 MiB, or
 * BRIGADE_SHMEM_POOL). OpenSHMEM only. */
BRG_API int SHMEM_Comm_active_set(int start, int log_stride, int size, SHMEM_Comm *comm);
BRG_API int SHMEM_Comm_rank(SHMEM_Comm comm, int *rank);
BRG_API int SHMEM_Comm_size(SHMEM_Comm comm, int *size);
/* The ranks of an MPI communicator, for files over MPI's windows. */
BRG_API SHMEM_Comm SHMEM_Comm_of_mpi_handle(uintptr_t comm);
#if defined(MPI_VERSION)
static inline SHMEM_Comm SHMEM_Comm_of_mpi(MPI_Comm comm)
{
    return SHMEM_Comm_of_mpi_handle((uintptr_t)comm);
}
#endif

/* ---- datatypes ---- */

typedef struct shmem_datatype *SHMEM_Datatype;
#define SHMEM_DATATYPE_NULL ((SHMEM_Datatype)0)
#define SHMEM_BASIC_(number, bytes) ((SHMEM_Datatype)(uintptr_t)((number)*256 + (bytes)))
#define SHMEM_BYTE SHMEM_BASIC_(1, 1)
#define SHMEM_CHAR SHMEM_BASIC_(2, 1)
#define SHMEM_SIGNED_CHAR SHMEM_BASIC_(3, 1)
#define SHMEM_UNSIGNED_CHAR SHMEM_BASIC_(4, 1)
#define SHMEM_SHORT SHMEM_BASIC_(5, sizeof(short))
#define SHMEM_UNSIGNED_SHORT SHMEM_BASIC_(6, sizeof(short))
#define SHMEM_INT SHMEM_BASIC_(7, sizeof(int))
#define SHMEM_UNSIGNED SHMEM_BASIC_(8, sizeof(int))
#define SHMEM_LONG SHMEM_BASIC_(9, sizeof(long))
#define SHMEM_UNSIGNED_LONG SHMEM_BASIC_(10, sizeof(long))
#define SHMEM_LONG_LONG SHMEM_BASIC_(11, sizeof(long long))
#define SHMEM_LONG_LONG_INT SHMEM_LONG_LONG
#define SHMEM_UNSIGNED_LONG_LONG SHMEM_BASIC_(12, sizeof(long long))
#define SHMEM_FLOAT SHMEM_BASIC_(13, sizeof(float))
#define SHMEM_DOUBLE SHMEM_BASIC_(14, sizeof(double))
#define SHMEM_LONG_DOUBLE SHMEM_BASIC_(15, sizeof(long double))
#define SHMEM_WCHAR SHMEM_BASIC_(16, sizeof(wchar_t))
#define SHMEM_INT8_T SHMEM_BASIC_(17, 1)
#define SHMEM_INT16_T SHMEM_BASIC_(18, 2)
#define SHMEM_INT32_T SHMEM_BASIC_(19, 4)
#define SHMEM_INT64_T SHMEM_BASIC_(20, 8)
#define SHMEM_UINT8_T SHMEM_BASIC_(21, 1)
#define SHMEM_UINT16_T SHMEM_BASIC_(22, 2)
#define SHMEM_UINT32_T SHMEM_BASIC_(23, 4)
#define SHMEM_UINT64_T SHMEM_BASIC_(24, 8)
#define SHMEM_C_BOOL SHMEM_BASIC_(25, 1)
#define SHMEM_C_FLOAT_COMPLEX SHMEM_BASIC_(26, 2 * sizeof(float))
#define SHMEM_C_DOUBLE_COMPLEX SHMEM_BASIC_(27, 2 * sizeof(double))
#define SHMEM_AINT SHMEM_BASIC_(28, sizeof(SHMEM_Aint))
#define SHMEM_OFFSET SHMEM_BASIC_(29, sizeof(SHMEM_Offset))
#define SHMEM_COUNT SHMEM_BASIC_(30, sizeof(SHMEM_Count))

enum {
    SHMEM_ORDER_C,
    SHMEM_ORDER_FORTRAN
};
enum {
    SHMEM_DISTRIBUTE_BLOCK,
    SHMEM_DISTRIBUTE_CYCLIC,
    SHMEM_DISTRIBUTE_NONE
};
#define SHMEM_DISTRIBUTE_DFLT_DARG (-1)

/* A datatype has to be committed before data are moved by it, and is freed by whoever made it;
 * files and other datatypes keep what they need of it. Padding of structs is not added: use
 * SHMEM_Type_create_resized. */
BRG_API int SHMEM_Type_contiguous(SHMEM_Count count, SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_vector(SHMEM_Count count, SHMEM_Count length, SHMEM_Count stride,
                              SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_hvector(SHMEM_Count count, SHMEM_Count length,
                                      SHMEM_Count stride_bytes, SHMEM_Datatype old,
                                      SHMEM_Datatype *type);
BRG_API int SHMEM_Type_indexed(int count, const int lengths[], const int displacements[],
                               SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_indexed_c(SHMEM_Count count, const SHMEM_Count lengths[],
                                 const SHMEM_Count displacements[], SHMEM_Datatype old,
                                 SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_hindexed(int count, const int lengths[],
                                       const SHMEM_Aint displacements_bytes[], SHMEM_Datatype old,
                                       SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_hindexed_c(SHMEM_Count count, const SHMEM_Count lengths[],
                                         const SHMEM_Count displacements_bytes[],
                                         SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_indexed_block(int count, int length, const int displacements[],
                                            SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_indexed_block_c(SHMEM_Count count, SHMEM_Count length,
                                              const SHMEM_Count displacements[], SHMEM_Datatype old,
                                              SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_hindexed_block(int count, int length,
                                             const SHMEM_Aint displacements_bytes[],
                                             SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_hindexed_block_c(SHMEM_Count count, SHMEM_Count length,
                                               const SHMEM_Count displacements_bytes[],
                                               SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_struct(int count, const int lengths[],
                                     const SHMEM_Aint displacements_bytes[],
                                     const SHMEM_Datatype olds[], SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_struct_c(SHMEM_Count count, const SHMEM_Count lengths[],
                                       const SHMEM_Count displacements_bytes[],
                                       const SHMEM_Datatype olds[], SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_subarray(int ndims, const int sizes[], const int subsizes[],
                                       const int starts[], int order, SHMEM_Datatype old,
                                       SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_subarray_c(int ndims, const SHMEM_Count sizes[],
                                         const SHMEM_Count subsizes[], const SHMEM_Count starts[],
                                         int order, SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_darray(int size, int rank, int ndims, const int gsizes[],
                                     const int distributions[], const int arguments[],
                                     const int psizes[], int order, SHMEM_Datatype old,
                                     SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_darray_c(int size, int rank, int ndims, const SHMEM_Count gsizes[],
                                       const int distributions[], const int arguments[],
                                       const int psizes[], int order, SHMEM_Datatype old,
                                       SHMEM_Datatype *type);
BRG_API int SHMEM_Type_create_resized(SHMEM_Datatype old, SHMEM_Aint lb, SHMEM_Aint extent,
                                      SHMEM_Datatype *type);
BRG_API int SHMEM_Type_dup(SHMEM_Datatype old, SHMEM_Datatype *type);
BRG_API int SHMEM_Type_commit(SHMEM_Datatype *type);
BRG_API int SHMEM_Type_free(SHMEM_Datatype *type); /* *type becomes SHMEM_DATATYPE_NULL */

#define SHMEM_UNDEFINED (-1)
/* SHMEM_UNDEFINED where it does not fit. */
BRG_API int SHMEM_Type_size(SHMEM_Datatype type, int *bytes);
BRG_API int SHMEM_Type_size_c(SHMEM_Datatype type, SHMEM_Count *bytes);
BRG_API int SHMEM_Type_get_extent(SHMEM_Datatype type, SHMEM_Aint *lb, SHMEM_Aint *extent);
BRG_API int SHMEM_Type_get_true_extent(SHMEM_Datatype type, SHMEM_Aint *lb, SHMEM_Aint *extent);

/* ---- hints ---- */

typedef struct shmem_info *SHMEM_Info;
#define SHMEM_INFO_NULL ((SHMEM_Info)0)
#define SHMEM_MAX_INFO_KEY 64
#define SHMEM_MAX_INFO_VAL 256

/* Keys that are not known are kept, and no file minds them. */
BRG_API int SHMEM_Info_create(SHMEM_Info *info);
BRG_API int SHMEM_Info_set(SHMEM_Info info, const char *key, const char *value);
/* At most `room` bytes and a NUL; *found: whether the key is there. */
BRG_API int SHMEM_Info_get(SHMEM_Info info, const char *key, int room, char *value, int *found);
BRG_API int SHMEM_Info_delete(SHMEM_Info info, const char *key);
BRG_API int SHMEM_Info_free(SHMEM_Info *info);

/* ---- what was moved ---- */

typedef struct SHMEM_Status {
    int SHMEM_ERROR;
    int64_t bytes;
} SHMEM_Status;
#define SHMEM_STATUS_IGNORE ((SHMEM_Status *)0)

/* Whole copies of `type`: fewer than asked for where a file ends. SHMEM_UNDEFINED where the bytes
 * are no whole copies. */
BRG_API int SHMEM_Get_count(const SHMEM_Status *status, SHMEM_Datatype type, int *count);
BRG_API int SHMEM_Get_count_c(const SHMEM_Status *status, SHMEM_Datatype type, SHMEM_Count *count);

/* ---- files ---- */

typedef struct shmem_file *SHMEM_File;
#define SHMEM_FILE_NULL ((SHMEM_File)0)

/* SHMEM_MODE_SEQUENTIAL is not there: SHMEM_ERR_UNSUPPORTED_OPERATION. */
enum {
    SHMEM_MODE_CREATE = 1,
    SHMEM_MODE_RDONLY = 2,
    SHMEM_MODE_WRONLY = 4,
    SHMEM_MODE_RDWR = 8,
    SHMEM_MODE_DELETE_ON_CLOSE = 16,
    SHMEM_MODE_UNIQUE_OPEN = 32,
    SHMEM_MODE_EXCL = 64,
    SHMEM_MODE_APPEND = 128,
    SHMEM_MODE_SEQUENTIAL = 256
};
enum {
    SHMEM_SEEK_SET = 600,
    SHMEM_SEEK_CUR,
    SHMEM_SEEK_END
};
#define SHMEM_MAX_DATAREP_STRING 128

/* Collective. Name and amode are the same on all PEs; hints are those of the group's first PE. */
BRG_API int SHMEM_File_open(SHMEM_Comm comm, const char *path, int amode, SHMEM_Info info,
                            SHMEM_File *file);
/* Collective. Frees the file in any case. */
BRG_API int SHMEM_File_close(SHMEM_File *file);
/* The file, and its checksums. */
BRG_API int SHMEM_File_delete(const char *path, SHMEM_Info info);

/* Collective. The view begins anew at `displacement`, and the file's pointer at its beginning. Each
 * PE has a view of its own; etypes are of one size. datarep: "native". */
BRG_API int SHMEM_File_set_view(SHMEM_File file, SHMEM_Offset displacement, SHMEM_Datatype etype,
                                SHMEM_Datatype filetype, const char *datarep, SHMEM_Info info);
/* Datatypes that are not basic ones are the caller's, to be freed. */
BRG_API int SHMEM_File_get_view(SHMEM_File file, SHMEM_Offset *displacement, SHMEM_Datatype *etype,
                                SHMEM_Datatype *filetype, char *datarep);
BRG_API int SHMEM_File_get_byte_offset(SHMEM_File file, SHMEM_Offset offset, SHMEM_Offset *byte);
BRG_API int SHMEM_File_get_amode(SHMEM_File file, int *amode);
BRG_API int SHMEM_File_get_comm(SHMEM_File file, SHMEM_Comm *comm);

/* Offsets are in etypes of the view. Reading, what lies past the end of the file is not moved, and
 * *status says so. */
BRG_API int SHMEM_File_read_at(SHMEM_File file, SHMEM_Offset offset, void *buf, SHMEM_Count count,
                               SHMEM_Datatype type, SHMEM_Status *status);
BRG_API int SHMEM_File_write_at(SHMEM_File file, SHMEM_Offset offset, const void *buf,
                                SHMEM_Count count, SHMEM_Datatype type, SHMEM_Status *status);
/* Collective. */
BRG_API int SHMEM_File_read_at_all(SHMEM_File file, SHMEM_Offset offset, void *buf,
                                   SHMEM_Count count, SHMEM_Datatype type, SHMEM_Status *status);
BRG_API int SHMEM_File_write_at_all(SHMEM_File file, SHMEM_Offset offset, const void *buf,
                                    SHMEM_Count count, SHMEM_Datatype type, SHMEM_Status *status);

/* The same from this PE's own pointer on, which they move. */
BRG_API int SHMEM_File_read(SHMEM_File file, void *buf, SHMEM_Count count, SHMEM_Datatype type,
                            SHMEM_Status *status);
BRG_API int SHMEM_File_write(SHMEM_File file, const void *buf, SHMEM_Count count,
                             SHMEM_Datatype type, SHMEM_Status *status);
BRG_API int SHMEM_File_read_all(SHMEM_File file, void *buf, SHMEM_Count count, SHMEM_Datatype type,
                                SHMEM_Status *status);
BRG_API int SHMEM_File_write_all(SHMEM_File file, const void *buf, SHMEM_Count count,
                                 SHMEM_Datatype type, SHMEM_Status *status);
BRG_API int SHMEM_File_seek(SHMEM_File file, SHMEM_Offset offset, int whence);
BRG_API int SHMEM_File_get_position(SHMEM_File file, SHMEM_Offset *offset);

BRG_API int SHMEM_File_get_size(SHMEM_File file, SHMEM_Offset *bytes);
/* Collective, with the same number on all PEs. */
BRG_API int SHMEM_File_set_size(SHMEM_File file, SHMEM_Offset bytes);
/* Collective. What all PEs wrote is on stable storage, and seen by all. */
BRG_API int SHMEM_File_sync(SHMEM_File file);

/* What was chosen and why, and what the last collective call came to, one fact a line. Belongs to
 * the file. */
BRG_API const char *SHMEM_File_explain(SHMEM_File file);

#ifdef __cplusplus
}
#endif

#endif
