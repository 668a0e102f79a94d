/* See worker.h. Each of two threads has a queue; a file always goes to the same one, so its blocks
 * are written in the order they were sealed; what is read for it takes turns between both. While
 * blocks of its files are being filled, a thread looks every 20 ms whether one is older than its
 * rule allows. With nothing to do it ends after a second, and is started again when needed: a
 * program whose own threads have all ended, main's by pthread_exit, must end too. */
#include "buffer/worker.h"
#include "base/clock.h"
#include "buffer/signals.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#define WORKERS 2
#define TICK_NS 20000000
#define IDLE_S 1
#define POOL 16

static struct queue {
    struct lock lock;
    struct event event;
    struct block *head, *tail;
    uint32_t n_open;
    int state; /* 0 no thread, 1 running, -1 cannot start */
    int tid;   /* of the last thread */
    int pid;   /* its process: a clone of ours has none */
    int end;   /* as soon as there is nothing to do */
} queues[WORKERS];

static struct lock pool_lock;
static struct {
    char *at;
    uint64_t bytes;
} pool[POOL];
static struct block *spare;
static uint64_t used_bytes, limit_bytes = (uint64_t)256 << 20;

void memory_limit(uint64_t bytes)
{
    limit_bytes = bytes;
}

char *memory_take(uint64_t bytes)
{
    lock_take(&pool_lock);
    char *at = NULL;
    for (int i = 0; i < POOL && !at; i++)
        if (pool[i].bytes == bytes) {
            at = pool[i].at;
            pool[i].bytes = 0;
        }
    int may = at || used_bytes + bytes <= limit_bytes;
    if (may && !at)
        used_bytes += bytes;
    lock_leave(&pool_lock);
    if (at || !may)
        return at;
    at = sys_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!at)
        __atomic_sub_fetch(&used_bytes, bytes, __ATOMIC_RELAXED);
    return at;
}

void memory_give(char *at, uint64_t bytes)
{
    lock_take(&pool_lock);
    int kept = 0;
    for (int i = 0; i < POOL && !kept; i++)
        if (!pool[i].bytes && bytes <= (4u << 20)) {
            pool[i].at = at;
            pool[i].bytes = bytes;
            kept = 1;
        }
    if (!kept)
        used_bytes -= bytes;
    lock_leave(&pool_lock);
    if (!kept)
        sys_unmap(at, bytes);
}

struct block *block_take(uint64_t room_bytes)
{
    char *data = room_bytes ? memory_take(room_bytes) : NULL;
    if (room_bytes && !data)
        return NULL;
    lock_take(&pool_lock);
    if (!spare) {
        struct block *more =
            sys_map(65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        for (size_t i = 0; more && i < 65536 / sizeof *more; i++) {
            more[i].next = spare;
            spare = &more[i];
        }
    }
    struct block *b = spare;
    if (b)
        spare = b->next;
    lock_leave(&pool_lock);
    if (b)
        *b = (struct block){.data = data, .room_bytes = room_bytes};
    else if (data)
        memory_give(data, room_bytes);
    return b;
}

void block_give(struct block *b)
{
    if (b->data)
        memory_give(b->data, b->room_bytes);
    lock_take(&pool_lock);
    b->next = spare;
    spare = b;
    lock_leave(&pool_lock);
}

static struct queue *queue_of(const struct file *f)
{
    return &queues[(size_t)(f - files) % WORKERS];
}

static void run_job(struct block *b)
{
    struct file *f = b->file;
    uint64_t begin = report_wanted ? brg_clock_ns() : 0;
    int64_t rc = b->reads ? block_read(b) : block_write(b);
    lock_take(&f->lock);
    if (report_wanted)
        f->record->background_ns += brg_clock_ns() - begin;
    if (b->reads)
        block_filled(b, rc);
    else
        block_written(b, (int)rc);
    event_tell(&f->event);
    lock_leave(&f->lock);
    block_give(b);
}

/* Seals what has been open for too long. */
static void look_for_old(const struct queue *q)
{
    uint64_t now = brg_clock_ns();
    for (struct file *f = files + (q - queues); f < files + FILES_MOST; f += WORKERS) {
        if (!__atomic_load_n(&f->open, __ATOMIC_RELAXED) || !lock_try(&f->lock))
            continue;
        if (f->open && now - f->open->since_ns >= f->rule.delay_ns)
            block_seal(f);
        lock_leave(&f->lock);
    }
}

static struct block *next_job(struct queue *q)
{
    lock_take(&q->lock);
    struct block *b = q->head;
    if (b) {
        q->head = b->next;
        if (!q->head)
            q->tail = NULL;
    }
    lock_leave(&q->lock);
    return b;
}

/* Whether this thread is not needed any more; then it is none already for everybody else. */
static int may_end(struct queue *q)
{
    lock_take(&q->lock);
    __atomic_store_n(&q->state, 0, __ATOMIC_SEQ_CST);
    if (q->head || __atomic_load_n(&q->n_open, __ATOMIC_SEQ_CST))
        __atomic_store_n(&q->state, 1, __ATOMIC_SEQ_CST);
    int end = q->state == 0;
    lock_leave(&q->lock);
    return end;
}

static void *worker(void *argument)
{
    static const struct timespec tick = {0, TICK_NS}, idle = {IDLE_S, 0};
    struct queue *q = argument;
    inside_for_ever();
    __atomic_store_n(&q->tid, (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t count = __atomic_load_n(&q->event.count, __ATOMIC_SEQ_CST);
        struct block *b = next_job(q);
        if (b)
            run_job(b);
        int open = __atomic_load_n(&q->n_open, __ATOMIC_SEQ_CST) != 0;
        if (open)
            look_for_old(q);
        if (b)
            continue;
        if (!__atomic_load_n(&q->end, __ATOMIC_SEQ_CST))
            event_wait(&q->event, count, open ? &tick : &idle);
        int quiet = count == __atomic_load_n(&q->event.count, __ATOMIC_SEQ_CST) || q->end;
        if (!open && quiet && may_end(q))
            return NULL;
    }
}

/* The queue's lock is held. All signals stay with the program's own threads. */
static int start(struct queue *q)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 << 10);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    q->end = 0;
    q->tid = 0;
    q->pid = sys_getpid();
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&thread, &attributes, worker, q);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    q->state = rc == 0 ? 1 : -1;
    return rc == 0;
}

/* Whether a thread serves the queue, whose lock is held; started if there is none. */
static int runs(struct queue *q)
{
    if (q->state == 1 && q->pid != sys_getpid())
        q->state = 0;
    return q->state == 1 || (q->state == 0 && start(q));
}

void worker_push(struct block *b)
{
    size_t turn = b->reads ? b->slot : 0; /* what is read may come in any order */
    struct queue *q = &queues[((size_t)(queue_of(b->file) - queues) + turn) % WORKERS];
    b->next = NULL;
    lock_take(&q->lock);
    int served = runs(q);
    if (served) {
        if (q->tail)
            q->tail->next = b;
        else
            q->head = b;
        q->tail = b;
    }
    lock_leave(&q->lock);
    if (served) {
        event_tell(&q->event);
        return;
    }
    if (b->reads)
        block_filled(b, block_read(b));
    else
        block_written(b, block_write(b));
    block_give(b);
}

void worker_opened(const struct file *f)
{
    struct queue *q = queue_of(f);
    if (__atomic_add_fetch(&q->n_open, 1, __ATOMIC_SEQ_CST) != 1)
        return;
    if (__atomic_load_n(&q->state, __ATOMIC_SEQ_CST) != 1 || q->pid != sys_getpid()) {
        lock_take(&q->lock);
        runs(q);
        lock_leave(&q->lock);
    }
    event_tell(&q->event);
}

void worker_sealed(const struct file *f)
{
    __atomic_sub_fetch(&queue_of(f)->n_open, 1, __ATOMIC_SEQ_CST);
}

void worker_end_soon(void)
{
    for (struct queue *q = queues; q < queues + WORKERS; q++) {
        __atomic_store_n(&q->end, 1, __ATOMIC_SEQ_CST);
        event_tell(&q->event);
    }
}

void worker_stop(void)
{
    static const struct timespec moment = {0, 1000000};
    worker_end_soon();
    for (struct queue *q = queues; q < queues + WORKERS; q++)
        while (__atomic_load_n(&q->state, __ATOMIC_SEQ_CST) == 1 ||
               (q->tid && sys_call(SYS_tgkill, sys_getpid(), q->tid, 0, 0, 0, 0) == 0))
            sys_call(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
}

void worker_fork_begin(void)
{
    for (int i = 0; i < WORKERS; i++)
        lock_take(&queues[i].lock);
    lock_take(&pool_lock);
}

void worker_fork_end(int in_child)
{
    for (int i = 0; i < WORKERS; i++) {
        if (in_child)
            queues[i] = (struct queue){.state = 0};
        else
            lock_leave(&queues[i].lock);
    }
    lock_leave(&pool_lock);
}
