//go:build nocuda || !((linux && (amd64 || arm64)) || (windows && amd64))

package dl

const (
	supported = false
	noCalls   = "dl: no library can be called in this build"
)

func load(string, bool) (*Library, func(), error) { return nil, nil, ErrUnsupportedPlatform }

func checkFile(string) error { return ErrUnsupportedPlatform }

func fileOf(uintptr) string { return "" }

// Getenv is empty: there is no library to name.
func Getenv(string) string { return "" }

// Call panics. Open fails in this build, so no address to call can exist.
func Call(uintptr, ...uintptr) uintptr { panic(noCalls) }

// NewCallback panics, for the same reason as Call.
func NewCallback(any) uintptr { panic(noCalls) }
