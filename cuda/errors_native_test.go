package cuda

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/cuapi"
)

// TestErrorMatches checks which sentinels a code stands for, and no other.
func TestErrorMatches(t *testing.T) {
	sentinels := []error{ErrDriverMissing, ErrDriverTooOld, ErrDriverFailed, ErrStubLibrary, ErrNoDevice, ErrSymbolMissing,
		ErrDeviceLost, ErrClosed, ErrWrongDevice, ErrUnsupportedPlatform, ErrOutOfMemory}
	tests := map[cuapi.Result][]error{
		1:   nil,
		2:   {ErrOutOfMemory},
		34:  {ErrStubLibrary},
		36:  {ErrDriverTooOld, ErrSymbolMissing},
		100: {ErrNoDevice},
		214: {ErrDeviceLost},
		218: nil,
		220: {ErrDeviceLost},
		222: {ErrDriverTooOld},
		700: {ErrDeviceLost},
		713: nil,
		719: {ErrDeviceLost},
		999: nil,
	}
	for code, want := range tests {
		err := error(newError("cuTest", code, 2, "detail"))
		assert.ErrorIs(t, err, code)
		for _, s := range sentinels {
			assert.Equal(t, slices.Contains(want, s), errors.Is(err, s), "%v as %v", code, s)
		}
		assert.Contains(t, err.Error(), "cuTest on device 2: "+code.Error()+": detail")
	}
}

// TestErrorText fixes the parts that an error has when they are known.
func TestErrorText(t *testing.T) {
	assert.Equal(t, "cuda: cuX: CUDA_ERROR_INVALID_VALUE (1)", newError("cuX", 1, NoDevice, "").Error())
	assert.Equal(t, "cuda: cuX on device 0: CUDA_ERROR_INVALID_VALUE (1): n is 0", newError("cuX", 1, 0, "n is 0").Error())
	assert.Regexp(t, `^cuda: cuX: CUDA_ERROR_OUT_OF_MEMORY \(2\) \(hint: .*nvidia-smi.*\)$`, newError("cuX", 2, NoDevice, "").Error())
}

// TestErrorSymbol checks that a call which the driver lacks names the entry
// point, whichever way the operation is called.
func TestErrorSymbol(t *testing.T) {
	for _, op := range []string{"MemAllocAsync", "cuMemAllocAsync"} {
		var s *SymbolError
		require.ErrorAs(t, newError(op, cuapi.ErrorCallRequiresNewerDriver, 0, ""), &s)
		assert.Equal(t, SymbolError{"cuMemAllocAsync", "11.2"}, *s)
	}
	var s *SymbolError
	assert.False(t, errors.As(newError("Build", cuapi.ErrorCallRequiresNewerDriver, 0, ""), &s))
	assert.False(t, errors.As(newError("MemAllocAsync", cuapi.ErrorOutOfMemory, 0, ""), &s))
	assert.Equal(t, "cuda: the driver lacks cuA, which drivers have since CUDA 1.0", (&SymbolError{"cuA", "1.0"}).Error())
}

// TestHints checks that every code that ends a device, and every usual install
// fault, comes with advice.
func TestHints(t *testing.T) {
	for _, code := range []cuapi.Result{700, 702, 710, 714, 715, 716, 717, 718, 719, 214, 220} {
		require.True(t, code.Sticky())
		assert.NotEmpty(t, hint(code), "%v", code)
	}
	for _, code := range []cuapi.Result{34, 36, 46, 100, 101, 209, 218, 221, 222, 801, 802, 803, 804, 999} {
		assert.NotEmpty(t, hint(code), "%v", code)
	}
	assert.Empty(t, hint(cuapi.ErrorInvalidValue))
}

// TestErrorsDocumented checks that docs/errors.md names every exported error of
// this package and of the loader.
func TestErrorsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/errors.md")
	require.NoError(t, err)
	names := 0
	for dir, pkg := range map[string]string{".": "cuda", "dl": "dl"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			for name, obj := range file.Scope.Objects {
				isVar := obj.Kind == ast.Var && strings.HasPrefix(name, "Err")
				isType := obj.Kind == ast.Typ && token.IsExported(name) && strings.HasSuffix(name, "Error")
				if isVar || isType {
					names++
					assert.Contains(t, string(doc), pkg+"."+name)
				}
			}
		}
	}
	assert.Greater(t, names, 15)
}
