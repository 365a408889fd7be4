// Package chunked plans how one batch of rows is divided among devices: a
// pure function of the operation, the number of rows, the devices and the
// options, computed before anything is launched. It knows no driver and no
// scene, so a plan can be made, printed, compared and tested anywhere.
//
// [Split] is the one rule by which rows are divided. [BuildPlan] applies it,
// decides whether the batch is worth dividing at all, and says why.
package chunked
