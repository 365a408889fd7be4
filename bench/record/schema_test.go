package record

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each case edits one thing of a valid record that the schema exists to refuse.
func TestSchemaRefuses(t *testing.T) {
	miniRow := func(i int) []any { return []any{"configs", "mini", "rows", i} }
	lightRow := func(i int) []any { return []any{"configs", "light", "rows", i} }
	type object = map[string]any
	set := func(path []any, key string, value any) func(*testing.T, object) {
		return func(t *testing.T, r object) { at(t, r, path...)[key] = value }
	}
	remove := func(path []any, key string) func(*testing.T, object) {
		return func(t *testing.T, r object) {
			o := at(t, r, path...)
			require.Contains(t, o, key)
			delete(o, key)
		}
	}
	for _, c := range []struct {
		name   string
		imp    bool // edit the historical import instead of the live record
		mutate func(*testing.T, object)
	}{
		{"import asserting all pairs", true, set([]any{"machine", "peer_access"}, "all_pairs_accessible", true)},
		{"live with partially recorded peers", false, func(t *testing.T, r object) {
			access := at(t, r, "machine", "peer_access")
			access["status"] = "partially_recorded"
			access["pairs"] = access["pairs"].([]any)[:1]
			delete(access, "all_pairs_accessible")
		}},
		{"not applicable carrying all pairs", false, func(t *testing.T, r object) {
			at(t, r, "machine")["peer_access"] = object{"status": "not_applicable", "pairs": []any{}, "all_pairs_accessible": true}
		}},
		{"live without checks", false, remove(nil, "checks")},
		{"import with checks", true, set(nil, "checks", object{"passed": true, "failures": []any{}})},
		{"import without statement", true, remove([]any{"provenance"}, "statement")},
		{"live with measured_at", false, set([]any{"provenance"}, "measured_at", "2026-07-27")},
		{"repeat 0", false, set([]any{"parameters"}, "repeat", 0)},
		{"unknown field in a row", false, set(miniRow(0), "colour", "red")},
		{"multi without speedup", false, remove(miniRow(0), "speedup")},
		{"live device without compute capability", false, remove([]any{"machine", "devices", 0}, "compute_capability")},
		{"peak memory not recorded with bytes", true, set(append(lightRow(5), "peak_memory"), "streamed_bytes", 1)},
		{"live row bytes without wire out", false, remove(append(miniRow(0), "row_bytes"), "wire_out")},
		{"live multi without transport", false, remove(miniRow(0), "transport")},
		{"live calibration with method ladder", false, set(miniRow(1), "calibration", object{
			"method": "ladder", "verdict": "master_alone", "best_sharded_ns": 2, "master_only_ns": 1, "margin_percent": -100})},
		{"verdict of the other method", true, set(append(lightRow(2), "calibration"), "verdict", "master")},

		// Beyond the sixteen: what this project's schema adds.
		{"live row without backend", false, remove(miniRow(0), "backend")},
		{"unknown backend", false, set(miniRow(0), "backend", "vulkan")},
		{"live row without samples", false, remove(append(miniRow(0), "single"), "samples_ns")},
		{"live without emulated", false, remove([]any{"parameters"}, "emulated")},
		{"live without workload digest", false, remove([]any{"configs", "mini", "rays"}, "origins_sha256")},
		{"import with workload digest", true, set([]any{"configs", "light", "geometry"}, "faces_sha256", liveRecord().Software.PTXManifestSHA256)},
		{"import with column digest", true, set(lightRow(0), "columns", []any{object{"name": "t", "sha256": liveRecord().Software.PTXManifestSHA256}})},
		{"unknown configuration", false, func(t *testing.T, r object) {
			configs := at(t, r, "configs")
			configs["heavy"] = configs["mini"]
		}},
		{"column digest of the wrong length", false, func(t *testing.T, r object) {
			at(t, r, append(miniRow(0), "columns", 0)...)["sha256"] = "00"
		}},
		{"rounds 0", false, set(miniRow(0), "rounds", 0)},
		{"import with rounds", true, set(lightRow(0), "rounds", 7)},
		{"calls 0", false, set(miniRow(0), "calls", 0)},
		{"import with calls", true, set(lightRow(0), "calls", 16)},
		{"unknown operation", false, set(miniRow(0), "operation", "render")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := liveTree(t)
			if c.imp {
				r = tree(t, historical(t))
			}
			text, err := json.Marshal(r)
			require.NoError(t, err)
			require.NoError(t, ValidateSchema(text), "the record is valid before the edit")
			c.mutate(t, r)
			text, err = json.Marshal(r)
			require.NoError(t, err)
			require.ErrorIs(t, ValidateSchema(text), ErrSchema)
			_, err = Decode(text)
			require.ErrorIs(t, err, ErrSchema)
		})
	}
}

// TestSchemaIsClosed adds an unknown key to every object of both kinds of record, one at a time.
func TestSchemaIsClosed(t *testing.T) {
	for name, text := range map[string][]byte{"live": mustJSON(t, liveRecord()), "import": historical(t)} {
		root := tree(t, text)
		objects := 0
		var visit func(v any, path string)
		visit = func(v any, path string) {
			switch v := v.(type) {
			case map[string]any:
				objects++
				v["unknown_key"] = 1
				edited := mustJSON(t, root)
				delete(v, "unknown_key")
				require.ErrorIs(t, ValidateSchema(edited), ErrSchema, "%s %s accepts an unknown key", name, path)
				for key, child := range v {
					visit(child, path+"."+key)
				}
			case []any:
				for _, child := range v[:min(len(v), 2)] {
					visit(child, path+"[]")
				}
			}
		}
		visit(root, "")
		require.Greater(t, objects, 20, name)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

func TestValidateSchemaNotJSON(t *testing.T) {
	require.ErrorIs(t, ValidateSchema([]byte("{")), ErrSchema)
	require.ErrorIs(t, ValidateSchema([]byte(`{} {}`)), ErrSchema)
}
