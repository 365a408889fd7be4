package workload

// Box returns the smallest and the largest coordinates of a mesh, which has at least one vertex.
func (m Mesh) Box() (lo, hi [3]float32) {
	lo, hi = [3]float32(m.Vertices), [3]float32(m.Vertices)
	for i, v := range m.Vertices {
		lo[i%3], hi[i%3] = min(lo[i%3], v), max(hi[i%3], v)
	}
	return lo, hi
}

// CameraRays returns side x side rays of a pinhole camera that looks down at the middle of a box from outside, row by
// row: neighbours in the batch are neighbours in the picture, so that rays are coherent. The picture shows about the
// whole box.
func CameraRays(lo, hi [3]float32, side int) Rays {
	var middle, size [3]float64
	largest := 0.0
	for k := range middle {
		middle[k] = (float64(lo[k]) + float64(hi[k])) / 2
		size[k] = float64(hi[k]) - float64(lo[k])
		largest = max(largest, size[k])
	}
	// The camera stands in front of the box to its left and above. Forward, right and up are an orthogonal frame with
	// rational components: 2, 3, 6 have length 7.
	forward := [3]float64{3.0 / 7, 6.0 / 7, -2.0 / 7}
	right := [3]float64{6.0 / 7, -2.0 / 7, 3.0 / 7}
	up := [3]float64{-2.0 / 7, 3.0 / 7, 6.0 / 7}
	const distance, aperture = 1.25, 0.45 // in largest sides, and the tangent of half the field of view
	var eye [3]float32
	for k := range eye {
		eye[k] = float32(middle[k] - float64(float64(distance*largest)*forward[k]))
	}
	r := newRays(side * side)
	parallel(r.Len(), func(begin, end int) {
		for i := begin; i < end; i++ {
			x := float64(aperture * (float64(2*(i%side)+1-side) / float64(side)))
			y := float64(aperture * (float64(side-1-2*(i/side)) / float64(side)))
			var d [3]float64
			for k := range d {
				r.Origins[3*i+k] = eye[k]
				d[k] = (forward[k] + float64(x*right[k])) + float64(y*up[k])
			}
			r.Directions[3*i], r.Directions[3*i+1], r.Directions[3*i+2] = normalize(d[0], d[1], d[2])
		}
	})
	return r
}

// BoxRays returns n rays that start uniformly in a box and point in every direction. A flat box is filled up to a tenth
// of its largest side, half of it on either side.
func BoxRays(seed uint64, lo, hi [3]float32, n int) Rays {
	r := newRays(n)
	fillVolume(seed, r)
	largest := max(hi[0]-lo[0], hi[1]-lo[1], hi[2]-lo[2])
	var middle, half [3]float32
	for k := range middle {
		middle[k] = (lo[k] + hi[k]) / 2
		half[k] = max(hi[k]-lo[k], largest/10) / 2
	}
	parallel(n, func(begin, end int) {
		for i := 3 * begin; i < 3*end; i++ {
			r.Origins[i] = middle[i%3] + float32(half[i%3]*r.Origins[i])
		}
	})
	return r
}
