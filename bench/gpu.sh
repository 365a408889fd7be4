#!/usr/bin/env bash
# Runs prebuilt test binaries and the benchmark on a machine with GPUs, where no Go toolchain is needed. Run it in the
# root of the repository. It builds nothing but the small C program that launches are compared with, and that only when
# the folder holds no build of it and a C compiler is there.
#
#   build, elsewhere:  mkdir -p .carry
#                      CGO_ENABLED=0 go build -o .carry/bench ./bench
#                      CGO_ENABLED=0 go build -o .carry/raymux ./tools/raymux
#                      for p in cuda scene multi; do CGO_ENABLED=0 go test -c -o .carry/$p.test ./$p; done
#                      cc -O2 -o .carry/launch_c bench/launch_c/launch.c -ldl
#   run, there:        bench/gpu.sh [-b FOLDER] [-d LIST] [-o FOLDER] [STEP ...]
#
#   -b FOLDER   the binaries (default .carry)
#   -d LIST     devices of the benchmark, the first is the master (default 0,1)
#   -o FOLDER   logs, records and pins (default artifacts/gpu)
#   STEP        (default: all in this order)
#               info                        what the machine offers
#               cuda, scene, multi          the package's tests on the devices
#               scene-other, multi-other    the same with the last device current on the calling thread
#               missing                     scene's tests with a device that does not exist: they must fail, not skip
#               bench, single, launch       the benchmark on the set and on the master alone, the cost of a launch
#
# The last lines are a table of the steps; the status is 1 if any failed. Logs are FOLDER/STEP.txt.
set -u

bin=.carry out=artifacts/gpu devices=0,1
while getopts b:d:o: opt; do
    case $opt in
    b) bin=$OPTARG ;;
    d) devices=$OPTARG ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- info cuda scene multi scene-other multi-other missing bench single launch

mkdir -p "$out" || exit 2
bin=$(cd "$bin" && pwd) || exit 2
out=$(cd "$out" && pwd) || exit 2
set_size=$(($(printf %s "$devices" | tr -cd , | wc -c) + 1))

# Tests run on these devices and fail where there are fewer.
export RAYMUX_TEST_DEVICES=$devices

package_tests() { # in the package's folder, because tests read files beside them
    (cd "$1" && "$bin/$1.test" -test.v -test.count=1 -test.timeout=480s)
}

missing() {
    ! RAYMUX_TEST_DEVICES=63 package_tests scene >"$out/missing.log" && grep -q 'names device 63' "$out/missing.log" &&
        echo "tests fail without their devices"
}

launch() {
    local c=$bin/launch_c
    if [ ! -x "$c" ] && command -v cc >/dev/null; then
        c=$out/launch_c
        cc -O2 -o "$c" bench/launch_c/launch.c -ldl || return 1
    fi
    if [ -x "$c" ]; then
        "$bin/bench" launch --device "${devices%%,*}" --c "$c"
    else
        echo "no C compiler and no build of launch_c: without a comparison" >&2
        "$bin/bench" launch --device "${devices%%,*}"
    fi
}

step() {
    case $1 in
    info) "$bin/raymux" info ;;
    cuda | scene | multi) package_tests "$1" ;;
    scene-other | multi-other) RAYMUX_TEST_CURRENT=${devices##*,} package_tests "${1%-other}" ;;
    missing) missing ;;
    bench) "$bin/bench" --devices "$devices" --require-devices "$set_size" --json "$out/bench.json" --pin "$out/pins.json" ;;
    single)
        "$bin/bench" --devices "${devices%%,*}" --json "$out/bench_single.json" --pin "$out/pins_single.json" || return
        # The columns of one device and of the set have one digest.
        [ ! -e "$out/pins.json" ] || cmp "$out/pins.json" "$out/pins_single.json"
        ;;
    launch) launch ;;
    *) echo "unknown step $1" >&2 && return 2 ;;
    esac
}

# What the table says about a step, from its log.
summary() {
    case $1 in
    cuda | scene* | multi*)
        printf '%d passed, %d failed, %d skipped' \
            "$(grep -c '^ *--- PASS' "$2")" "$(grep -c '^ *--- FAIL' "$2")" "$(grep -c '^ *--- SKIP' "$2")"
        ;;
    bench | single) grep -e '^FAILED' -e '^all checks' "$2" | head -n 1 | cut -c 1-100 ;;
    launch) tr -d ' \n"' <"$2" | sed -n 's/.*scope_launch:{\([^}]*\)}.*/scope \1/p' | tr -d '\n' && sed -n 's/.*"scope_to_c": *\([0-9.]*\).*/ to C \1/p' "$2" ;;
    info | missing) head -n 1 "$2" | cut -c 1-100 ;;
    esac
}

failed=0
table=
for name in "$@"; do
    log=$out/$name.txt
    echo "== $name"
    begin=$SECONDS
    if step "$name" >"$log" 2>&1; then status=ok; else status="FAILED ($?)" failed=1; fi
    tail -n 40 "$log"
    table+=$(printf '%-12s %-12s %5ds  %s' "$name" "$status" $((SECONDS - begin)) "$(summary "$name" "$log")")$'\n'
done

echo
printf '%-12s %-12s %6s  %s\n' step status time result
printf %s "$table"
exit $failed
