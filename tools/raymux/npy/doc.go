// Package npy reads and writes the NumPy files that the raymux program exchanges with its users: .npy, versions 1 and 2,
// little endian, C or Fortran order, and .npz archives of them.
//
// A reader trusts nothing that a file says about itself: every declared size is compared with the bytes that are there
// before memory is taken for it, and what is read from an archive is checked against its checksum. What is wrong is a
// [*fileio.Fault].
package npy
