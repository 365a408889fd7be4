// Package meshfile reads triangle meshes from .obj, .ply (ascii, binary little and big endian) and .stl (ascii and binary)
// files.
//
// Only the surface is read: vertex positions and faces. Normals, texture coordinates, colours, materials and any other
// property are skipped. A polygon with n corners becomes the n-2 triangles of a fan around its first corner, in place, so
// the triangles of a mesh are numbered in the order of its file. Positions become float32; wider ones are rounded to the
// nearest and reported ([Mesh.Rounded]).
//
// A .stl file repeats the position of a corner in every triangle that shares it. Corners whose positions are equal are
// made one vertex, because otherwise no edge of such a mesh would have two faces. The other formats have indices, and
// vertices that they keep apart stay apart.
//
// Every declared count is compared with the bytes that are there before memory is taken for it. What is wrong is a
// [*fileio.Fault] that names the line, the row or the triangle.
package meshfile
