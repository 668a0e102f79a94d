/* The table of threads, by their number. See task.h. */
#include "trace/task.h"

#include <stdlib.h>
#include <unistd.h>

static struct trace_task **place_of(struct trace_tasks *all, pid_t tid)
{
    struct trace_task **at = &all->buckets[(unsigned)tid % TRACE_BUCKETS];
    while (*at && (*at)->tid != tid)
        at = &(*at)->next;
    return at;
}

struct trace_task *trace_task_find(const struct trace_tasks *all, pid_t tid)
{
    struct trace_task *task = all->buckets[(unsigned)tid % TRACE_BUCKETS];
    while (task && task->tid != tid)
        task = task->next;
    return task;
}

struct trace_task *trace_task_create(struct trace_tasks *all, pid_t tid, struct trace_image *image)
{
    struct trace_task *task = malloc(sizeof *task), **at = place_of(all, tid);
    if (!task)
        return NULL;
    task->tid = tid;
    task->image = image;
    task->exiting = 0;
    task->folder = -1;
    task->call = NULL;
    task->next = NULL;
    image->tasks++;
    image->living++;
    all->living++;
    *at = task;
    return task;
}

unsigned trace_task_leaves(struct trace_tasks *all, struct trace_task *task)
{
    if (!task->exiting) {
        task->exiting = 1;
        task->image->living--;
        all->living--;
    }
    return task->image->living;
}

static void release(struct trace_image *image)
{
    if (--image->tasks == 0)
        free(image);
}

void trace_task_destroy(struct trace_tasks *all, struct trace_task *task)
{
    struct trace_task **at = place_of(all, task->tid);
    trace_task_leaves(all, task);
    *at = task->next;
    if (task->folder >= 0)
        close(task->folder);
    release(task->image);
    free(task);
}

void trace_task_move(struct trace_task *task, struct trace_image *image)
{
    image->tasks++;
    image->living += !task->exiting;
    task->image->living -= !task->exiting;
    release(task->image);
    task->image = image;
}

void trace_task_keep_only(struct trace_tasks *all, struct trace_task *kept)
{
    for (unsigned i = 0; kept->image->tasks > 1 && i < TRACE_BUCKETS; i++)
        for (struct trace_task *task = all->buckets[i], *next; task; task = next) {
            next = task->next;
            if (task->image == kept->image && task != kept)
                trace_task_destroy(all, task);
        }
    if (kept->exiting) { /* a leader that had ended: the thread that called exec has its number */
        kept->exiting = 0;
        kept->image->living++;
        all->living++;
    }
}
