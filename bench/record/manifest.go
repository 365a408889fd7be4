package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Places of the evidence, relative to the root of the repository.
const (
	ManifestPath = "bench/manifest.json"
	SchemaPath   = "bench/record/bench_result.schema.json"
	EvidencePath = "bench/evidence"
)

// Manifest lists the committed records with their digests. It is written by a program and never by hand.
type Manifest struct {
	Benchmark     string          `json:"benchmark"`
	SchemaVersion int             `json:"schema_version"`
	Schema        ManifestFile    `json:"schema"`
	Records       []ManifestEntry `json:"records"` // sorted by path
}

// ManifestFile is a file and the digest of its text with LF line ends. Path is relative to the root, with slashes.
type ManifestFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// ManifestEntry is one record.
type ManifestEntry struct {
	ManifestFile
	ProvenanceKind Kind `json:"provenance_kind"`
}

// ErrEvidence is wrapped by the errors of records that may not be committed and of manifests that do not fit the files.
var ErrEvidence = errors.New("evidence is not acceptable")

// TextDigest returns the SHA-256, in hex, of a text with CRLF replaced by LF: a checkout with other line ends is the
// same text.
func TextDigest(text []byte) string {
	sum := sha256.Sum256(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	return hex.EncodeToString(sum[:])
}

// BuildManifest reads every record below EvidencePath of the repository at root, and refuses one that is invalid or may
// not be committed, naming its file.
func BuildManifest(root string) (*Manifest, error) {
	m := &Manifest{Benchmark: Benchmark, SchemaVersion: SchemaVersion}
	schema, err := ReadFile(filepath.Join(root, filepath.FromSlash(SchemaPath)))
	if err != nil {
		return nil, err
	}
	m.Schema = ManifestFile{SchemaPath, TextDigest(schema)}
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(EvidencePath)))
	if err != nil {
		return nil, err
	}
	imports := 0
	for _, e := range entries { // sorted by name
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		name := path.Join(EvidencePath, e.Name())
		text, err := ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		r, err := Decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := acceptable(r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if r.Provenance.Kind == Import {
			imports++
		}
		m.Records = append(m.Records, ManifestEntry{ManifestFile{name, TextDigest(text)}, r.Provenance.Kind})
	}
	if imports == 0 {
		return nil, fmt.Errorf("%w: %s holds no historical import", ErrEvidence, EvidencePath)
	}
	return m, nil
}

// acceptable checks what a valid record needs in addition to be committed.
func acceptable(r *Record) error {
	switch {
	case r.Provenance.Kind != Live:
		return nil
	case *r.Software.RevisionModified:
		return fmt.Errorf("%w: it was measured with uncommitted changes (software.revision_modified)", ErrEvidence)
	case !r.Checks.Passed:
		return fmt.Errorf("%w: its checks failed: %s", ErrEvidence, strings.Join(r.Checks.Failures, "; "))
	}
	return nil
}

// WriteManifest builds the manifest of the repository at root and writes it.
func WriteManifest(root string) (*Manifest, error) {
	m, err := BuildManifest(root)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	return m, WriteAtomic(filepath.Join(root, filepath.FromSlash(ManifestPath)), append(text, '\n'))
}

// CheckManifest compares the committed manifest with the files: the schema and each record have the listed digest and
// kind, every record listed exists and every record that exists is listed. All differences are joined.
func CheckManifest(root string) error {
	text, err := ReadFile(filepath.Join(root, filepath.FromSlash(ManifestPath)))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var committed Manifest
	if err := d.Decode(&committed); err != nil {
		return fmt.Errorf("%s: %w", ManifestPath, err)
	}
	actual, err := BuildManifest(root)
	if err != nil {
		return err
	}
	return compare(committed, *actual)
}

func compare(committed, actual Manifest) error {
	var broken []error
	report := func(format string, args ...any) {
		broken = append(broken, fmt.Errorf("%w: "+format+"; `go run ./bench manifest` writes the manifest", append([]any{ErrEvidence}, args...)...))
	}
	if committed.Benchmark != actual.Benchmark || committed.SchemaVersion != actual.SchemaVersion {
		report("%s is of benchmark %q version %d", ManifestPath, committed.Benchmark, committed.SchemaVersion)
	}
	if committed.Schema != actual.Schema {
		report("%s: the manifest lists another file or digest", actual.Schema.Path)
	}
	listed := map[string]ManifestEntry{}
	for _, e := range committed.Records {
		if _, twice := listed[e.Path]; twice {
			report("%s is listed twice", e.Path)
		}
		listed[e.Path] = e
	}
	for _, e := range actual.Records {
		old, ok := listed[e.Path]
		delete(listed, e.Path)
		switch {
		case !ok:
			report("%s is not listed", e.Path)
		case old.SHA256 != e.SHA256:
			report("%s has digest %s, listed is %s", e.Path, e.SHA256, old.SHA256)
		case old.ProvenanceKind != e.ProvenanceKind:
			report("%s is of kind %s, listed is %s", e.Path, e.ProvenanceKind, old.ProvenanceKind)
		}
	}
	for _, e := range committed.Records {
		if _, left := listed[e.Path]; left {
			report("%s is listed and does not exist", e.Path)
			delete(listed, e.Path)
		}
	}
	return errors.Join(broken...)
}
