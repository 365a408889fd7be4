package main

import (
	"slices"
	"testing"

	"github.com/raymux/raymux/tools/raymux/npy"
)

// without leaves a column out of an archive.
func without(columns []npy.Column, name string) []npy.Column {
	return slices.DeleteFunc(columns, func(c npy.Column) bool { return c.Name == name })
}

// brokenTables writes damaged states and materials.
func brokenTables(t *testing.T, b *bench) {
	t.Helper()
	broken(t, b)
	states := func(name, column string, replacement npy.Column) {
		b.table(t, name, append(without(oneEdge.columns(), column), replacement)...)
	}
	b.table(t, "no_normals.npz", without(oneEdge.columns(), "n1")...)
	states("flat_normals.npz", "n1", npy.Floats("n1", []float32{0, 0, 1}, 3))
	states("two_powers.npz", "src_power", npy.Floats("src_power", []float32{1, 1}, 2))
	states("float_ids.npz", "prim0", npy.Floats("prim0", []float32{0}, 1))
	states("long_ids.npz", "edge_index", npy.Longs("edge_index", []int64{0}, 1))
	b.table(t, "byte_mask.npz", append(oneEdge.columns(), npy.Bytes("active", []uint8{1}, 1))...)
	b.table(t, "long_mask.npz", append(oneEdge.columns(), npy.Bools("active", []uint8{1, 1}, 2))...)
	b.file(t, "twice_states.npz", archiveOf(t, append(oneEdge.columns(), npy.Ints("prim0", []int32{0}, 1))...))
	good := archiveOf(t, oneEdge.columns()...)
	b.file(t, "cut_states.npz", good[:len(good)-30])
	b.file(t, "damaged_states.npz", damageAt(good, 129))

	material := func(name, column string, replacement ...npy.Column) {
		b.table(t, name, append(without(materialColumns(4, 1), column), replacement...)...)
	}
	b.table(t, "glass.npz", materialColumns(4, 1)...)
	material("no_gain.npz", "gain")
	material("byte_valid.npz", "valid", npy.Bytes("valid", []uint8{1}, 1))
	material("two_gains.npz", "gain", npy.Floats("gain", []float32{1, 1}, 2))
	material("vacuum_minus.npz", "eta_r", npy.Floats("eta_r", []float32{-1}, 1))
	material("nan_sigma.npz", "sigma", npy.Floats("sigma", []float32{nan}, 1))
	material("short_index.npz", "index", npy.Ints("index", []int32{0}, 1))
	material("far_index.npz", "index", npy.Ints("index", []int32{0, 7}, 2))
	material("flat_index.npz", "index", npy.Ints("index", []int32{0, 0}, 1, 2))
	material("per_face.npz", "index")
}

var nan = inf - inf

// damageAt changes a byte.
func damageAt(s string, at int) string {
	b := []byte(s)
	b[at] ^= 0xff
	return string(b)
}

// malformedTables are damaged tables of a command, and what it says of them.
func malformedTables(run call) map[string]malformed {
	states := func(file string, want ...string) malformed {
		return malformed{call: run.with("-states", file), want: append([]string{"-states", file}, want...)}
	}
	return map[string]malformed{
		"no states":               {call: run.with("-states"), want: []string{"-states is missing"}},
		"states twice":            {call: run.with("-states", "one.npz", "one.npz"), want: []string{"-states: given twice"}},
		"states that are absent":  states("nowhere.npz", "found no such file"),
		"states in a folder":      states("folder.npz", "found a folder"),
		"states in .npy":          states("o.npy", `found extension ".npy"; expected an .npz archive with the columns edge_index, edge_pos,`, "active (optional)"),
		"a column of states":      states("one.npz:src", "expected an .npz archive with the columns"),
		"states without kind":     states("empty", "found a name without extension"),
		"states cut off":          states("cut_states.npz", "no zip directory"),
		"damaged states":          states("damaged_states.npz", "found"),
		"no normals":              states("no_normals.npz", `found no column "n1"; expected an .npz archive with the columns`),
		"rays for states":         states("rays.npz", `found no column "edge_index"`),
		"shape of normals":        states("flat_normals.npz", "flat_normals.npz:n1", "found shape (3,); expected shape [N, 3]"),
		"rows of powers":          states("two_powers.npz", "two_powers.npz:src_power", "found 2 rows; expected 1, the rows of -states"),
		"float ids":               states("float_ids.npz", "float_ids.npz:prim0", `found dtype "<f4"; expected "<i4" (int32)`),
		"long ids":                states("long_ids.npz", "long_ids.npz:edge_index", `found dtype "<i8"`),
		"a mask of bytes":         states("byte_mask.npz", "byte_mask.npz:active", `found dtype "|u1"; expected "|b1" (bool)`),
		"rows of the mask":        states("long_mask.npz", "long_mask.npz:active", "found 2 rows; expected 1"),
		"a column twice":          states("twice_states.npz", `two columns "prim0"; expected each column once`),
		"no wavelength":           {call: run.with("-wavelength"), want: []string{"-wavelength is missing"}},
		"a wavelength of 0":       {call: run.with("-wavelength", "0"), want: []string{"-wavelength: use a finite number of metres above 0"}},
		"an infinite wavelength":  {call: run.with("-wavelength", "inf"), want: []string{"-wavelength: use a finite number of metres above 0"}},
		"a wavelength, in words":  {call: run.with("-wavelength", "short"), want: []string{"-wavelength: use a finite number of metres above 0"}},
		"materials that are gone": {call: run.with("-material", "nowhere.npz"), want: []string{"-material", "found no such file"}},
		"materials for states":    {call: run.with("-material", "one.npz"), want: []string{"-material", `found no column "eta_r"; expected an .npz archive with the columns eta_r, sigma, mu_r, gain, valid, index (optional)`}},
		"a field of two":          {call: run.with("-fields", "power,power"), want: []string{`-fields: found "power" twice`}},
	}
}

// malformedGrids are grids that no command takes.
func malformedGrids(run call) map[string]malformed {
	return map[string]malformed{
		"no grid position":      {call: run.with("-grid-position"), want: []string{"-grid-position is missing; a grid needs"}},
		"no grid min":           {call: run.with("-grid-min"), want: []string{"-grid-min is missing"}},
		"no grid max":           {call: run.with("-grid-max"), want: []string{"-grid-max is missing"}},
		"no grid res":           {call: run.with("-grid-res"), want: []string{"-grid-res is missing"}},
		"a grid axis":           {call: run.with("-grid-axis", "up"), want: []string{"-grid-axis: use 0, 1 or 2, or x, y or z"}},
		"a grid position":       {call: run.with("-grid-position", "1,2"), want: []string{"-grid-position: use 1 number"}},
		"a grid corner":         {call: run.with("-grid-min", "1"), want: []string{"-grid-min: use 2 numbers"}},
		"a grid corner, NaN":    {call: run.with("-grid-min", "nan,0"), want: []string{`-grid-min: "nan" is no finite float32`}},
		"an empty grid":         {call: run.with("-grid-min", "0,0").with("-grid-max", "1,0"), want: []string{"-grid-max: found 1,0; expected more than 0,0 of -grid-min"}},
		"a grid out of range":   {call: run.with("-grid-min", "0,-3e38").with("-grid-max", "1,3e38"), want: []string{"-grid-max: found 1,3e+38, which is too far from 0,-3e+38 of -grid-min for float32"}},
		"a grid without cells":  {call: run.with("-grid-res", "0,1"), want: []string{"-grid-res: use two numbers from 1"}},
		"a grid of many cells":  {call: run.with("-grid-res", "65536,32768"), want: []string{"-grid-res: use two numbers from 1 whose product is at most 2147483647"}},
		"a grid of more cells":  {call: run.with("-grid-res", "9223372036854775807,9"), want: []string{"-grid-res: use two numbers from 1"}},
		"half a grid cell":      {call: run.with("-grid-res", "1.5,2"), want: []string{"-grid-res: use two whole numbers, separated by a comma"}},
		"one number of cells":   {call: run.with("-grid-res", "3"), want: []string{"-grid-res: use two whole numbers"}},
		"three numbers of them": {call: run.with("-grid-res", "3,3,3"), want: []string{"-grid-res: use two whole numbers"}},
	}
}

func TestMalformedRadio(t *testing.T) {
	direct, coherent, paths := directCall(), coherentCall().with("-states", "one.npz"), pathsCall().with("-states", "one.npz")
	accumulate := accumulateCall()
	onFloor := func(c call) call { return c.with("-mesh", "floor.obj") }
	sets := map[string]map[string]malformed{
		"direct": {
			"no samples":             {call: direct.with("-direct-samples"), want: []string{"-direct-samples or -keller-samples is missing"}},
			"both kinds of samples":  {call: direct.with("-keller-samples", "64"), want: []string{"give one of them"}},
			"too few samples":        {call: direct.with("-grid-res", "13,5"), want: []string{"-direct-samples: found 64; expected at least 65, for 1 state times 65 cells"}},
			"too many samples":       {call: direct.with("-direct-samples", "2147483648"), want: []string{"found 2147483648 samples; expected at most 2147483647", "another -seed"}},
			"negative samples":       {call: direct.with("-direct-samples", "-5"), want: []string{"-direct-samples: use a whole number from 1"}},
			"a negative seed":        {call: direct.with("-seed", "-1"), want: []string{"-seed: use a whole number from 0 to 4294967295"}},
			"a long seed":            {call: direct.with("-seed", "4294967296"), want: []string{"-seed: use a whole number from 0 to 4294967295"}},
			"a window below 0":       {call: direct.with("-window", "-1,8"), want: []string{"-window: found -1,8; expected samples of [0, 64)"}},
			"a window too long":      {call: direct.with("-window", "16,49"), want: []string{"-window: found 16,49; expected samples of [0, 64)"}},
			"a window behind":        {call: direct.with("-window", "65,-1"), want: []string{"-window: found 65,-1; expected samples of [0, 64)"}},
			"a window of 1":          {call: direct.with("-window", "3"), want: []string{"-window: use two whole numbers, separated by a comma"}},
			"polarization":           {call: direct.with("-polarization", "1,0,0"), want: []string{"unknown flag -polarization; raymux dfr-direct -h lists the flags"}},
			"columns in .npy":        {call: direct.with("-out", "x.npy"), want: []string{"an .npy file for 7 columns"}},
			"unknown column":         {call: direct.with("-fields", "field"), want: []string{`-fields: found "field"; expected all or some of power,direct_count,keller_count,vis_rejects,utd_rejects,edge_uses,inactive_lanes`}},
			"too small a budget":     {call: direct.with("-memory-budget", "7"), want: []string{"-memory-budget is 7 B"}},
			"index without a row":    {call: onFloor(direct).with("-material", "far_index.npz"), want: []string{"-material", "far_index.npz", "Index[1]"}},
			"materials of few faces": {call: onFloor(direct).with("-material", "per_face.npz"), want: []string{"-material", "per_face.npz", "2 faces"}},
		},
		"direct tables":  malformedTables(direct),
		"direct grid":    malformedGrids(direct),
		"coherent grid":  malformedGrids(coherent),
		"coherent table": malformedTables(coherent),
		"coherent": {
			"samples":             {call: coherent.with("-direct-samples", "64"), want: []string{"unknown flag -direct-samples"}},
			"zero polarization":   {call: coherent.with("-polarization", "0,0,0"), want: []string{"-polarization: 0,0,0 is no direction"}},
			"flat polarization":   {call: coherent.with("-polarization", "1,0"), want: []string{"-polarization: use 3 numbers"}},
			"a window":            {call: coherent.with("-window", "0,1"), want: []string{"unknown flag -window"}},
			"columns in .npy":     {call: coherent.with("-out", "x.npy"), want: []string{"an .npy file for 10 columns"}},
			"materials of a box":  {call: onFloor(coherent), want: []string{"-material", "box.npz", "Index"}},
			"complex as a column": {call: coherent.with("-fields", "field"), want: []string{"field_x_re,field_x_im,field_y_re,field_y_im,field_z_re,field_z_im,power,count,utd_rejects,vis_rejects"}},
		},
		"paths": {
			"no transmitters":      {call: paths.with("-tx"), want: []string{"-tx is missing"}},
			"no receivers":         {call: paths.with("-rx"), want: []string{"-rx is missing"}},
			"absent transmitters":  {call: paths.with("-tx", "nowhere.npy"), want: []string{"-tx", "no such file"}},
			"flat receivers":       {call: paths.with("-rx", "rank.npy"), want: []string{"-rx", "found shape (12,); expected shape [N, 3]"}},
			"transposed receivers": {call: paths.with("-rx", "transposed.npy"), want: []string{"-rx", "transpose it"}},
			"ids as transmitters":  {call: paths.with("-tx", "int32.npy"), want: []string{"-tx", `found dtype "<i4"`}},
			"a whole result":       {call: paths.with("-layout", "compact").with("-memory-budget", "20"), want: []string{"-memory-budget is 20 B", "Raise it, or use -layout source-lane"}},
			"a layout":             {call: paths.with("-layout", "dense"), want: []string{"-layout: use source-lane or compact"}},
			"a grid":               {call: paths.with("-grid-res", "1,1"), want: []string{"unknown flag -grid-res"}},
			"unknown column":       {call: paths.with("-fields", "power"), want: []string{`-fields: found "power"; expected all or some of status,tx_id,rx_id,edge_id,delay,field,p0,count`}},
			"too many paths":       {call: paths.with("-tx", "crowd.npy").with("-rx", "crowd.npy"), want: []string{"found 46341 transmitters, 46341 receivers and 1 states; expected a product of at most 2147483647"}},
		},
		"accumulate grid": malformedGrids(accumulate),
		"accumulate": {
			"no material":           {call: accumulate.with("-material"), want: []string{"-material is missing", "there is no default material"}},
			"no wavelength":         {call: accumulate.with("-wavelength"), want: []string{"-wavelength is missing"}},
			"no solid angle":        {call: accumulate.with("-solid-angle"), want: []string{"-solid-angle is missing"}},
			"a solid angle of 0":    {call: accumulate.with("-solid-angle", "0"), want: []string{"-solid-angle: use a finite number of steradian above 0"}},
			"two spheres":           {call: accumulate.with("-solid-angle", "25"), want: []string{"-solid-angle", "found 25; expected at most 12.566"}},
			"no origins":            {call: accumulate.with("-origins"), want: []string{"-origins is missing"}},
			"bounces":               {call: accumulate.with("-bounces", "65"), want: []string{"-bounces: use a whole number from 0 to 64"}},
			"negative bounces":      {call: accumulate.with("-bounces", "-1"), want: []string{"-bounces: use a whole number from 0 to 64"}},
			"transmitter":           {call: accumulate.with("-tx", "0,0"), want: []string{"-tx: use 3 numbers"}},
			"line of sight":         {call: accumulate.with("-include-los", "maybe"), want: []string{"-include-los"}},
			"no gain":               {call: accumulate.with("-material", "no_gain.npz"), want: []string{"-material", `no column "gain"`}},
			"bytes for valid":       {call: accumulate.with("-material", "byte_valid.npz"), want: []string{"-material", "byte_valid.npz:valid", `found dtype "|u1"`}},
			"rows of gain":          {call: accumulate.with("-material", "two_gains.npz"), want: []string{"-material", "two_gains.npz:gain", "found 2 rows; expected 1"}},
			"shape of the index":    {call: accumulate.with("-material", "flat_index.npz"), want: []string{"-material", "flat_index.npz:index", "found shape (1, 2); expected shape [N]"}},
			"negative permittivity": {call: accumulate.with("-material", "vacuum_minus.npz"), want: []string{"-material", "vacuum_minus.npz", "EtaR[0]", "is -1"}},
			"NaN conductivity":      {call: accumulate.with("-material", "nan_sigma.npz"), want: []string{"-material", "nan_sigma.npz", "Sigma[0]", "is NaN"}},
			"length of the index":   {call: accumulate.with("-material", "short_index.npz"), want: []string{"-material", "short_index.npz", "Index", "2 faces"}},
			"rows of the origins":   {call: accumulate.with("-directions", "three_rays.npy"), want: []string{"-directions", "found 3 rows; expected 1"}},
			"states":                {call: accumulate.with("-states", "one.npz"), want: []string{"unknown flag -states"}},
			"unknown column":        {call: accumulate.with("-fields", "utd_rejects"), want: []string{`-fields: found "utd_rejects"; expected all or some of power,field_x_re,`}},
		},
	}
	b := dfrBench(t)
	brokenTables(t, b)
	b.file(t, "floor.obj", floorMesh)
	b.array(t, "o.npy", npy.Floats("", []float32{-.25, -.25, 1}, 1, 3))
	b.array(t, "down.npy", npy.Floats("", []float32{0, 0, -1}, 1, 3))
	b.array(t, "three_rays.npy", npy.Floats("", make([]float32, 9), 3, 3))
	b.array(t, "tx.npy", npy.Floats("", make([]float32, 3), 1, 3))
	b.array(t, "rx.npy", npy.Floats("", make([]float32, 3), 1, 3))
	b.array(t, "crowd.npy", npy.Floats("", make([]float32, 3*46341), 46341, 3))
	for set, calls := range sets {
		for name, c := range calls {
			t.Run(set+"/"+name, func(t *testing.T) {
				c.name, c.status = name, exitUsage
				b.refuse(t, c)
			})
		}
	}
}
