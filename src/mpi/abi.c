/* The binary interface that MPI 5.0 itself fixes: a handle is a pointer whose value, for what is
 * predefined, is a small number (MPI 5.0, chapter 20; the values are those of its mpi.h). */
#include "mpi/types.h"

typedef void *comm_t, *type_t, *op_t, *handler_t, *request_t, *window_t, *info_t;
#define REQUEST(r) (&(r)->handle.pointer)
#define STATUS_IGNORE NULL
#define ANY_SOURCE (-1)
#define UNDEFINED (-32766)
#define THREAD_FUNNELED 1024
#define COMBINER_FIRST 101
#define ORDER_FORTRAN 15
#define DISTRIBUTE_CYCLIC 18
#define DISTRIBUTE_NONE 16
#define DISTRIBUTE_DFLT_DARG 19
#define ERR_ACCESS 20
#define ERR_READ_ONLY 45
#define ERR_NO_SUCH_FILE 42
#define ERR_NO_SPACE 41
#define ERR_QUOTA 44
#define ERR_NO_MEM 39
#define ERR_IO 35
#define MODE_RDONLY 16
#define MODE_WRONLY 256
#define MODE_SEQUENTIAL 64
#define SEEK_FROM_START 403
#define THREAD_MULTIPLE 4096
#define FROM_FORTRAN "MPI_Comm_fromint"
#define INTERFACE mpi_abi

static int fill_constants(void *library);

static const enum mpi_combiner combiners[] = {
    COMBINER_NAMED,    COMBINER_DUP,           COMBINER_CONTIGUOUS,
    COMBINER_VECTOR,   COMBINER_HVECTOR,       COMBINER_INDEXED,
    COMBINER_HINDEXED, COMBINER_INDEXED_BLOCK, COMBINER_HINDEXED_BLOCK,
    COMBINER_STRUCT,   COMBINER_SUBARRAY,      COMBINER_DARRAY,
    COMBINER_F90,      COMBINER_F90,           COMBINER_F90,
    COMBINER_RESIZED,  COMBINER_VALUE_INDEX};

#include "mpi/calls.inc"

static int fill_constants(void *library)
{
    (void)library;
    k.world = (comm_t)0x101;
    k.self = (comm_t)0x102;
    k.byte = (type_t)0x247;
    k.int64 = (type_t)0x258;
    k.type_null = (type_t)0x200;
    k.min = (op_t)0x22;
    k.sum = (op_t)0x21;
    k.no_comm = (comm_t)0x100;
    k.no_info = (info_t)0x130;
    k.errors_return = (handler_t)0x143;
    return 0;
}
