package workload

// Measures of the city in metres.
const (
	cityPitch     = 40.0 // of the lots, each with one building
	cityFloor     = 3.5  // height of a floor
	cityFloorsMin = 3
	cityFloorsMax = 35
	citySideMin   = 18.0 // of a building; its diagonal fits the lot
	citySideMax   = 27.0
	cityBay       = 2.5  // width of wall for one window
	cityWindow    = 0.7  // of a bay and of a floor
	cityGlass     = 0.05 // of the windows in front of the wall
)

// CityLots is the size of the benchmark's city: more than a million triangles.
const CityLots = 36

// City returns lots x lots buildings on flat ground: boxes turned by any angle, with a window in every bay of every
// floor of every wall, in front of the wall by a few centimetres. Triangles are as small as half a window and as large
// as half a lot. The ground is at z = 0, centred on the origin. Every rectangle has four vertices of its own.
//
// Heights follow the square of a uniform variable, so that most buildings are low. Angles come from the rational
// parametrisation of the circle, because sines are not the same on every machine.
func City(seed uint64, lots int) Mesh {
	c := city{draws: NewStream(seed, 4)}
	for row := range lots {
		for column := range lots {
			c.building(uint64(row*lots+column), lot(column, lots), lot(row, lots))
		}
	}
	return c.mesh
}

// lot is the coordinate of the centre of a lot.
func lot(i, lots int) float64 { return cityPitch * (float64(i) - float64(lots-1)/2) }

type city struct {
	draws Stream
	mesh  Mesh

	centre [2]float64 // of the current building
	axis   [2]float64 // its direction x; y is a quarter turn to the left
}

// building adds one building and the ground of its lot.
func (c *city) building(k uint64, x, y float64) {
	draw := func(i uint64) float64 { return float64(c.draws.Unit(4*k + i)) }
	turn, tall := draw(0), draw(1)
	width := citySideMin + float64((citySideMax-citySideMin)*draw(2))
	depth := citySideMin + float64((citySideMax-citySideMin)*draw(3))
	floors := cityFloorsMin + int(float64(cityFloorsMax-cityFloorsMin)*float64(tall*tall))

	c.centre, c.axis = [2]float64{x, y}, [2]float64{1, 0}
	half := cityPitch / 2
	c.rectangle([2]float64{-half, -half}, [2]float64{1, 0}, cityPitch, [3]float64{0, cityPitch, 0}, 0)

	square := float64(turn * turn)
	c.axis = [2]float64{(1 - square) / (1 + square), 2 * turn / (1 + square)}
	height := float64(float64(floors) * cityFloor)
	corner := [2]float64{-width / 2, -depth / 2}
	along := [2]float64{1, 0}
	for range 2 {
		for _, length := range []float64{width, depth} {
			c.wall(corner, along, length, height, floors)
			corner[0] += float64(length * along[0])
			corner[1] += float64(length * along[1])
			along = [2]float64{-along[1], along[0]}
		}
	}
	c.rectangle(corner, [2]float64{1, 0}, width, [3]float64{0, depth, 0}, height)
}

// wall adds a wall from a corner of the building, with the outside to the right of its direction, and its windows.
func (c *city) wall(corner, along [2]float64, length, height float64, floors int) {
	c.rectangle(corner, along, length, [3]float64{0, 0, height}, 0)
	bays := int(length / cityBay)
	bay := length / float64(bays)
	right := [2]float64{along[1], -along[0]}
	for floor := range floors {
		for i := range bays {
			from := float64(bay * (float64(i) + (1-cityWindow)/2))
			at := [2]float64{
				corner[0] + float64(from*along[0]) + float64(cityGlass*right[0]),
				corner[1] + float64(from*along[1]) + float64(cityGlass*right[1]),
			}
			sill := float64(cityFloor * (float64(floor) + (1-cityWindow)/2))
			c.rectangle(at, along, float64(bay*cityWindow), [3]float64{0, 0, cityFloor * cityWindow}, sill)
		}
	}
}

// rectangle adds two triangles: from a corner in coordinates of the building, at height z, by a length along its ground
// line and by a vector. The normal is that of the first cross the second.
func (c *city) rectangle(corner, along [2]float64, length float64, up [3]float64, z float64) {
	far := [2]float64{corner[0] + float64(length*along[0]), corner[1] + float64(length*along[1])}
	first := int32(c.mesh.NumVertices())
	for _, p := range [4][3]float64{
		{corner[0], corner[1], z}, {far[0], far[1], z},
		{far[0] + up[0], far[1] + up[1], z + up[2]}, {corner[0] + up[0], corner[1] + up[1], z + up[2]},
	} {
		c.mesh.Vertices = append(c.mesh.Vertices,
			float32(c.centre[0]+(float64(p[0]*c.axis[0])-float64(p[1]*c.axis[1]))),
			float32(c.centre[1]+(float64(p[0]*c.axis[1])+float64(p[1]*c.axis[0]))),
			float32(p[2]))
	}
	c.mesh.Faces = append(c.mesh.Faces, first, first+1, first+2, first, first+2, first+3)
}
