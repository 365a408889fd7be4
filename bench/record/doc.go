// Package record holds the benchmark's result record: its Go types, its JSON Schema, the rules that a schema cannot
// express, and the manifest of committed evidence.
//
// A record is valid when it passes both [ValidateSchema], which checks shape and closes every object, and [Check], which
// checks that the numbers agree with each other (a speedup is the quotient of its times, a verdict follows from its
// interval, every ordered device pair occurs once ...). [Decode] does both, and so does [Record.WriteFile] before it
// writes.
//
// There are two kinds of record. A live measurement is written by the benchmark and carries everything. A historical
// import is transcribed from a publication, says so, and carries only what was published: fields that would have to be
// guessed are absent, and the rules for it are the weaker ones that rounded numbers allow.
//
// A row has as many samples of each variant as its rounds, which are at least those that were asked for; the rows of older
// records do not tell, and have exactly these. A sample is a call, or the mean of as many as the row tells.
//
// Times are integer nanoseconds. Every timing names its resolution: 1 for a live one, 10000 where the source printed
// milliseconds with two decimals.
package record
