"""Programs that people run print the same and leave the same files, plain and buffered."""

from __future__ import annotations

import shutil

import pytest
from buffer_world import buffered, contents, run

PYTHON = """
import csv, multiprocessing, os, pickle, shutil, sqlite3, subprocess
with open("a.txt", "w") as f:
    for i in range(20000): f.write(f"{i} line\\n")
print(sum(len(line) for line in open("a.txt")))
with open("b.bin", "w+b") as f:
    for i in range(5000): f.write(bytes([i % 256]) * 100)
    f.seek(1000); print(f.read(10)); f.seek(5); f.write(b"xyz"); f.flush()
    print(os.path.getsize("b.bin"))
pickle.dump(list(range(5000)), open("p.pickle", "wb"))
print(len(pickle.load(open("p.pickle", "rb"))))
c = sqlite3.connect("d.db"); c.execute("create table t(a, b)")
for i in range(200):
    c.execute("insert into t values(?, ?)", (i, "x" * i))
    if i % 50 == 0: c.commit()
c.commit(); print(c.execute("select count(*), sum(length(b)) from t").fetchone()); c.close()
print(subprocess.check_output(["wc", "-c", "a.txt", "b.bin"]).decode())
f = open("log", "a"); f.write("x"); f.flush()
subprocess.run("echo y", shell=True, stdout=f)
f.write("z\\n"); f.close(); print(open("log").read())
def work(i):
    open(f"m{i}", "w").write(str(i) * 1000)
    return os.path.getsize(f"m{i}")
print(multiprocessing.get_context("fork").Pool(3).map(work, range(6)))
shutil.copy("a.txt", "c.txt"); print(open("c.txt").read() == open("a.txt").read())
"""
SHELL = """
seq 1 20000 > a.txt
exec 3<>bb; echo one >&3; echo two >&3; cat bb; (echo sub >&3); echo three >&3; exec 3>&-; cat bb
dd if=a.txt of=dd.out bs=100; cmp dd.out a.txt
dd if=/dev/zero of=dd2 bs=4k count=100 conv=fsync,notrunc
dd if=a.txt of=dd2 bs=1000 seek=3 conv=notrunc
sort -r a.txt -o a.txt; head -3 a.txt; sed -i s/1/one/ a.txt; md5sum a.txt
tar cf t.tar --mtime=@0 a.txt bb; mkdir x; tar xf t.tar -C x; cmp x/a.txt a.txt
gzip -nk a.txt; zcat a.txt.gz | md5sum
"""
COMPILED = 'int puts(const char *); int main(void) { puts("hi"); return 0; }\n'
GIT = """
git init -q g; cd g; seq 1 5000 > a.txt
git add .; git commit -qm x; git log --format='%s %H'; git fsck; git gc -q; git status --short
git checkout -qb other; echo more >> a.txt; git commit -qam y; git diff HEAD~ --stat
rm -rf .git/index
"""
FORTRAN = """
program p
integer :: i, x(100), s
open(10,file='f.txt'); do i=1,1000; write(10,*) i, sqrt(real(i)); end do; close(10)
open(10,file='f.unf',form='unformatted'); do i=1,100; x=i; write(10) x; end do; rewind(10); s=0
do i=1,100; read(10) x; s=s+x(5); end do; print *,s; backspace(10)
read(10) x; print *,x(1); close(10)
open(11,file='f.da',access='direct',recl=400,form='unformatted')
do i=50,1,-1; x=i; write(11,rec=i) x; end do
read(11,rec=7) x; print *,x(3); close(11)
open(12,file='f.st',access='stream'); write(12) 'hello'; write(12,pos=3) 'XY'
inquire(12,size=i); print *,i; close(12)
open(13,file='f.txt',position='append'); write(13,*) 'end'; close(13)
end
"""
DATES = {f"GIT_{who}_{what}": value
         for who in ("AUTHOR", "COMMITTER")
         for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "@0 +0000"))}  # fmt: skip
CASES = {
    "python": ["python3", "-c", PYTHON],
    "shell": ["bash", "-c", SHELL],
    "gcc": ["sh", "-c", f"echo '{COMPILED}' > h.c; cc -g0 -o h h.c; ./h"],
    "git": ["bash", "-c", GIT],
    "gfortran": ["sh", "-c", f'echo "{FORTRAN}" > f.f90; gfortran -o f f.f90; ./f'],
}


@pytest.mark.parametrize("rules", ["*", "*:size=4K:count=1:delay=0"])
@pytest.mark.parametrize("name", CASES)
def test_a_program_notices_nothing(tmp_path, monkeypatch, name, rules):
    if name in ("git", "gfortran") and not shutil.which(name):
        pytest.skip(f"needs {name}")
    for variable, value in DATES.items():
        monkeypatch.setenv(variable, value)
    outcomes = []
    for kind, env in (("plain", None), ("buffered", buffered(rules))):
        folder = tmp_path / kind
        folder.mkdir()
        done = run(CASES[name], folder, env)
        seconds = " copied"  # of dd, which says how long it took
        errors = [line for line in done.stderr.splitlines() if seconds not in line]
        files = contents(folder)
        files.pop("d.db", None)  # it holds a counter of changes that sqlite makes of the clock
        outcomes.append((done.returncode, done.stdout, errors, files))
    assert outcomes[1] == outcomes[0]
    assert outcomes[0][0] == 0, outcomes[0][2]
