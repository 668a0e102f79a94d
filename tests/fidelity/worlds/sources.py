"""The C of a world's libraries, and of the part of its program that is the world's own.

A library shows which file answered: every line that it writes carries the folder it was built for.
No header is included, which makes a compilation three times as fast.
"""

from __future__ import annotations

from .describe import ElfWorld, Library

_HEAD = """
typedef struct { const char *file; void *base; const char *symbol; void *address; } info;
int dprintf(int, const char *, ...);
int dladdr(const void *, info *);
void *dlsym(void *, const char *);
void *dlopen(const char *, int);
char *dlerror(void);
"""

_LIBRARY = """
void common(void) { dprintf(1, "common of NAME in WHERE\\n"); }
static void where(const char *what, const void *address)
{
    info i;
    if (address && dladdr(address, &i))
        dprintf(1, "NAME in WHERE: %s %s %s\\n", what, i.file, i.symbol ? i.symbol : "-");
}
"""

#: feature -> (text at file level, text in the library's function)
_PARTS = {
    "constructor": (
        "__attribute__((constructor)) static void begin(void)\n"
        '{ dprintf(1, "begin NAME in WHERE\\n"); }',
        "",
    ),
    "destructor": (
        '__attribute__((destructor)) static void end(void) { dprintf(1, "end NAME in WHERE\\n"); }',
        "",
    ),
    "tls_gd": (
        '__thread int gd_NAME __attribute__((tls_model("global-dynamic"))) = 7;',
        'dprintf(1, "gd %d\\n", gd_NAME++);',
    ),
    "tls_ld": (
        'static __thread int ld_a __attribute__((tls_model("local-dynamic"))) = 5, ld_b;',
        'ld_b += 2; dprintf(1, "ld %d %d\\n", ld_a++, ld_b);',
    ),
    "tls_ie": (
        '__thread int ie_NAME __attribute__((tls_model("initial-exec"))) = 9;',
        'dprintf(1, "ie %d\\n", ie_NAME++);',
    ),
    "tls_big": (
        '__thread char big_NAME[4096] __attribute__((tls_model("initial-exec"))) = "big";',
        'big_NAME[4000]++; dprintf(1, "%s %d\\n", big_NAME, big_NAME[4000]);',
    ),
    "tls_desc": ("__thread long desc_NAME = 11;", 'dprintf(1, "desc %ld\\n", desc_NAME++);'),
    "ifunc": (
        "static int chosen(void) { return 77; }\n"
        "static void *choose(void) { return (void *)chosen; }\n"
        'int picked_NAME(void) __attribute__((ifunc("choose")));',
        'dprintf(1, "ifunc %d\\n", picked_NAME());',
    ),
    "next": ("", 'where("next", dlsym((void *)-1, "common"));'),
}

_VERSIONED = """
int old_NAME(void) { return 1; }
__asm__(".symver old_NAME, versioned_NAME@V1");
int new_NAME(void) { return 2; }
__asm__(".symver new_NAME, versioned_NAME@@V2");
"""
_VERSIONED_OLD = """
int old_NAME(void) { return 1; }
__asm__(".symver old_NAME, versioned_NAME@@V1");
"""
VERSION_SCRIPT = "V1 { global: versioned_NAME; };\nV2 { global: versioned_NAME; } V1;\n"
VERSION_SCRIPT_OLD = "V1 { global: versioned_NAME; };\n"

THROW = """
struct thrown { int number; virtual int get() { return number; } };
extern "C" void throw_NAME(void) { thrown t; t.number = 4; throw t; }
"""
CATCH = """
struct thrown { int number; virtual int get() { return number; } };
extern "C" int world_catch(void (*f)(void))
{
    try { f(); } catch (thrown &t) { return t.get(); }
    return -1;
}
"""


def library_source(world: ElfWorld, library: Library, where: str, old: bool, tree: str) -> str:
    """`where` is the folder that this copy says it is in; `old` leaves the newer version out."""
    text, body = _HEAD + _LIBRARY, 'where("own", &seen);\n    common();\n'
    for feature, (outside, inside) in _PARTS.items():
        if feature in library.features:
            text += outside + "\n"
            body += f"    {inside}\n" if inside else ""
    if library.opens:
        calls = "".join(
            f'    if (!dlopen("{name}", 2)) dprintf(1, "NAME in WHERE: %s\\n", dlerror());\n'
            for name in library.opens
        )
        text += "__attribute__((constructor)) static void opens(void)\n{\n" + calls + "}\n"
    if "versioned" in library.features:
        text += _VERSIONED_OLD if old else _VERSIONED
    for need in library.needs:
        needed = world.library(need)
        if not needed:
            continue
        text += f"void {need}(void);\n"
        body += f"    {need}();\n"
        if "versioned" in needed.features and int(need[1:]) > int(library.name[1:]):
            text += f"int versioned_{need}(void);\n"
            body += f'    dprintf(1, "versioned %d\\n", versioned_{need}());\n'
    text += "void NAME(void)\n{\n    static int seen;\n    if (seen++)\n        return;\n    "
    text += body + "}\nvoid hello(void) { NAME(); }\n"
    return text.replace("NAME", library.name).replace("WHERE", where).replace("{tree}", tree)


def program_source(world: ElfWorld) -> str:
    """`world_start()`, and `world_catch()` where there is no C++."""
    program = world.program
    text, body = _HEAD, ""
    if "tls_le" in program.features:
        text += '__thread int le __attribute__((tls_model("local-exec"))) = 3;\n'
        body += '    dprintf(1, "le %d\\n", le++);\n'
    for need in program.needs:
        needed = world.library(need)
        if needed:
            text += f"void {need}(void);\n"
            body += f"    {need}();\n"
            if "versioned" in needed.features:
                text += f"int versioned_{need}(void);\n"
                body += f'    dprintf(1, "versioned %d\\n", versioned_{need}());\n'
    if not throws(world):
        text += "int world_catch(void (*f)(void)) { f(); return -2; }\n"
    return f"{text}void world_start(void)\n{{\n{body}}}\n"


def throws(world: ElfWorld) -> bool:
    return any("throws" in library.features for library in world.libraries)
