// Command cosigner cosigns one log over HTTP with the code of transparency-dev: witness, formats
// (note). What is ours here only reads JSON and listens. It ends with its standard input.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	fnote "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"
)

// task is the first line of standard input: the cosigner's name, and the log that it knows.
type task struct {
	Name string
	Vkey string
}

// told is the first line of standard output.
type told struct {
	Url  string
	Vkey string
}

func run() error {
	input := json.NewDecoder(os.Stdin)
	var work task
	if err := input.Decode(&work); err != nil {
		return err
	}
	log, err := note.NewVerifier(work.Vkey)
	if err != nil {
		return err
	}
	private, public, err := note.GenerateKey(rand.Reader, work.Name)
	if err != nil {
		return err
	}
	signer, err := fnote.NewSignerForCosignatureV1(private)
	if err != nil {
		return err
	}
	vkey, err := fnote.VKeyToCosignatureV1(public)
	if err != nil {
		return err
	}
	made, err := witness.New(context.Background(), witness.Opts{
		Persistence: inmemory.New(),
		Signers:     []note.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (note.Verifier, bool, error) {
			return log, origin == log.Name(), nil
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", witness.NewHTTPHandler(made).AddCheckpoint)
	go func() { _ = http.Serve(listener, mux) }()
	if err := json.NewEncoder(os.Stdout).Encode(told{"http://" + listener.Addr().String(), vkey}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
