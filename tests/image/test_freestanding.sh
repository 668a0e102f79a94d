#!/bin/sh
# The index look-ups need nothing that a freestanding compiler does not emit by itself, have no
# writable data and no thread-local storage: the ld.so auditor is linked without libc.
# Compiled as the auditor is: without what some distributions' compilers add unasked.
# usage: test_freestanding.sh CC NM SOURCE INCLUDE
set -eu
cc=$1 nm=$2 source=$3 include=$4
object=freestanding-$$.o
trap 'rm -f "$object"' EXIT
for level in -O0 -O2; do
    "$cc" -c $level -ffreestanding -fno-stack-protector -U_FORTIFY_SOURCE -fPIC -std=gnu17 \
        -I"$include" "$source" -o "$object"
    bad=$("$nm" "$object" | awk '
        $1 == "U" && $2 !~ /^(memcpy|memcmp|memset|strlen|brg_[a-z_]*|_GLOBAL_OFFSET_TABLE_)$/
        $2 ~ /^[dDbBC]$/')
    if [ -n "$bad" ]; then
        echo "$source at $level needs: $bad"
        exit 1
    fi
done
