# Names this build by its sources: `cmake -DROOT=... -DOUT=... -P build-id.cmake` writes OUT.
# Images hold parts of the Brigade that made them, and what its trial concluded, so another build
# makes its own (brigade/job/key.py).
file(GLOB_RECURSE sources ${ROOT}/src/*.[ch] ${ROOT}/src/*.def ${ROOT}/src/*.inc ${ROOT}/python/brigade/*.py)
list(SORT sources)
foreach(source IN LISTS sources)
  file(SHA256 ${source} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE ${OUT} ${id})
