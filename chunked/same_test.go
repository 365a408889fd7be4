package chunked_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

// fullInput has a value in every field, slice and map.
func fullInput() chunked.Input {
	in := input(direct(10, 20), 33, 2)
	in.Weights, in.WeightSource = []float64{1, 2}, "given"
	in.Options.Weights, in.Options.OperationWeights = []float64{3, 4}, map[string][]float64{"intersect": {5, 6}}
	return in
}

// eachLeaf calls f with every number, string and bool in v, which it may change, and with
// every map and slice as a whole, but for slices in maps.
func eachLeaf(path string, v reflect.Value, f func(path string, v reflect.Value)) {
	switch inMap := strings.HasSuffix(path, "]"); v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(path+"."+v.Type().Field(i).Name, v.Field(i), f)
		}
	case reflect.Slice:
		if !inMap {
			f(path, v)
		}
		for i := range v.Len() {
			eachLeaf(fmt.Sprint(path, "[", i, "]"), v.Index(i), f)
		}
	case reflect.Map:
		f(path, v)
		for _, key := range v.MapKeys() {
			eachLeaf(fmt.Sprint(path, "[", key, "]"), v.MapIndex(key), f)
		}
	default:
		f(path, v)
	}
}

// change makes another value of a leaf.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice, reflect.Map:
		v.SetZero()
	default:
		v.SetInt(v.Int() + 1)
	}
}

// leaves is how many there are below v.
func leaves(v any) (n int) {
	eachLeaf("", reflect.ValueOf(&v).Elem().Elem(), func(string, reflect.Value) { n++ })
	return n
}

// Inputs differ when any value in them does, also one that a later version adds: a plan that
// is remembered is never that of another call.
func TestChunkedInputsDifferInEveryValue(t *testing.T) {
	want := fullInput()
	for at := range leaves(want) {
		in, k, path := want.Clone(), 0, ""
		eachLeaf("Input", reflect.ValueOf(&in).Elem(), func(p string, v reflect.Value) {
			if k++; k == at+1 {
				path = p
				change(v)
			}
		})
		require.False(t, want.Same(&in), path)
		require.False(t, in.Same(&want), path)
		require.Equal(t, fullInput(), want, "a copy shares %s", path)
		same := want.Clone()
		require.True(t, want.Same(&same))
	}
}

// A copy of a plan shares nothing with it.
func TestChunkedPlansAreCopied(t *testing.T) {
	in := fullInput()
	p, again := plan(t, in), plan(t, in)
	for at := range leaves(p) {
		c, k := p.Clone(), 0
		require.Equal(t, p, c)
		eachLeaf("Plan", reflect.ValueOf(&c).Elem(), func(path string, v reflect.Value) {
			if k++; k == at+1 {
				change(v)
			}
		})
		require.Equal(t, again, p)
		require.NotEqual(t, again, c)
	}
}

func TestChunkedSameIsEqual(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		a, b := randomInput(rng), randomInput(rng)
		if rng.IntN(2) == 0 {
			b = a.Clone()
			b.Rows += rng.Int64N(2)
		}
		require.Equal(t, reflect.DeepEqual(a, b), a.Same(&b), "%+v\n%+v", a, b)
	}
	a := fullInput()
	b := a.Clone()
	require.Zero(t, testing.AllocsPerRun(10, func() { a.Same(&b) }))
}
