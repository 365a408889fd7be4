package optixabi

// RelocateInput describes one build input of a structure that is moved:
// RelocateTriangles or RelocateInstances. The inputs are in the order of the
// build.
type RelocateInput interface {
	// write fills an OptixRelocateInput.
	write(r record)
}

// RelocateTriangles stands for a TriangleArray.
type RelocateTriangles struct{}

func (RelocateTriangles) write(r record) {
	r.set("type", uint64(InputTriangles))
	r.part("triangleArray", "OptixRelocateInputTriangleArray").set("numSbtRecords", 1)
}

// RelocateInstances stands for an InstanceArray.
type RelocateInstances struct {
	Traversables uint64 // device address of the new traversable of each instance
	Count        uint32
}

func (a RelocateInstances) write(r record) {
	r.set("type", uint64(InputInstances))
	i := r.part("instanceArray", "OptixRelocateInputInstanceArray")
	i.set("numInstances", uint64(a.Count))
	i.set("traversableHandles", a.Traversables)
}

// AccelRelocationInfo reads what is needed to move a structure, also to
// another device.
func (t *Table) AccelRelocationInfo(c DeviceContext, h Traversable) (RelocationInfo, error) {
	var info RelocationInfo
	b := getBlock()
	defer b.put()
	code := t.call(fnAccelGetRelocationInfo, b, uintptr(c), uintptr(h), pin(b, &info))
	return info, callError(fnAccelGetRelocationInfo, code, "")
}

// RelocationCompatible reports whether the device of a context can take a
// structure that another one built.
func (t *Table) RelocationCompatible(c DeviceContext, info RelocationInfo) (bool, error) {
	b := getBlock()
	defer b.put()
	code := t.call(fnCheckRelocationCompatibility, b, uintptr(c), pin(b, &info), b.ref(0))
	return int32(b.out[0]) != 0, callError(fnCheckRelocationCompatibility, code, "")
}

// AccelRelocate makes a copy of a structure usable at its new place. The bytes
// have to be in target already, in stream order.
func (t *Table) AccelRelocate(c DeviceContext, stream uintptr, info RelocationInfo, inputs []RelocateInput, target Buffer) (Traversable, error) {
	b := getBlock()
	defer b.put()
	var list uintptr
	if len(inputs) > 0 {
		all := newRecords(t.ABI(), "OptixRelocateInput", len(inputs))
		for i, in := range inputs {
			in.write(all[i])
		}
		list = b.record(all[0])
	}
	code := t.call(fnAccelRelocate, b, uintptr(c), stream, pin(b, &info), list, uintptr(len(inputs)),
		uintptr(target.Addr), uintptr(target.Size), b.ref(0))
	if code != Success {
		return 0, callError(fnAccelRelocate, code, "")
	}
	return Traversable(b.out[0]), nil
}
