package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pkg = "../../optixabi"

// TestCommitted checks that the generated files are what the facts say.
func TestCommitted(t *testing.T) {
	require.NoError(t, run(pkg, true))
}

// copyPackage copies facts and generated files to a folder of the test.
func copyPackage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "abi"), 0o755))
	files, err := filepath.Glob(filepath.Join(pkg, "zz_*.go"))
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, f := range append(files, factsPath(pkg)) {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		to, err := filepath.Rel(pkg, f)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), data, 0o644))
	}
	return dir
}

// edit replaces text in a file.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(data), old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644))
}

// TestCheckNotices changes facts or generated files, and every change must be
// noticed.
func TestCheckNotices(t *testing.T) {
	for _, tt := range []struct{ file, old, new string }{
		{"zz_tables.go", "fnLaunch:                             41", "fnLaunch:                             39"},
		{"zz_layouts.go", "{\"numSbtRecords\", \"unsigned int\", 64, 4}", "{\"numSbtRecords\", \"unsigned int\", 68, 4}"},
		{"zz_results.go", "7801", "7810"},
		{"zz_enums.go", "8513", "8514"},
		{"zz_structs.go", "SBTOffset", "SbtOffset"},
		{"abi/optix.json", `"OPTIX_DEVICE_PROPERTY_RTCORE_VERSION":8197`, `"OPTIX_DEVICE_PROPERTY_RTCORE_VERSION":8198`},
		{"abi/optix.json", `"table_size":416`, `"table_size":424`},
		{"abi/optix.json", `"optixSbtRecordPackHeader","optixLaunch"`, `"optixLaunch","optixSbtRecordPackHeader"`},
		{"abi/optix.json", `"name":"sbtOffset","type":"unsigned int","offset":52`, `"name":"sbtOffset","type":"unsigned int","offset":56`},
		{"abi/optix.json", `{"abis": [87,93,105,118], "size": 80`, `{"abis": [87,93,105], "size": 80`},
	} {
		dir := copyPackage(t)
		require.NoError(t, run(dir, true))
		edit(t, filepath.Join(dir, tt.file), tt.old, tt.new)
		assert.Error(t, run(dir, true), "%s: %s", tt.file, tt.new)
	}
}

// TestWrite generates into an empty folder.
func TestWrite(t *testing.T) {
	dir := copyPackage(t)
	files, err := filepath.Glob(filepath.Join(dir, "zz_*.go"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	require.Error(t, run(dir, true))
	require.NoError(t, run(dir, false))
	require.NoError(t, run(dir, true))
}

// whole rebuilds a complete list of facts from the committed ones.
func whole(t *testing.T) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(factsPath(pkg))
	require.NoError(t, err)
	var f facts
	require.NoError(t, json.Unmarshal(raw, &f))
	versions := map[string]any{}
	for _, a := range f.ABIs {
		var entries []any
		for i, name := range a.Table {
			params := []any{}
			for _, p := range f.Params[name] {
				params = append(params, map[string]any{"type": p[0], "name": p[1]})
			}
			entries = append(entries, map[string]any{"index": i, "name": name, "params": params})
		}
		structs, enums := map[string]any{}, map[string]any{}
		for name, all := range f.Structs {
			for _, l := range all {
				for _, abi := range l.ABIs {
					if abi == a.ABI {
						structs[name] = map[string]any{"size": l.Size, "align": l.Align, "fields": l.Fields}
					}
				}
			}
		}
		for name, values := range f.Enums {
			enums[name] = map[string]any{"size": 4, "values": values}
		}
		versions[strconv.Itoa(a.ABI)] = map[string]any{
			"optix_version": a.OptiX, "constants": f.Constants, "enums": enums, "structs": structs,
			"function_table": map[string]any{"size": a.Size, "entries": entries},
		}
	}
	return map[string]any{"versions": versions}
}

func importWhole(t *testing.T, w map[string]any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(w)
	require.NoError(t, err)
	from, to := filepath.Join(t.TempDir(), "whole.json"), filepath.Join(t.TempDir(), "optix.json")
	require.NoError(t, os.WriteFile(from, raw, 0o644))
	return to, importFacts(from, to)
}

// TestImport cuts a complete list down to the committed facts.
func TestImport(t *testing.T) {
	to, err := importWhole(t, whole(t))
	require.NoError(t, err)
	have, err := os.ReadFile(to)
	require.NoError(t, err)
	want, err := os.ReadFile(factsPath(pkg))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have))
}

// TestImportRefuses checks what would make the generated code wrong.
func TestImportRefuses(t *testing.T) {
	version := func(w map[string]any, abi string) map[string]any {
		return w["versions"].(map[string]any)[abi].(map[string]any)
	}
	for name, damage := range map[string]func(w map[string]any){
		"no ABI 105":                         func(w map[string]any) { delete(w["versions"].(map[string]any), "105") },
		"no struct OptixInstance":            func(w map[string]any) { delete(version(w, "93")["structs"].(map[string]any), "OptixInstance") },
		"no enum OptixBuildFlags of 4 bytes": func(w map[string]any) { delete(version(w, "93")["enums"].(map[string]any), "OptixBuildFlags") },
		"OPTIX_BUILD_OPERATION_BUILD was": func(w map[string]any) {
			version(w, "93")["enums"].(map[string]any)["OptixBuildOperation"] = map[string]any{"size": 4, "values": map[string]any{"OPTIX_BUILD_OPERATION_BUILD": 1}}
		},
		"no constant OPTIX_": func(w map[string]any) {
			version(w, "118")["constants"] = map[string]any{"OPTIX_SBT_RECORD_HEADER_SIZE": 64}
		},
		"entry 0 has index 7": func(w map[string]any) {
			entries := version(w, "87")["function_table"].(map[string]any)["entries"].([]any)
			entries[0].(map[string]any)["index"] = 7
		},
		"optixLaunch has other parameters": func(w map[string]any) {
			for _, e := range version(w, "105")["function_table"].(map[string]any)["entries"].([]any) {
				if e.(map[string]any)["name"] == "optixLaunch" {
					e.(map[string]any)["params"] = []any{}
				}
			}
		},
		"no function optixLaunch": func(w map[string]any) {
			for _, e := range version(w, "105")["function_table"].(map[string]any)["entries"].([]any) {
				if e.(map[string]any)["name"] == "optixLaunch" {
					e.(map[string]any)["name"] = "optixOther"
				}
			}
		},
	} {
		w := whole(t)
		damage(w)
		_, err := importWhole(t, w)
		assert.ErrorContains(t, err, name)
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{"RTCORE_VERSION": "RTCoreVersion", "FILE_IO_ERROR": "FileIOError", "NONE": "None"} {
		assert.Equal(t, want, camel(in))
	}
	for in, want := range map[string]string{"instanceId": "InstanceID", "cssRG": "CSSRG", "sbtOffset": "SBTOffset", "width": "Width"} {
		assert.Equal(t, want, exported(in))
	}
}
