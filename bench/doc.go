// Command bench measures what several devices cost and save on one batch of work, and checks that they agree bit by bit.
//
//	go run ./bench                     measure on every GPU; without one, check results on two emulated devices
//	go run ./bench --study all         also make tables: batch sizes, scenes, builds, the cost of dividing calls, sums and paths
//	go run ./bench --runs 20           also report how much the speed-ups vary
//	go run ./bench plot RECORD         draw speed-up by batch size as SVG
//	go run ./bench launch              time what one kernel launch costs the calling thread
//	go run ./bench manifest            write bench/manifest.json and the tables in docs from bench/evidence
//	go run ./bench -h                  options and exit statuses
//
// # What runs
//
// For each configuration of package workload the same batch is traced on the first device alone (the master) and on the
// whole set. Row mode "forced" splits equally whatever the size, which measures the mechanism; row mode "policy" uses the
// shipped defaults, which is what a caller gets, and takes over the forced times when both plans are the same. Mode "calibrated" lets
// multi.CalibrateDevices choose the weights, and "streamed" gives the result to a hook chunk by chunk.
//
// # Timing
//
// A call is timed between two readings of the monotonic clock, each after every device of the set has been waited for. Variants are
// interleaved: each round takes a sample of every variant, the one that starts rotates, and each follows every other one
// equally often, so a slow spell of the machine and what a call leaves behind meet them all. A row has as many rounds as
// --repeat says, and on GPUs more where its calls are short: until they add up to 150 ms, at most 500, the same number for all its
// variants. A sample is a call, or where a call takes less than 100 microseconds the mean of 16. With --repeat 1 it is one call of
// each variant, whatever it takes, so that a profiler can count launches. The loop is locked to its thread, garbage is collected
// between rounds, once for 10 ms of calls, and result buffers come from the pool; a driver allocation inside a sample after the
// warm-up is a failed check. All samples are kept. Speedups compare minima.
//
// # Checks
//
// Beside the comparison of every column value by value, results are compared with values that were derived without any
// tracer: hit counts, the first rows of each configuration, and on the planar grid the closed form of every row. Chains of
// reflections begin with the closest hit of the same ray, bit by bit, and have no gaps. The SHA-256 of every column is
// printed, recorded and compared with bench/pins.json. A failed check makes the exit status 1.
//
// On emulated devices times say nothing about any GPU; such a run is a check of results and is labelled so.
package main
