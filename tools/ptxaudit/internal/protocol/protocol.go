// Package protocol is what ptxaudit and its compiler process say to each
// other: one JSON request on standard input, one JSON response on standard
// output. The compiler runs in its own process so that the audit itself links
// no library loader, and so that the compiler sees an empty folder and an
// empty environment.
package protocol

// Request asks for the compilation of some programs.
type Request struct {
	// Library and Builtins are absolute paths of the compiler's two libraries.
	Library  string    `json:"library"`
	Builtins string    `json:"builtins"`
	Programs []Program `json:"programs"`
}

// Program is one translation unit with every header that it may include.
type Program struct {
	Name    string            `json:"name"`
	Source  string            `json:"source"`
	Headers map[string]string `json:"headers"`
	Options []string          `json:"options"`
}

// Response answers a Request, with one result per program in order.
type Response struct {
	// Error is set when the library could not be used at all.
	Error string `json:"error,omitempty"`
	// Version is what the library says of itself, as major.minor.
	Version string   `json:"version"`
	Results []Result `json:"results"`
}

// Result is the outcome of one program: PTX, or an error; the log may
// accompany either.
type Result struct {
	PTX   string `json:"ptx"`
	Log   string `json:"log"`
	Error string `json:"error,omitempty"`
}
