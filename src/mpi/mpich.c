/* The binary interface that MPICH, Intel MPI, MVAPICH and Cray MPICH share since 2014: a handle is
 * an int with a fixed value (www.mpich.org/abi; the values are those of MPICH's mpi.h). */
#include "mpi/types.h"

typedef int comm_t, type_t, op_t, handler_t, request_t, window_t, info_t;
#define REQUEST(r) (&(r)->handle.number)
#define STATUS_IGNORE ((void *)1)
#define ANY_SOURCE (-2)
#define UNDEFINED (-32766)
#define THREAD_FUNNELED 1
#define COMBINER_FIRST 1
#define ORDER_FORTRAN 57
#define DISTRIBUTE_CYCLIC 122
#define DISTRIBUTE_NONE 123
#define DISTRIBUTE_DFLT_DARG (-49767)
#define ERR_ACCESS 20
#define ERR_READ_ONLY 40
#define ERR_NO_SUCH_FILE 37
#define ERR_NO_SPACE 36
#define ERR_QUOTA 39
#define ERR_NO_MEM 34
#define ERR_IO 32
#define MODE_RDONLY 2
#define MODE_WRONLY 4
#define MODE_SEQUENTIAL 256
#define MODE_CREATE 1
#define MODE_RDWR 8
#define MODE_UNIQUE 32
#define SEEK_FROM_START 600
#define STOPS_AT_END 1
#define THREAD_MULTIPLE 3
#define FROM_FORTRAN "MPI_Comm_f2c"
#define INTERFACE mpi_mpich

static int fill_constants(void *library);

#include "mpi/combiners.inc"
#include "mpi/calls.inc"

static int fill_constants(void *library)
{
    (void)library;
    k.world = 0x44000000;
    k.self = 0x44000001;
    k.byte = 0x4c00010d;
    k.int64 = 0x4c00083a;
    k.type_null = 0x0c000000;
    k.min = 0x58000002;
    k.sum = 0x58000003;
    k.no_info = 0x1c000000;
    k.no_comm = 0x04000000;
    k.no_file = NULL;
    k.errors_return = 0x54000001;
    return 0;
}
