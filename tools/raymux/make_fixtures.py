"""Writes the test files of packages npy and meshfile with programs other than ours.

    python3 -m venv v && v/bin/pip install numpy==2.4.6 plyfile==1.1.5 trimesh==5.2.0
    v/bin/python tools/raymux/make_fixtures.py

The tests state the contents again, by formula; nothing is copied from the output of the reader under test.
"""
import pathlib

import numpy as np
import plyfile
import trimesh

here = pathlib.Path(__file__).parent
arrays = here / "npy" / "testdata"
meshes = here / "meshfile" / "testdata"


def save(name, a, version=(1, 0), **kw):
    with open(arrays / name, "wb") as f:
        np.lib.format.write_array(f, a, version=version, **kw)


i, j = np.mgrid[0:5, 0:3]
a = (i - 0.25 * j).astype("<f4")
wide = (i + 1) / 3.0 + j
wide[4, 2] = 1e300
wide[3, 1] = -np.inf
save("c.npy", a)
save("fortran.npy", np.asfortranarray(a))
save("version2.npy", a, (2, 0))
save("version3.npy", a, (3, 0))
save("float64.npy", wide)
save("float64_fortran.npy", np.asfortranarray(wide))
save("bool.npy", np.array([True, False, True, True, False]))
save("rows0.npy", np.zeros((0, 3), "<f4"))
save("cube_fortran.npy", np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4)))
save("ints.npy", np.arange(10, dtype="<i4").reshape(5, 2) - 3)
save("big_endian.npy", a.astype(">f4"))
save("half.npy", a.astype("<f2"))
save("int64.npy", np.arange(5, dtype="<i8"))
save("object.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
save("structured.npy", np.zeros(3, dtype=[("x", "<f4"), ("y", "<f4")]))
save("scalar.npy", np.float32(1.5).reshape(()))
np.savez(arrays / "stored.npz", a=a, mask=np.array([True, False]))
np.savez_compressed(arrays / "packed.npz", a=a, zeros=np.zeros((4096, 3), "<f4"))

# A square pyramid: a quad and four triangles over five vertices.
v = np.array([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [1, 1, 1.5]], "<f4")
polygons = [[0, 3, 2, 1], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
triangles = np.array([[0, 3, 2], [0, 2, 1]] + polygons[1:])


def ply(name, text, byte_order, coordinate, index, length):
    vertex = np.zeros(5, [("nx", "f4"), ("x", coordinate), ("red", "u1"), ("y", coordinate), ("z", coordinate), ("q", "i2")])
    for k, axis in enumerate("xyz"):
        vertex[axis] = v[:, k]
    vertex["q"] = [-3, -2, -1, 0, 1]
    face = np.zeros(5, [("flags", "u1"), ("vertex_indices", object), ("weights", object), ("area", "f8")])
    for k, p in enumerate(polygons):
        face["vertex_indices"][k] = np.array(p, index)
        face["weights"][k] = np.arange(k, dtype="f4")
    extra = np.zeros(2, [("values", object), ("id", "u4")])
    extra["values"][0] = np.array([1.5, 2.5], "f8")
    extra["values"][1] = np.array([], "f8")
    elements = [
        plyfile.PlyElement.describe(extra, "extra", len_types={"values": "u2"}, val_types={"values": "f8"}),
        plyfile.PlyElement.describe(vertex, "vertex"),
        plyfile.PlyElement.describe(face, "face", len_types={"vertex_indices": length, "weights": "i4"},
                                    val_types={"vertex_indices": index, "weights": "f4"}),
    ]
    plyfile.PlyData(elements, text=text, byte_order=byte_order, comments=["made for a test"]).write(str(meshes / name))


ply("ascii.ply", True, "=", "f4", "i4", "u1")
ply("little.ply", False, "<", "f4", "i4", "u1")
ply("big.ply", False, ">", "f4", "u2", "i2")
ply("double.ply", False, "<", "f8", "u1", "u4")

mesh = trimesh.Trimesh(v, triangles, process=False)
(meshes / "trimesh.ply").write_bytes(mesh.export(file_type="ply"))
(meshes / "trimesh.obj").write_text(mesh.export(file_type="obj"))
(meshes / "trimesh.stl").write_bytes(mesh.export(file_type="stl"))
(meshes / "trimesh_ascii.stl").write_text(mesh.export(file_type="stl_ascii"))
