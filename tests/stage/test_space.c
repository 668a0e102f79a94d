/* The memory that a control group allows is the least along its chain, page cache given back. */
#include "stage/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int failures;
static char top[] = "/tmp/brigade-space-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", top, name);
    for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

static void expect(uint64_t want, const char *claim)
{
    char proc[512], sys[512];
    snprintf(proc, sizeof proc, "%s/proc", top);
    snprintf(sys, sizeof sys, "%s/sys", top);
    uint64_t got = space_cgroup(proc, sys);
    if (got != want) {
        failures++;
        printf("FAIL %s: %llu, not %llu\n", claim, (unsigned long long)got,
               (unsigned long long)want);
    }
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    expect(UINT64_MAX, "a machine without control groups has no limit");
    put("proc/self/cgroup", "0::/job/step\n");
    expect(UINT64_MAX, "a group without a memory controller has no limit");
    put("sys/job/step/memory.max", "max\n");
    expect(UINT64_MAX, "max is no limit");
    put("sys/job/memory.max", "1000000\n");
    put("sys/job/memory.current", "400000\n");
    expect(600000, "a limit above counts");
    put("sys/job/memory.stat", "anon 5\ninactive_file 100000\nactive_file 50000\n");
    expect(750000, "page cache gives way");
    put("sys/job/step/memory.max", "500000\n");
    put("sys/job/step/memory.current", "300000\n");
    expect(200000, "the least along the chain counts");
    put("sys/job/step/memory.current", "700000\n");
    expect(0, "a group over its limit has nothing left");
    put("proc/self/cgroup", "11:cpu:/x\n5:memory:/slurm/job\n");
    put("sys/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/memory/slurm/memory.limit_in_bytes", "3000\n");
    put("sys/memory/slurm/memory.usage_in_bytes", "1000\n");
    expect(2000, "version 1 is understood too");
    char command[600];
    snprintf(command, sizeof command, "rm -r %s", top);
    failures += system(command) != 0;
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
