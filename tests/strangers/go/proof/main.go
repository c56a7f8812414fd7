// Command proof checks a .tlog-proof, its checkpoint and cosignatures with the code of
// transparency-dev: formats (log, note, proof) and merkle. What is ours here only reads JSON.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/transparency-dev/formats/log"
	fnote "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/proof"
	mproof "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// task is what standard input holds; entry is the leaf's data, not its hash.
type task struct {
	Proof     string
	Vkey      string
	Cosigners []string
	Entry     []byte
}

func run() error {
	var work task
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		return err
	}
	var found proof.TLogProof
	if err := found.Unmarshal([]byte(work.Proof)); err != nil {
		return err
	}
	if string(found.Marshal()) != work.Proof {
		return errors.New("another encoding of the proof")
	}
	verifier, err := note.NewVerifier(work.Vkey)
	if err != nil {
		return err
	}
	cosigners := []note.Verifier{}
	for _, vkey := range work.Cosigners {
		cosigner, err := fnote.NewVerifierForCosignatureV1(vkey)
		if err != nil {
			return err
		}
		cosigners = append(cosigners, cosigner)
	}
	checkpoint, rest, opened, err := log.ParseCheckpoint(
		found.Checkpoint, verifier.Name(), verifier, cosigners...)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errors.New("more than a checkpoint")
	}
	if len(opened.Sigs) != 1+len(cosigners) {
		return fmt.Errorf("%d good signatures of %d", len(opened.Sigs), 1+len(cosigners))
	}
	path := [][]byte{}
	for _, hash := range found.Hashes {
		path = append(path, hash[:])
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(work.Entry)
	if err := mproof.VerifyInclusion(
		rfc6962.DefaultHasher, found.Index, checkpoint.Size, leaf, path, checkpoint.Hash); err != nil {
		return err
	}
	times := []int64{}
	for _, signature := range opened.Sigs[1:] {
		time, err := fnote.CoSigV1Timestamp(signature)
		if err != nil {
			return err
		}
		times = append(times, time.Unix())
	}
	fmt.Println(found.Index, checkpoint.Size, times)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
