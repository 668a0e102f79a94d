#!/bin/sh
# libbrigade.so exports what brigade.map lists and nothing else; all of it is in image.h.
# usage: test_exports.sh NM LIBRARY MAP HEADER
set -eu
nm=$1 library=$2 map=$3 header=$4
listed=$(sed -n 's/^ *\(brg_[a-z_]*\);$/\1/p' "$map" | sort)
exported=$("$nm" -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort)
public=$(tr '\n' ' ' <"$header" | grep -o 'BRG_API [^(]*(' | grep -o 'brg_[a-z_]*(' | tr -d '(' | sort)
others=$("$nm" -D --defined-only "$library" | awk '$2 != "T" && $2 != "A"')
status=0
[ "$listed" = "$exported" ] || { echo "listed: $listed"; echo "exported: $exported"; status=1; }
[ "$listed" = "$public" ] || { echo "listed: $listed"; echo "in the header: $public"; status=1; }
[ -z "$others" ] || { echo "also exported: $others"; status=1; }
exit $status
