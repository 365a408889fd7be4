// Package offload streams the result of a batch: instead of one result for all rows, a
// consumer gets a complete result for each chunk of rows as soon as it is there, so that
// results may be larger than the memory of the device.
//
// A consumer is a [Func], or the body of a loop over [Seq]. It is called on the goroutine
// of the call, once for every chunk that is not empty. Chunks of one device come in
// ascending order while devices alternate, so consumers use the start row. While a
// consumer works, devices compute the next chunks into the memory that is left, and then
// wait: a slow consumer makes the call slow, not large.
//
// An error or a panic of a consumer ends the call with a [*StreamError], which says what
// was delivered; leaving the loop ends it without an error. In all cases the chunks that
// were on their way are discarded and the scene stays usable.
//
// The package knows no device. Package multi produces the chunks.
package offload
