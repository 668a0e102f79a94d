"""ld.so under the auditor finds what it would have found, and says what it would have said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from libc_version import sound_under_auditors
from world import World, compile_c

from brigade.trial.answers import answers

NAME = 'const char *{0}(void) {{ return "{0} from {1}"; }}'
SHOW = """
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
static int each(struct dl_phdr_info *i, size_t n, void *p)
{
    if (strstr(i->dlpi_name, "shared")) printf("loaded %s\\n", i->dlpi_name);
    return 0;
}
static void where(void *f)
{
    Dl_info i;
    printf("dladdr %s\\n", dladdr(f, &i) ? i.dli_fname : "?");
}
"""
USE_A = (
    SHOW
    + """
const char *a(void);
int main(void) { puts(a()); where(a); dl_iterate_phdr(each, 0); return 0; }
"""
)


def same(
    world: World, program: Path, *arguments: str, trial: bool = True, alone: bool = True, **options
) -> None:
    """The program prints the same plain, under the recorder and under the view, and (`alone`) the
    staged run needs nothing of the tree."""
    plain = world.plain(program, *arguments, **options)
    assert plain.stdout
    records, recorded = world.record(program, *arguments, **options)
    assert (recorded.stdout, recorded.stderr) == (plain.stdout, plain.stderr)
    world.put(trial=records if trial else None)
    viewed = world.run(program, *arguments, **options)
    assert (viewed.stdout, viewed.stderr) == (plain.stdout, plain.stderr)
    assert viewed.returncode == plain.returncode
    if not alone:
        return
    world.hide()
    try:
        hidden = world.run(program, *arguments, strict=True, **options)
    finally:
        world.show()
    assert (hidden.stdout, hidden.stderr) == (plain.stdout, plain.stderr)


def library(world: World, name: str, where: str, *flags: str, text: str = "") -> Path:
    source = text or NAME.format(name, where)
    return compile_c(source, world.tree / where / f"lib{name}.so", "-shared", *flags)


def program(world: World, source: str, *flags: str, where: str = "bin") -> Path:
    return compile_c(source, world.tree / where / "prog", *flags)


@pytest.mark.parametrize("tags", ["--disable-new-dtags", "--enable-new-dtags"])
def test_rpath_and_runpath(world: World, tags: str) -> None:
    library(world, "a", "lib")
    (world.tree / "empty").mkdir()
    paths = f"{world.tree}/nowhere:{world.tree}/empty:{world.tree}/lib"
    same(world, program(world, USE_A, f"-L{world.tree}/lib", "-la", f"-Wl,{tags},-rpath,{paths}"))


@pytest.mark.parametrize("trial", [True, False])
def test_origin(world: World, trial: bool) -> None:
    library(world, "b", "deps/more")
    text = "const char *b(void); const char *a(void) { return b(); }"
    library(world, "a", "lib", f"-L{world.tree}/deps/more", "-lb",
            "-Wl,-rpath,$ORIGIN/../none:$ORIGIN/../deps/more", text=text)  # fmt: skip
    same(world, program(world, USE_A, f"-L{world.tree}/lib", "-la", "-Wl,-rpath,$ORIGIN/../lib",
                        "-Wl,--allow-shlib-undefined"), trial=trial)  # fmt: skip


def test_origin_is_where_the_link_is_not_where_it_leads(world: World) -> None:
    library(world, "b", "lib")
    text = "const char *b(void); const char *a(void) { return b(); }"
    library(world, "a", "store", f"-L{world.tree}/lib", "-lb", "-Wl,-rpath,$ORIGIN", text=text)
    (world.tree / "lib" / "liba.so").symlink_to("../store/liba.so")
    same(world, program(world, USE_A, f"-L{world.tree}/lib", "-la",
                        f"-Wl,-rpath,{world.tree}/lib,--allow-shlib-undefined"))  # fmt: skip


def test_library_path_decides_before_runpath(world: World) -> None:
    library(world, "a", "first")
    library(world, "a", "second")
    exe = program(world, USE_A, f"-L{world.tree}/second", "-la", f"-Wl,-rpath,{world.tree}/second")
    same(world, exe)
    assert "from second" in world.run(exe).stdout
    env = {**os.environ, "LD_LIBRARY_PATH": f"{world.tree}/first"}
    assert "from first" in world.run(exe, env=env).stdout  # the trial knew nothing of it
    same(world, exe, env=env)


LESS = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-SSE4_2,-SSSE3,-POPCNT"}  # than x86-64-v2 has


def test_another_processor_gets_its_own_build_of_a_library(world: World) -> None:
    library(world, "a", "lib")
    library(world, "a", "lib/glibc-hwcaps/x86-64-v2")
    library(world, "b", "lib")
    text = USE_A.replace("puts(a());", "puts(a()); puts(b());").replace(
        "const char *a", "const char *b(void); const char *a"
    )
    exe = program(world, text, f"-L{world.tree}/lib", "-la", "-lb", f"-Wl,-rpath,{world.tree}/lib")
    other = {**os.environ, **LESS}
    plain, less = world.plain(exe).stdout, world.plain(exe, env=other).stdout
    if plain == less:
        pytest.skip("needs a processor, and a glibc since 2.33, that choose by glibc-hwcaps")
    records, _ = world.record(exe)
    world.put(trial=records)
    assert world.run(exe).stdout == plain
    assert world.run(exe, env=other).stdout == less
    known = {(answer.name, answer.path) for answer in answers(records)[0]}
    assert ("libb.so", f"{world.tree}/lib/libb.so") in known
    assert "liba.so" not in {name for name, _ in known}


def test_a_child_with_another_library_path_searches_anew(world: World) -> None:
    library(world, "a", "first")
    library(world, "a", "second")
    exe = program(world, USE_A, f"-L{world.tree}/first", "-la")
    script = world.tree / "bin" / "both.sh"
    script.write_text(
        f"#!/bin/sh\nLD_LIBRARY_PATH={world.tree}/second {exe}\n"
        f"LD_LIBRARY_PATH={world.tree}/first {exe}\n"
    )
    script.chmod(0o755)
    same(world, script)


DLOPEN = (
    SHOW
    + """
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *h = dlopen(argv[i], RTLD_NOW), *again = dlopen(argv[i], RTLD_NOW);
        if (!h) { puts(dlerror()); continue; }
        struct link_map *m;
        dlinfo(h, RTLD_DI_LINKMAP, &m);
        printf("%s: same %d, l_name %s\\n", argv[i], h == again, m->l_name);
        printf("NOLOAD %d\\n", dlopen(m->l_name, RTLD_NOW | RTLD_NOLOAD) == h);
        const char *(*f)(void) = dlsym(h, "a");
        if (f) { puts(f()); where(f); }
    }
    dl_iterate_phdr(each, 0);
    for (int i = 1; i < argc; i++) {
        void *h = dlopen(argv[i], RTLD_NOW);
        if (!h) continue;
        dlclose(h); dlclose(h);
        printf("closed %d, %d\\n", dlclose(h), dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD) == 0);
    }
    return 0;
}
"""
)


def test_dlopen_by_name_and_by_path(world: World) -> None:
    library(world, "a", "lib")
    library(world, "c", "plugins", text=NAME.format("a", "c"))
    (world.tree / "plugins" / "libc1.so").symlink_to("libc.so")
    exe = program(world, DLOPEN, f"-Wl,-rpath,{world.tree}/lib")
    t = str(world.tree)
    same(world, exe, "liba.so")
    same(world, exe, f"{t}/plugins/libc.so", f"{t}/plugins/../plugins/libc1.so")
    same(world, exe, f"{t}/plugins/libc1.so", "liba.so", "libm.so.6")
    same(world, exe, "./libc.so", "../lib/liba.so", cwd=f"{t}/plugins", alone=False)


def test_a_missing_library_has_the_same_words(world: World) -> None:
    (world.tree / "lib").mkdir()
    exe = program(world, DLOPEN, f"-Wl,-rpath,{world.tree}/lib")
    t = str(world.tree)
    world.put(trial=world.record(exe, "libnone.so", f"{t}/lib/libnone.so", f"{t}/bin/prog")[0])
    for name in ("libnone.so", f"{t}/lib/libnone.so", f"{t}/none/libnone.so", "./none.so", t):
        assert world.run(exe, name).stdout == world.plain(exe, name).stdout
    library(world, "a", "lib")
    needs = program(world, USE_A, f"-L{t}/lib", "-la", f"-Wl,-rpath,{t}/lib", where="bin2")
    (world.tree / "lib" / "liba.so").unlink()
    world.put()
    plain, viewed = world.plain(needs), world.run(needs)
    assert (viewed.stdout, viewed.stderr, viewed.returncode) == (
        plain.stdout, plain.stderr, plain.returncode)  # fmt: skip
    assert "cannot open shared object file" in plain.stderr


def test_a_library_that_the_image_lacks_is_found_through_a_staged_one(world: World) -> None:
    """$ORIGIN of a staged library lies in the stage, where the folder may not even be; and ld.so
    never comes back to a folder that was not there once."""
    library(world, "b", "more")
    text = """
#include <dlfcn.h>
const char *a(void)
{
    const char *(*f)(void);
    dlopen("libnone.so", RTLD_NOW);
    void *h = dlopen("libb.so", RTLD_NOW);
    return h && (f = dlsym(h, "b")) ? f() : dlerror();
}"""
    library(world, "a", "lib", "-Wl,-rpath,$ORIGIN/../more", text=text)
    source = (
        SHOW
        + """
const char *a(void);
int main(int argc, char **argv) { if (argc > 1) puts(a()); where(a); return 0; }
"""
    )
    where = f"{world.tree}/lib"
    exe = program(world, source, f"-L{where}", "-la", f"-Wl,-rpath,{where}")
    trial = world.record(exe)[0]  # it learns where liba is, and nothing of libb
    plain = world.plain(exe, "more")
    assert plain.stdout.startswith("b from more")
    for forget in (["more"], ["more/libb.so"]):
        subprocess.run(["rm", "-rf", str(world.stage)], check=True)
        world.put(forget=forget, unlisted=["more", "."], trial=trial)
        assert world.run(exe, "more").stdout == plain.stdout
        assert world.counts().misses["UNKNOWN"] >= 1
        assert world.counts().loads == 1


@pytest.mark.parametrize("size", [4096, 8192])
def test_libraries_with_much_static_tls_load(world: World, size: int) -> None:
    text = (f"__thread char big[{size}]; const char *a(void) "
            "{ big[1] = 'x'; return big[1] == 'x' ? \"tls\" : 0; }")  # fmt: skip
    library(world, "a", "lib", "-ftls-model=initial-exec", text=text)
    where = f"{world.tree}/lib"
    same(world, program(world, USE_A, f"-L{where}", "-la", f"-Wl,-rpath,{where}", where="linked"))
    # not even a plain process has room for this much in a library that is opened later; ours must
    exe = program(world, DLOPEN)
    world.put()
    assert "\ntls\n" in world.run(exe, f"{where}/liba.so").stdout


@sound_under_auditors
def test_a_library_in_another_namespace(world: World) -> None:
    library(world, "a", "lib")
    source = (
        SHOW
        + """
int main(int argc, char **argv)
{
    void *h = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    if (!h) { puts(dlerror()); return 1; }
    const char *(*f)(void) = dlsym(h, "a");
    puts(f()); where(f);
    return 0;
}
"""
    )
    # ld.so does not ask auditors about the first object of a namespace: it comes from the tree
    same(world, program(world, source), f"{world.tree}/lib/liba.so", alone=False)


def test_an_exception_crosses_staged_libraries(world: World) -> None:
    lib = world.tree / "lib" / "liba.so"
    lib.parent.mkdir()
    subprocess.run(["g++", "-x", "c++", "-", "-shared", "-fPIC", "-o", str(lib)], check=True,
                   text=True, input="#include <stdexcept>\n"
                   "void a() { throw std::runtime_error(\"thrown\"); }")  # fmt: skip
    exe = world.tree / "prog"
    subprocess.run(["g++", "-x", "c++", "-", "-o", str(exe), f"-L{lib.parent}", "-la",
                    f"-Wl,-rpath,{lib.parent}"], check=True, text=True,
                   input="#include <stdexcept>\n#include <iostream>\nvoid a();\n"
                   "int main() { try { a(); } catch (std::runtime_error &e) "
                   "{ std::cout << e.what() << std::endl; } }")  # fmt: skip
    same(world, exe)


def test_preloaded_and_audited_by_the_user_too(world: World) -> None:
    library(world, "a", "lib")
    library(world, "p", "lib", text="#include <stdio.h>\n"
            "__attribute__((constructor)) void p(void) { puts(\"preloaded\"); }")  # fmt: skip
    compile_c("#include <stdio.h>\nunsigned la_version(unsigned v) { return v; }",
              world.tree / "lib" / "audit.so", "-shared")  # fmt: skip
    exe = program(world, USE_A, f"-L{world.tree}/lib", "-la", f"-Wl,-rpath,{world.tree}/lib")
    env = {**os.environ, "LD_PRELOAD": f"{world.tree}/lib/libp.so",
           "LD_AUDIT": f"{world.base}/audit.so"}  # fmt: skip
    os.rename(world.tree / "lib" / "audit.so", world.base / "audit.so")
    same(world, exe, env=env)
