/* See straight.h. */
#include "mpiio/straight.h"

#include "mpiio/device.h"
#include "mpiio/late.h"
#include "type/decode.h"

static int position(struct file *f, const struct call *call, int64_t *etypes)
{
    *etypes = call->offset;
    return call->at ? 0 : late_position(f, etypes);
}

int straight_run(struct file *f, const struct call *call, int64_t *etypes, struct io_part *run)
{
    uint64_t bytes, at;
    int64_t into;
    struct walk file;
    if (!f->has_view || call->count <= 0 ||
        !type_run(f->mpi->types, call->type, (uint64_t)call->count, &bytes, &into) ||
        (uintptr_t)call->buf + (uint64_t)into < CALL_LOWEST_ADDRESS ||
        device_has(call->buf + into) || position(f, call, etypes) || *etypes < 0 ||
        __builtin_mul_overflow((uint64_t)*etypes, f->view.etype_bytes, &at) ||
        bytes % f->view.etype_bytes || at > f->most_bytes || bytes > f->most_bytes - at)
        return 0;
    walk_start(&file, f->view.data, at);
    *run = (struct io_part){
        .offset = (uint64_t)file.run.at, .memory = call->buf + into, .bytes = (size_t)bytes};
    return file.run.bytes >= bytes;
}

int straight_move(struct io_store *store, int write, const struct io_part *run, uint64_t *moved,
                  struct brg_error *failure)
{
    size_t got = run->bytes;
    int rc = write ? store_write(store, run->memory, run->bytes, run->offset, failure)
                   : store_read(store, run->memory, run->bytes, run->offset, &got, failure);
    *moved = got;
    return rc;
}
