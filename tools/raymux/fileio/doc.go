// Package fileio holds the rules that every input and output file of the raymux program obeys.
//
// An input is a regular file that is opened once, whose size is known before a byte of it is believed; an output appears
// whole under its final name or not at all. Both go through [FS], a seam that lets a test make any file operation fail.
//
// What is wrong with an input is a [*Fault]: what was found and what was expected, without the file's name, which the
// program adds. Any other error (a disk that cannot be read, a full one) is returned as the operating system reported it,
// so that the program can tell bad input from a failing machine.
package fileio
