/* The binary interface that MPI 5.0 itself fixes: a handle is a pointer whose value, for what is
 * predefined, is a small number (MPI 5.0, chapter 20; the values are those of its mpi.h). */
#include "mpi/mpi.h"

typedef void *comm_t, *type_t, *op_t, *handler_t, *request_t, *window_t, *info_t;
#define REQUEST(r) (&(r)->handle.pointer)
#define STATUS_IGNORE NULL
#define ANY_SOURCE (-1)
#define UNDEFINED (-32766)
#define THREAD_FUNNELED 1024
#define FROM_FORTRAN "MPI_Comm_fromint"
#define INTERFACE mpi_abi

static int fill_constants(void *library);

#include "mpi/calls.inc"

static int fill_constants(void *library)
{
    (void)library;
    k.world = (comm_t)0x101;
    k.self = (comm_t)0x102;
    k.byte = (type_t)0x247;
    k.int64 = (type_t)0x258;
    k.min = (op_t)0x22;
    k.sum = (op_t)0x21;
    k.no_info = (info_t)0x130;
    k.errors_return = (handler_t)0x143;
    return 0;
}
