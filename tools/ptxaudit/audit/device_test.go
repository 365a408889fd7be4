package audit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const deviceModule = `//
// Cuda compilation tools, release 12.0, V12.0.140
.version 8.0
.target sm_75
.address_size 64
.const .align 8 .b8 params[24];
.visible .entry __raygen__look()
{
	.reg .f32 %f<9>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	call (%r1), _optix_get_launch_index_x, ();
	ret;
}
.visible .entry __closesthit__look()
{
	.reg .f32 %f<9>;
	.reg .b32 %r<9>;
	call (%f1, %f2), _optix_get_triangle_barycentrics, ();
	mov.u32 %r2, 1;
	call (), _optix_set_payload, (%r2, %r1);
	ret;
}
`

// The facts of the repository, for the ABIs of its policy.
func deviceFixture(t *testing.T) *policy {
	t.Helper()
	p, err := tree("../../..").policy()
	require.NoError(t, err)
	require.NotNil(t, p.facts)
	require.NotEmpty(t, p.DeviceABI.ABIs)
	return p
}

func TestDeviceCalls(t *testing.T) {
	p := deviceFixture(t)
	text, err := parsePTX(deviceModule)
	require.NoError(t, err)
	assert.Empty(t, p.checkDevice("m", text))
	assert.Equal(t, 24, text.constantBytes)

	for name, c := range map[string]struct{ from, to, want string }{
		"unknown function":   {"_optix_get_launch_index_x", "_optix_get_launch_index_w", "OptiX has no function _optix_get_launch_index_w"},
		"removed function":   {"(), _optix_set_payload, (%r2, %r1)", "(), _optix_set_payload_0, (%r1)", "does not exist in ABI 87"},
		"newer function":     {"(%r1), _optix_get_launch_index_x, ()", "(%r1), _optix_get_remaining_trace_depth, ()", "does not exist in ABI 105"},
		"wrong program":      {"(%r1), _optix_get_launch_index_x, ()", "(%r1), _optix_read_primitive_idx, ()", "may not be called from a program of type RG"},
		"integer for float":  {"(%f1, %f2), _optix_get_tri", "(%f1, %r2), _optix_get_tri", "want a register of kind f32"},
		"float for integer":  {"(%r2, %r1)", "(%r2, %f1)", "want a register of kind u32"},
		"wide for narrow":    {"(%r1), _optix_get_launch", "(%rd1), _optix_get_launch", "want a register of kind u32"},
		"immediate":          {"(%r2, %r1)", "(1, %r1)", "want a register of kind u32"},
		"missing result":     {"(%f1, %f2), _optix_get_tri", "(%f1), _optix_get_tri", "has 2 results, 1 given"},
		"missing parameter":  {"(%r2, %r1)", "(%r2)", "has 2 parameters, 1 given"},
		"C calling form":     {"call (%r1), _optix_get_launch_index_x, ();", "call.uni (retval0), _optix_get_launch_index_x, (), proto;", "not of the form"},
		"undeclared program": {"__raygen__look()", "look()", "kernels and device programs of OptiX cannot share a module"},
		"parameters":         {"__raygen__look()", "__raygen__look(.param .u64 a)", "reads the constant block"},
		"outside a program":  {".visible .entry __closesthit__look()", ".visible .func __closesthit__look()", "called outside of a device program"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, deviceModule, c.from)
			text, err := parsePTX(strings.Replace(deviceModule, c.from, c.to, 1))
			require.NoError(t, err)
			var all []string
			for _, f := range p.checkDevice("m", text) {
				all = append(all, f.String())
			}
			assert.Contains(t, strings.Join(all, "\n"), c.want)
		})
	}
}

// Every program type of the facts is one that the audit tells from a kernel.
func TestDevicePrograms(t *testing.T) {
	p := deviceFixture(t)
	require.Len(t, p.facts.EntryPoints.Prefixes, 8)
	for kind, prefix := range p.facts.EntryPoints.Prefixes {
		program, raygen := deviceProgram(prefix + "x")
		assert.True(t, program, prefix)
		assert.Equal(t, kind == "RG", raygen, prefix)
		assert.Equal(t, kind, p.facts.programType(prefix+"x"))
	}
	program, _ := deviceProgram("traverse")
	assert.False(t, program)
}

func TestLaunchParametersOfPrograms(t *testing.T) {
	c := func(code string) cStructs { return cStructs{code} }
	name, err := c("__constant__ ClosestParams params;").param("__raygen__closest")
	require.NoError(t, err)
	assert.Equal(t, "ClosestParams", name)
	name, err = c("").param("__miss__closest")
	require.NoError(t, err)
	assert.Empty(t, name)
	_, err = c("__constant__ ClosestParams p;").param("__raygen__closest")
	require.ErrorContains(t, err, "params")
}
