// Command nvrtc compiles CUDA C++ to PTX for ptxaudit: it reads one request
// from standard input and writes one response (package protocol). It is the
// only part of ptxaudit that loads a library.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/raymux/raymux/tools/ptxaudit/internal/protocol"
)

func main() {
	var req protocol.Request
	if err := json.NewDecoder(os.Stdin).Decode(&req); err != nil {
		fmt.Fprintln(os.Stderr, "nvrtc: request:", err)
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(serve(req)); err != nil {
		fmt.Fprintln(os.Stderr, "nvrtc: response:", err)
		os.Exit(2)
	}
}

func serve(req protocol.Request) protocol.Response {
	c, err := open(req.Library, req.Builtins)
	if err != nil {
		return protocol.Response{Error: err.Error()}
	}
	version, err := c.version()
	if err != nil {
		return protocol.Response{Error: err.Error()}
	}
	resp := protocol.Response{Version: version}
	for _, p := range req.Programs {
		resp.Results = append(resp.Results, c.compile(p))
	}
	return resp
}
