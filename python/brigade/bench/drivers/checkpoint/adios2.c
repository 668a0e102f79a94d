/* ADIOS2's BP5 without MPI, as the wheel of PyPI has it: every rank its own file, PATH.RANK. */
#ifdef WITH_ADIOS2
#include <adios2_c.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"

/* A BP5 file is a folder of files; nothing in it syncs them. */
static int sync_folder(const char *path, struct outcome *outcome)
{
    DIR *folder = opendir(path);
    if (!folder)
        return outcome_fail(outcome, "%s: %s", path, strerror(errno));
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        int fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        failed |= fd < 0 || fsync(fd) != 0;
        if (fd >= 0)
            close(fd);
    }
    closedir(folder);
    return failed ? outcome_fail(outcome, "%s: cannot be synced", path) : 0;
}

static int run(const struct cell *cell, int writing, char *buf, struct outcome *outcome)
{
    size_t bytes = cell_bytes(cell), zero = 0;
    char path[sizeof cell->path + 16];
    snprintf(path, sizeof path, "%s.%d", cell->path, cell->rank);
    adios2_adios *adios = adios2_init_serial();
    adios2_io *io = adios2_declare_io(adios, "checkpoint");
    adios2_set_engine(io, "BP5");
    adios2_engine *engine = adios2_open(io, path, writing ? adios2_mode_write : adios2_mode_read);
    if (!engine)
        return outcome_fail(outcome, "ADIOS2 cannot open %s", path);
    outcome_lap(outcome, OPEN);
    adios2_step_status status;
    adios2_begin_step(engine, writing ? adios2_step_mode_append : adios2_step_mode_read, -1.0f,
                      &status);
    adios2_variable *data = writing
                                ? adios2_define_variable(io, "data", adios2_type_uint8_t, 1, &bytes,
                                                         &zero, &bytes, adios2_constant_dims_true)
                                : adios2_inquire_variable(io, "data");
    adios2_error rc = !data     ? adios2_error_runtime_error
                      : writing ? adios2_put(engine, data, buf, adios2_mode_deferred)
                                : adios2_get(engine, data, buf, adios2_mode_deferred);
    if (rc == adios2_error_none)
        rc = adios2_end_step(engine);
    outcome_lap(outcome, MOVE);
    if (rc != adios2_error_none || adios2_close(engine) != adios2_error_none)
        return outcome_fail(outcome, "ADIOS2 failed at %s", path);
    adios2_finalize(adios);
    if (writing && cell->sync && sync_folder(path, outcome) != 0)
        return -1;
    outcome_lap(outcome, CLOSE);
    return 0;
}

static int adios2_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    return run(cell, 1, (char *)buf, outcome);
}

static int adios2_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    return run(cell, 0, buf, outcome);
}

const struct back_end back_end_adios2 = {
    .name = "adios2", .own_files = 1, .write = adios2_write, .read = adios2_read};
#endif
