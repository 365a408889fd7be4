// Package governance holds the rules of the repository that a compiler does
// not check: which package may import which, where unsafe may appear, what a
// binary may depend on. Each rule is a function over facts, so that a test
// can break the facts and see the rule fail.
package governance
