/* Stands for the libraries of drivers, libcuda.so and libamdhip64.so: what it was told of is a
 * device's memory. To the test it is memory like any other. */
#include <stddef.h>
#include <stdint.h>

static uintptr_t from, until;
static int managed;

void fake_device(const void *memory, size_t bytes, int is_managed)
{
    from = (uintptr_t)memory;
    until = from + bytes;
    managed = is_managed;
}

static int has(uintptr_t pointer)
{
    return pointer >= from && pointer < until;
}

#ifdef FAKE_HIP
int hipPointerGetAttributes(void *attributes, const void *pointer)
{
    struct {
        int type, device;
        void *on_device, *on_host;
        int managed;
        unsigned flags;
    } *found = attributes;
    int is = has((uintptr_t)pointer);
    found->type = 1;
    found->on_device = is ? (void *)(uintptr_t)pointer : NULL;
    found->on_host = NULL;
    found->managed = managed;
    return 0;
}
#else
int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer)
{
    if (!has(pointer) || (attribute != 2 && attribute != 8))
        return 1;
    *(int *)value = attribute == 2 ? 2 : managed;
    return 0;
}
#endif
