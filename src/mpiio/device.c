/* See device.h. The libraries are found by the names of what is loaded, whoever loaded them and
 * however: a program has one, or its MPI, or neither. No header of theirs is included; the few
 * words of theirs that are used have stayed the same in all versions. */
#include "mpiio/device.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    CUDA_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
    CUDA_IS_MANAGED = 8,  /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
    CUDA_DEVICE = 2       /* CU_MEMORYTYPE_DEVICE */
};

/* hipPointerAttribute_t; what the numbers of its types mean is another thing in each version. */
struct hip_attributes {
    int type, device;
    void *on_device, *on_host;
    int managed;
    unsigned flags;
    uint64_t later[16];
};

typedef int cuda_call(void *value, int attribute, unsigned long long pointer);
typedef int hip_call(struct hip_attributes *attributes, const void *pointer);

enum {
    CUDA,
    HIP,
    N_DRIVERS
};

static struct {
    const char *library, *name; /* what the library's file name begins with */
    _Atomic(void *) call;       /* NULL: not found yet. One that is found stays loaded */
} drivers[N_DRIVERS] = {[CUDA] = {.library = "libcuda.so", .name = "cuPointerGetAttribute"},
                        [HIP] = {.library = "libamdhip64.so", .name = "hipPointerGetAttributes"}};

struct search {
    unsigned long long loaded; /* objects, ever */
    char path[N_DRIVERS][4096];
};

static int count(struct dl_phdr_info *object, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = object->dlpi_adds;
    return 1;
}

static int look(struct dl_phdr_info *object, size_t size, void *search)
{
    struct search *s = search;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash ? slash + 1 : object->dlpi_name;
    (void)size;
    for (int i = 0; i < N_DRIVERS; i++)
        if (strncmp(name, drivers[i].library, strlen(drivers[i].library)) == 0)
            snprintf(s->path[i], sizeof s->path[i], "%s", object->dlpi_name);
    return 0;
}

static void find(void)
{
    struct search search = {.loaded = 0};
    dl_iterate_phdr(look, &search);
    for (int i = 0; i < N_DRIVERS; i++) {
        void *library = NULL;
        if (!atomic_load(&drivers[i].call) && *search.path[i])
            library = dlopen(search.path[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            atomic_store(&drivers[i].call, dlsym(library, drivers[i].name));
    }
}

void device_look(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long long last;
    unsigned long long loaded = 0;
    dl_iterate_phdr(count, &loaded);
    pthread_mutex_lock(&lock);
    if (loaded != last)
        find();
    last = loaded;
    pthread_mutex_unlock(&lock);
}

static int is_of_cuda(void *call, const void *memory)
{
    cuda_call *get;
    unsigned type = 0, managed = 0;
    unsigned long long pointer = (uintptr_t)memory;
    *(void **)&get = call;
    return get(&type, CUDA_MEMORY_TYPE, pointer) == 0 && type == CUDA_DEVICE &&
           (get(&managed, CUDA_IS_MANAGED, pointer) || !managed);
}

static int is_of_hip(void *call, const void *memory)
{
    hip_call *get;
    struct hip_attributes found = {.type = 0};
    *(void **)&get = call;
    return get(&found, memory) == 0 && found.on_device && !found.on_host && !found.managed;
}

int device_has(const void *memory)
{
    void *cuda = atomic_load_explicit(&drivers[CUDA].call, memory_order_acquire);
    void *hip = atomic_load_explicit(&drivers[HIP].call, memory_order_acquire);
    return (cuda && is_of_cuda(cuda, memory)) || (hip && is_of_hip(hip, memory));
}
