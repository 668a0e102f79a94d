/* Open MPI's binary interface: a handle is the address of an object of the library. */
#include "mpi/types.h"

typedef void *comm_t, *type_t, *op_t, *handler_t, *request_t, *window_t, *info_t;
#define REQUEST(r) (&(r)->handle.pointer)
#define STATUS_IGNORE NULL
#define ANY_SOURCE (-1)
#define UNDEFINED (-32766)
#define THREAD_FUNNELED 1
#define COMBINER_FIRST 0
#define ORDER_FORTRAN 1
#define DISTRIBUTE_CYCLIC 1
#define DISTRIBUTE_NONE 2
#define DISTRIBUTE_DFLT_DARG (-1)
#define ERR_ACCESS 20
#define ERR_READ_ONLY 45
#define ERR_NO_SUCH_FILE 42
#define ERR_NO_SPACE 41
#define ERR_QUOTA 44
#define ERR_NO_MEM 39
#define ERR_IO 35
#define MODE_RDONLY 2
#define MODE_WRONLY 4
#define MODE_SEQUENTIAL 256
#define MODE_CREATE 1
#define MODE_RDWR 8
#define MODE_UNIQUE 32
#define SEEK_FROM_START 600
#define THREAD_MULTIPLE 3
#define FROM_FORTRAN "MPI_Comm_f2c"
#define INTERFACE mpi_openmpi

static int fill_constants(void *library);

#include "mpi/combiners.inc"
#include "mpi/calls.inc"

static int fill_constants(void *library)
{
    k.world = dlsym(library, "ompi_mpi_comm_world");
    k.self = dlsym(library, "ompi_mpi_comm_self");
    k.byte = dlsym(library, "ompi_mpi_byte");
    k.int64 = dlsym(library, "ompi_mpi_int64_t");
    k.type_null = dlsym(library, "ompi_mpi_datatype_null");
    k.min = dlsym(library, "ompi_mpi_op_min");
    k.sum = dlsym(library, "ompi_mpi_op_sum");
    k.no_info = dlsym(library, "ompi_mpi_info_null");
    k.no_comm = dlsym(library, "ompi_mpi_comm_null");
    k.no_file = dlsym(library, "ompi_mpi_file_null");
    k.errors_return = dlsym(library, "ompi_mpi_errors_return");
    return k.world && k.self && k.byte && k.int64 && k.type_null && k.min && k.sum && k.no_info &&
                   k.no_comm && k.no_file && k.errors_return
               ? 0
               : -1;
}
