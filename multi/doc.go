// Package multi answers the queries of package scene on several devices at
// once. A [Scene] over n devices holds n replicas of one scene: the first
// device is the master, it owns every buffer that the caller passes or gets.
// A batch is divided by the weights ([chunked.Split]); each remote device
// searches its rows and sends back one winner id per row, four bytes; the
// master's finalize kernel computes every column from the winners. So the
// result is bitwise that of one device, for any number of devices, weights,
// and transport.
//
// With peer access a remote kernel reads its rays from, and writes its
// winners into, the master's buffers: one launch per device and two event
// edges, no copies ([chunked.Direct]). Otherwise rows and winners go through
// the copy engines, in chunks that overlap computation, from device to device
// ([chunked.Copy]) or by way of the host ([chunked.Host]). Peer access is believed only after a byte-pattern test of
// each directed pair, run once in [New].
//
// Accumulations on grids are divided along their lanes or rays: each device has sums of
// integers, which the master adds, or all add to one. Paths over edges are divided along their transmitters.
//
// A batch too small to be worth dividing runs on the master as the plain call
// it is; [Scene.Plan] says beforehand what would happen and why.
//
// Results that are larger than the memory of the master are streamed, chunk by
// chunk: to a function ([Offload]), to a loop ([Scene.IntersectSeq] and its
// siblings), or to host memory ([HostSink]).
package multi
