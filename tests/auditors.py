"""ld.so auditors of a few lines."""

from __future__ import annotations

#: Does nothing.
IDLE = """
#define _GNU_SOURCE
#include <link.h>
unsigned int la_version(unsigned int version) { return version; }
unsigned int la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie) { return 0; }
"""

#: Traces calls, on x86-64: each goes through ld.so for ever.
TRACER = """
#define _GNU_SOURCE
#include <link.h>
unsigned la_version(unsigned v) { return v; }
unsigned la_objopen(struct link_map *m, Lmid_t l, uintptr_t *c) { return 3; }
uintptr_t la_symbind64(Elf64_Sym *s, unsigned n, uintptr_t *a, uintptr_t *b, unsigned *f,
                       const char *name) { return s->st_value; }
Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym *s, unsigned n, uintptr_t *a, uintptr_t *b,
                                  La_x86_64_regs *r, unsigned *f, const char *name, long *size)
{
    return s->st_value;
}
"""
