/* Codes and words of failures. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "shmemio/inside.h"

static struct {
    struct brg_error failure;
    int code;
} last = {.failure = NO_FAILURE};

static const struct {
    int number, code;
    const char *words;
} codes[] = {
    {0, SHMEM_SUCCESS, "no error"},
    {WRONG_COUNT, SHMEM_ERR_COUNT, "no such count"},
    {WRONG_TYPE, SHMEM_ERR_TYPE, "no datatype, or one that is not committed"},
    {WRONG_COMM, SHMEM_ERR_COMM, "no such group of PEs"},
    {EINVAL, SHMEM_ERR_ARG, "an argument that is not allowed"},
    {EOVERFLOW, SHMEM_ERR_ARG, "past 2^63 bytes"},
    {WRONG_AMODE, SHMEM_ERR_AMODE, "no way to open a file"},
    {WRONG_FILE, SHMEM_ERR_FILE, "no file"},
    {NOT_SAME, SHMEM_ERR_NOT_SAME, "PEs gave different arguments to a collective call"},
    {WRONG_DATAREP, SHMEM_ERR_UNSUPPORTED_DATAREP, "no such representation of data"},
    {ENOTSUP, SHMEM_ERR_UNSUPPORTED_OPERATION, "not possible on this file"},
    {ENOENT, SHMEM_ERR_NO_SUCH_FILE, "no such file"},
    {EEXIST, SHMEM_ERR_FILE_EXISTS, "the file exists"},
    {ENOTDIR, SHMEM_ERR_BAD_FILE, "no file can have this name"},
    {EISDIR, SHMEM_ERR_BAD_FILE, "a folder"},
    {ENAMETOOLONG, SHMEM_ERR_BAD_FILE, "a name that is too long"},
    {ELOOP, SHMEM_ERR_BAD_FILE, "links that lead in circles"},
    {EACCES, SHMEM_ERR_ACCESS, "not permitted"},
    {EPERM, SHMEM_ERR_ACCESS, "not permitted"},
    {EROFS, SHMEM_ERR_READ_ONLY, "a read-only file or file system"},
    {ENOSPC, SHMEM_ERR_NO_SPACE, "no space left"},
    {EFBIG, SHMEM_ERR_NO_SPACE, "past the largest size of a file"},
    {EDQUOT, SHMEM_ERR_QUOTA, "past the quota"},
    {EBUSY, SHMEM_ERR_FILE_IN_USE, "the file is in use"},
    {ETXTBSY, SHMEM_ERR_FILE_IN_USE, "the file is in use"},
    {EIO, SHMEM_ERR_IO, "reading or writing failed"},
    {ENOMEM, SHMEM_ERR_NO_MEM, "no memory"},
    {ENOKEY, SHMEM_ERR_INFO_KEY, "no such key"},
    {EKEYREJECTED, SHMEM_ERR_INFO_VALUE, "no such value of a key"},
    {EMFILE, SHMEM_ERR_OTHER, "too many files or groups are open"},
};
#define N_CODES (sizeof codes / sizeof *codes)

int shmemio_end(const struct brg_error *failure)
{
    if (!failure->code)
        return SHMEM_SUCCESS;
    last.code = SHMEM_ERR_OTHER;
    for (size_t i = 0; i < N_CODES; i++)
        if (codes[i].number == -failure->code)
            last.code = codes[i].code;
    if (failure != &last.failure)
        last.failure = *failure;
    return last.code;
}

int shmemio_refuse(int code, const char *format, ...)
{
    struct brg_error failure = NO_FAILURE;
    va_list words;
    va_start(words, format);
    vsnprintf(failure.text, sizeof failure.text, format, words);
    va_end(words);
    failure.code = code;
    return shmemio_end(&failure);
}

const struct brg_error *SHMEM_Last_error(void)
{
    return &last.failure;
}

int SHMEM_Error_string(int code, char *text, int *length)
{
    const char *words = "an error that is not known";
    for (size_t i = N_CODES; i-- > 0;)
        if (codes[i].code == code)
            words = codes[i].words;
    if (code && code == last.code)
        words = last.failure.text;
    *length = snprintf(text, SHMEM_MAX_ERROR_STRING, "%s", words);
    return SHMEM_SUCCESS;
}
