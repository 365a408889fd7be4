// Command raymux answers ray queries from files: meshes in .obj, .ply or .stl, rays, tables and results in NumPy's .npy and
// .npz.
//
//	raymux info          devices, driver, backends, links between devices
//	raymux intersect     the closest hit of every ray
//	raymux visible       whether segments are free
//	raymux reflect       the mirror reflections of every ray
//	raymux accumulate    what rays bring to the cells of a grid over mirror reflections
//	raymux dfr-direct    the power that wedges scatter into the cells of a grid, by samples
//	raymux dfr-coherent  the field that wedges scatter to the cells of a grid
//	raymux dfr-paths     the paths from transmitters over wedges to receivers
//	raymux dfr-states    the wedges of the meshes, which the three before read
//	raymux calibrate     whether dividing an operation among the devices pays
//	raymux edge-records  the edges of the meshes and the faces beside them
//	raymux version       what the program was built from
//
// It is a thin layer over package multi: parse, validate, call, write. `raymux COMMAND -h` lists the flags of a command.
//
// Every input is checked before a device is used, and a message names the flag, the file, what was found and what was
// expected. The output file appears whole or not at all. Exit status: 0 done, 1 failed (a device, a read or a write
// error), 2 usage or bad input, 3 not enough devices, 130 interrupted.
//
// Without a GPU, -devices emu:2 runs the same kernels on two emulated devices.
package main
