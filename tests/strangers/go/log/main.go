// Command log checks a published log with the code behind the Go checksum database:
// golang.org/x/mod/sumdb, packages note and tlog. What is ours here only reads files and JSON.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// task is what standard input holds.
type task struct {
	Folder string
	Vkey   string
	Old    struct {
		Size  int64
		Root  string
		Proof []string
	}
	Records []struct {
		Index int64
		Proof []string
	}
}

// folder reads tiles from the files of a C2SP tlog-tiles log.
type folder string

func (f folder) Height() int { return 8 }

func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		// Of a tile that is not full, the checksum database's path and ours agree but for the height.
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		data, err := os.ReadFile(filepath.Join(string(f), path))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

func (f folder) SaveTiles([]tlog.Tile, [][]byte) {}

// entry returns an entry of the bundles, found by its index alone.
func (f folder) entry(index, size int64) ([]byte, error) {
	tile := tlog.Tile{H: 8, L: 0, N: index / 256, W: int(min(256, size-index/256*256))}
	path := strings.Replace(tile.Path(), "tile/8/0/", "tile/entries/", 1)
	data, err := os.ReadFile(filepath.Join(string(f), path))
	if err != nil {
		return nil, err
	}
	for skip := index % 256; ; skip-- {
		if len(data) < 2 || len(data) < 2+int(binary.BigEndian.Uint16(data)) {
			return nil, errors.New("a bundle that is cut off")
		}
		length := 2 + int(binary.BigEndian.Uint16(data))
		if skip == 0 {
			return data[2:length], nil
		}
		data = data[length:]
	}
}

func hashes(texts []string) ([]tlog.Hash, error) {
	found := []tlog.Hash{}
	for _, text := range texts {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return nil, err
		}
		found = append(found, hash)
	}
	return found, nil
}

func checkpoint(work task) (tlog.Tree, error) {
	data, err := os.ReadFile(filepath.Join(work.Folder, "checkpoint"))
	if err != nil {
		return tlog.Tree{}, err
	}
	verifier, err := note.NewVerifier(work.Vkey)
	if err != nil {
		return tlog.Tree{}, err
	}
	opened, err := note.Open(data, note.VerifierList(verifier))
	if err != nil {
		return tlog.Tree{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 3 || lines[0] != verifier.Name() {
		return tlog.Tree{}, errors.New("a note that is no checkpoint of this log")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tlog.Tree{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: root}, err
}

func run() error {
	var work task
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		return err
	}
	tree, err := checkpoint(work)
	if err != nil {
		return err
	}
	files := folder(work.Folder)
	reader := tlog.TileHashReader(tree, files)
	if work.Old.Size > 0 {
		old, err := tlog.ParseHash(work.Old.Root)
		if err != nil {
			return err
		}
		ours, err := hashes(work.Old.Proof)
		if err != nil {
			return err
		}
		if err := tlog.CheckTree(ours, tree.N, tree.Hash, work.Old.Size, old); err != nil {
			return fmt.Errorf("consistency: %w", err)
		}
		theirs, err := tlog.ProveTree(tree.N, work.Old.Size, reader)
		if err != nil {
			return fmt.Errorf("consistency from tiles: %w", err)
		}
		if !reflect.DeepEqual([]tlog.Hash(theirs), ours) {
			return errors.New("consistency: another proof from the tiles")
		}
	}
	for _, record := range work.Records {
		data, err := files.entry(record.Index, tree.N)
		if err != nil {
			return err
		}
		ours, err := hashes(record.Proof)
		if err != nil {
			return err
		}
		leaf := tlog.RecordHash(data)
		if err := tlog.CheckRecord(ours, tree.N, tree.Hash, record.Index, leaf); err != nil {
			return fmt.Errorf("record %d: %w", record.Index, err)
		}
		theirs, err := tlog.ProveRecord(tree.N, record.Index, reader)
		if err != nil {
			return fmt.Errorf("record %d from tiles: %w", record.Index, err)
		}
		if !reflect.DeepEqual([]tlog.Hash(theirs), ours) {
			return fmt.Errorf("record %d: another proof from the tiles", record.Index)
		}
	}
	fmt.Println(tree.N, base64.StdEncoding.EncodeToString(tree.Hash[:]))
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
