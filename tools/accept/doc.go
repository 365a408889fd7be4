// Command accept runs the acceptance set of the multi-device layer: groups of tests, each in a process of its own, on the
// devices of this host.
//
//	go run ./tools/accept -list                             devices and groups; status 3 with fewer than two devices
//	go run ./tools/accept                                   every group on all GPUs
//	go run ./tools/accept -devices emu:2 -allow-partial     the same on two emulated devices
//	accept -binaries DIR                                    with test binaries made by `accept -build DIR`, where there is no Go
//
// A group is the tests of some packages whose names begin alike, so `go test -run '^TestMultiSmoke' ./multi ./scene` is the
// first one by hand. A process of its own for each matters: programs of OptiX live as long as the process, and what a
// plain scene does not touch can only be seen where nothing else has run.
//
// The last line says what was verified. Exit status: 0 verified; 1 a test failed, or a group had no test to run; 2 usage;
// 3 nothing was verified, because the host has fewer than two devices, the devices were emulated, or every test of a
// group was skipped. -allow-partial turns 3 into 0, and the line stays.
//
// Tests read RAYMUX_TEST_DEVICES or RAYMUX_TEST_EMULATED for the devices, and REQUIRE_DEVICES for how many must be there.
package main
