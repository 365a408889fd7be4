#!/usr/bin/env bash
# Runs prebuilt test binaries and the benchmark on a machine with GPUs, where no Go toolchain is needed. Run it in the
# root of the repository. It builds nothing but the small C program that launches are compared with, and that only when
# the folder holds no build of it and a C compiler is there.
#
#   build, elsewhere:  mkdir -p .carry
#                      CGO_ENABLED=0 go build -o .carry/bench ./bench
#                      CGO_ENABLED=0 go build -o .carry/raymux ./tools/raymux
#                      CGO_ENABLED=0 go build -o .carry/loads ./tools/ptxaudit/loads
#                      for p in cuda scene multi; do CGO_ENABLED=0 go test -c -o .carry/$p.test ./$p; done
#                      cc -O2 -o .carry/launch_c bench/launch_c/launch.c -ldl
#                      cp A_SCANNED_MESH.ply .carry/scan.ply     (for example pymeshfix/examples/StanfordBunny.ply, which
#                                                                `pip download --no-deps pymeshfix==0.18.1` brings)
#   run, there:        bench/gpu.sh [-b FOLDER] [-d LIST] [-m MESH] [-o FOLDER] [STEP ...]
#
#   -b FOLDER   the binaries (default .carry)
#   -d LIST     devices, the first is the master (default 0,1)
#   -m MESH     a scanned mesh for the studies (default scan.ply in the folder of the binaries, if there is one)
#   -o FOLDER   logs, records and pins (default artifacts/gpu)
#   STEP        (default: all in this order)
#               info                      what the machine offers
#               loads                     every module on every device; left out by default when there is no build of it
#               cuda, scene, multi        the package's tests in two runs, which can be asked for one by one, without the
#                                         costly ones that use emulated devices on every machine:
#                 cuda-forward ...        on LIST, with the last device of LIST current on the calling thread
#                 cuda-reversed ...       on LIST in reverse, with the first one current
#               refuse                    tests with devices that do not exist: they must fail, not skip
#               bench, single             the benchmark on the set with its tables (fixed cost of a divided call, speed-up by batch
#                                         size and scaling.svg, the drawing of it; sums on grids, and paths), and the rows of
#                                         the master alone
#               spread                    twenty runs of the rows in one process, on the set
#               studies                   the benchmark on the master, and its tables: batch sizes, scenes, builds, sums on
#                                         grids, and paths
#               launch                    the cost of a launch
#               sanitize                  small tests of every kernel under the four tools of compute-sanitizer, each in a
#                                         process of its own on the last device of LIST; only when it is asked for
#
# With one device in LIST the tests run once, without another current device, and those that need two are skipped.
# The last lines are a table of the runs; the status is 1 if any failed. Logs are FOLDER/RUN.txt.
set -u

bin=.carry out=artifacts/gpu devices=0,1 mesh=
while getopts b:d:m:o: opt; do
    case $opt in
    b) bin=$OPTARG ;;
    d) devices=$OPTARG ;;
    m) mesh=$(realpath "$OPTARG") || exit 2 ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
mkdir -p "$out" || exit 2
bin=$(cd "$bin" && pwd) || exit 2
out=$(cd "$out" && pwd) || exit 2
set_size=$(($(printf %s "$devices" | tr -cd , | wc -c) + 1))
[ $# -gt 0 ] || set -- info $([ -x "$bin/loads" ] && echo loads) cuda scene multi refuse bench single $([ "$set_size" -lt 2 ] || echo spread) studies launch
[ -n "$mesh" ] || [ ! -e "$bin/scan.ply" ] || mesh=$bin/scan.ply

reversed=$(printf '%s\n' "$devices" | tr , '\n' | tac | paste -sd ,)

# Tests that use emulated devices wherever they run, and take long. CI runs them.
emulated='^Test(MultiResilience.*|MultiPolicy.*|SessionSurvives.*)$'

package_tests() { # PACKAGE DEVICES [FLAG ...]: in the package's folder, because some tests read files beside them
    local package=$1 list=$2
    shift 2
    (cd "$package" && RAYMUX_TEST_DEVICES=$list REQUIRE_DEVICES=${REQUIRE_DEVICES:-$set_size} "$bin/$package.test" -test.v -test.count=1 -test.timeout=480s "$@")
}

forward() { # another device than the first is current on the calling thread
    [ "$set_size" -lt 2 ] || export RAYMUX_TEST_CURRENT=${devices##*,}
    package_tests "$1" "$devices" -test.skip "$emulated"
}

reversed() { RAYMUX_TEST_CURRENT=${devices%%,*} package_tests "$1" "$reversed" -test.skip "$emulated"; }

refused() { # PACKAGE TEST DEVICES TEXT: the test fails with the text and is not skipped
    local log=$out/refused-$1-$3.txt
    if package_tests "$1" "$3" -test.run "^$2\$" >"$log" 2>&1; then
        echo "$1 $2 passes on devices $3" && return 1
    fi
    if ! grep -q "^--- FAIL: $2 " "$log" || ! grep -qF "$4" "$log" || grep -q -e '--- SKIP' "$log"; then
        echo "$1 $2 on devices $3 does not fail with \"$4\":" && tail -n 20 "$log" && return 1
    fi
    echo "$1 $2 fails on devices $3"
}

refuse() {
    local status=0
    refused cuda TestHardwareDriver 99 'names device 99' || status=1
    refused scene TestI27EmptyBatch 99 'names device 99' || status=1
    refused multi TestMultiSceneOneDeviceIsPlain 99 'names device 99' || status=1
    refused multi TestMultiSceneCallerStream "${devices%%,*},99" 'names device 99' || status=1
    REQUIRE_DEVICES=2 refused multi TestMultiSceneCallerStream "${devices%%,*}" 'NOT VERIFIED: needs 2' || status=1
    return $status
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

# Small tests that launch every kernel of the scene.
sanitized='TestOracleSoup TestIntersectClosedForms TestL15RefitEqualsAFreshBuild TestL11L12Instance TestDedupClosedForms
    TestReflectClosedForms TestReflectTies TestDeviceTreesOfDegenerateGeometry TestDeviceTreesHoldEveryTriangleOnce
    TestVisibleClosedForms TestVisibleOracle TestVisibleChainOracle TestVisibleEdgeOracle
    TestAccumDfrDirectOneCell TestAccumDfrDirectTwoStates TestAccumDfrDirectKeller TestAccumDfrDirectBlocked
    TestAccumDfrDirectChunks TestAccumDfrDirectPartsOfPairs TestGridCallJoin TestDfrPathsOfFilledRows
    TestCoherentSumsPathRows TestCoherentOfAnyNumberOfStates TestDfrPathsOfTheWedge TestDfrPathsInPieces
    TestEPCTable TestEPCFieldTable TestEPCPassesThroughGroups
    TestReflGridA3DirectAndReflected TestReflGridA7ParallelMirrors TestReflGridX5EveryNumberOfRows TestReflGridX6Guard
    TestWedgesW2EventsBehindTheFirst TestWedgesW3FirstEventsAreKept
    TestLanesShareSearches TestSharedWinners TestSmallMarkedSearches TestSearchFinalizesWhatIsReady TestGridCallCollect'

# TOOL TEST: initcheck does not see what launches of OptiX write, so it leaves their subtests out.
sanitize_one() {
    local log=$logs/$1-$2.txt skip=() status
    [ "$1" != initcheck ] || skip=(-test.skip '.*/optix|.*/.*/optix')
    (cd scene && timeout 400 "$sanitizer" --tool "$1" --error-exitcode 9 "$bin/scene.test" -test.v -test.run "^$2\$" "${skip[@]}") >"$log" 2>&1
    status=$?
    grep -q '^--- PASS' "$log" || status=1 # nothing ran
    printf '%-9s %-38s %s, %d tests,%s\n' "$1" "$2" "$([ $status = 0 ] && echo ok || echo "FAILED ($status)")" \
        "$(grep -c '^ *--- PASS' "$log")" "$(grep -h ' SUMMARY: ' "$log" | tail -n 1 | sed 's/^=* *[A-Z]* SUMMARY//')"
}

sanitize() {
    export RAYMUX_TEST_DEVICES=${devices##*,} logs=$out/sanitize sanitizer=${SANITIZER:-/usr/local/cuda/bin/compute-sanitizer} bin
    export -f sanitize_one
    mkdir -p "$logs"
    for test in $sanitized; do
        for tool in racecheck initcheck memcheck synccheck; do echo "$tool $test"; done
    done | xargs -P 14 -L 1 bash -c 'sanitize_one "$0" "$1"' | sort
}

step() {
    case $1 in
    info) "$bin/raymux" info ;;
    loads) "$bin/loads" ;;
    cuda-forward | scene-forward | multi-forward) (forward "${1%-forward}") ;;
    cuda-reversed | scene-reversed | multi-reversed) reversed "${1%-reversed}" ;;
    refuse) refuse ;;
    bench)
        local studies=(--accum-sweep --study dispatch,scaling,grids)
        [ "$set_size" -gt 1 ] || studies=()
        "$bin/bench" --devices "$devices" --require-devices "$set_size" "${studies[@]}" --json "$out/bench.json" --pin "$out/pins.json" || return
        [ "$set_size" -lt 2 ] || "$bin/bench" plot "$out/bench.json" >"$out/scaling.svg"
        ;;
    single)
        "$bin/bench" --devices "${devices%%,*}" --json "$out/bench_single.json" --pin "$out/pins_single.json" || return
        # The columns of one device and of the set have one digest.
        [ ! -e "$out/pins.json" ] || cmp "$out/pins.json" "$out/pins_single.json"
        ;;
    spread) "$bin/bench" --devices "$devices" --require-devices 2 --runs 20 --json "$out/bench_spread.json" ;;
    studies) "$bin/bench" --devices "${devices%%,*}" --accum-sweep --study batches,geometry,builds,grids ${mesh:+--mesh "$mesh"} --json "$out/bench_studies.json" ;;
    launch) launch ;;
    sanitize) sanitize | tee "$out/sanitize_table.txt" && grep -q ' ok, ' "$out/sanitize_table.txt" && ! grep -q FAILED "$out/sanitize_table.txt" ;;
    *) echo "unknown step $1" >&2 && return 2 ;;
    esac
}

# What the table says about a run, from its log.
summary() {
    case $1 in
    *-forward | *-reversed)
        printf '%d passed, %d failed, %d skipped' \
            "$(grep -c '^ *--- PASS' "$2")" "$(grep -c '^ *--- FAIL' "$2")" "$(grep -c '^ *--- SKIP' "$2")"
        ;;
    bench | single | spread | studies) grep -e '^FAILED' -e '^all checks' "$2" | head -n 1 | cut -c 1-100 ;;
    launch) tr -d ' \n"' <"$2" | sed -n 's/.*scope_launch:{\([^}]*\)}.*/scope \1/p' | tr -d '\n' && sed -n 's/.*"scope_to_c": *\([0-9.]*\).*/ to C \1/p' "$2" ;;
    sanitize) printf '%d runs ok, %d failed' "$(grep -c ' ok, ' "$2")" "$(grep -c ' FAILED' "$2")" ;;
    refuse) printf '%d refused' "$(grep -c ' fails on devices ' "$2")" ;;
    info | loads) head -n 1 "$2" | cut -c 1-100 ;;
    esac
}

# The runs of the steps.
runs=
for name in "$@"; do
    case $name in
    cuda | scene | multi)
        runs+=" $name-forward"
        [ "$set_size" -lt 2 ] || runs+=" $name-reversed"
        ;;
    *) runs+=" $name" ;;
    esac
done

failed=0
table=
for name in $runs; do
    log=$out/$name.txt
    echo "== $name"
    begin=$SECONDS
    if step "$name" >"$log" 2>&1; then status=ok lines=15; else status="FAILED ($?)" lines=40 failed=1; fi
    case $name in
    # The names of all passed tests are in the log.
    *-forward | *-reversed) grep -v -e '^=== ' -e '^ *--- PASS' "$log" | tail -n $lines | cut -c 1-200 ;;
    bench | single) grep -v '^  ' "$log" | tail -n 120 | cut -c 1-250 ;; # without digests
    spread) grep -e '^spread' -e '^FAILED' -e '^all checks' "$log" | cut -c 1-200 ;;
    # Digests, and the time of every batch size, are in the log.
    studies) awk '/^study /{skip = /^study batches/} !skip && !/^  /' "$log" | cut -c 1-250 ;;
    sanitize) grep FAILED "$log" ;;
    *) tail -n 40 "$log" | cut -c 1-200 ;;
    esac
    table+=$(printf '%-14s %-12s %5ds  %s' "$name" "$status" $((SECONDS - begin)) "$(summary "$name" "$log")")$'\n'
done

echo
printf '%-14s %-12s %6s  %s\n' run status time result
printf %s "$table"
exit $failed
