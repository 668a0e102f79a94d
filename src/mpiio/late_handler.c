/* See late_handler.h. A function of ours has nothing by which to know for whom it was called but
 * itself, so there is one for each function of the program's. They are few, and never given back:
 * MPI does not tell when a handler is used no more. */
#include "mpiio/late_handler.h"

#include <pthread.h>
#include <stddef.h>

/* MPI's own words, file, code and more of each MPI's, in registers. */
typedef void called(word *file, word code, word a, word b);
typedef void program_function(word *file, word code, ...);

static _Thread_local struct file *opening;

void late_handler_opening(struct file *f)
{
    opening = f;
}

/* The program's function may call MPI as it may anywhere. What is no late file's is as MPI says it.
 * A function in Fortran's words points at less than a handle: no file of ours has what is found
 * there. */
static void call(word function, word *file, word code, word a, word b)
{
    struct file *f = file_in_mpi(*file);
    if (!f && opening && !file_of(*file))
        f = opening;
    word own = f ? f->handle : 0;
    int inside = hooks_inside;
    hooks_inside = 0;
    ((program_function *)function)(f ? &own : file, code, a, b);
    hooks_inside = inside;
}

#define EACH(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define COUNT(n) +1
enum {
    N_FUNCTIONS = 0 EACH(COUNT)
};

static word functions[N_FUNCTIONS];

#define DEFINE(n)                                               \
    static void call_##n(word *file, word code, word a, word b) \
    {                                                           \
        call(functions[n], file, code, a, b);                   \
    }
EACH(DEFINE)

#define NAME(n) call_##n,
static called *const ours[N_FUNCTIONS] = {EACH(NAME)};

word late_handler_of(word function)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    word found = function;
    int n = 0;
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (!function || function == (word)ours[i])
            return function;
    pthread_mutex_lock(&lock);
    while (n < N_FUNCTIONS && functions[n] && functions[n] != function)
        n++;
    if (n < N_FUNCTIONS) {
        functions[n] = function;
        found = (word)ours[n];
    }
    pthread_mutex_unlock(&lock);
    return found;
}
