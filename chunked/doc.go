// Package chunked plans how one batch of rows is divided among devices and cut
// into launches: a pure function of the operation, the number of rows, the
// devices and the options, computed before anything is launched. It knows no
// driver and no scene, so a plan can be made, printed, compared and tested
// anywhere.
//
// [BuildPlan] works in four steps.
//
//   - [Split] divides the rows in proportion to the weights.
//   - A floor decides whether the shards are worth sending to other devices at
//     all ([FloorReport]), which together with the transport and the options
//     gives the [Kind] of dispatch.
//   - A model of the memory of each device ([MemoryEstimate]) gives the largest
//     chunk within the budget, or an error that states the minimum.
//   - Shards are cut into [Chunk] values, in the order of their submission.
//
// Executing a plan decides nothing. The page docs/plans.md of the repository
// explains plans by example.
package chunked
