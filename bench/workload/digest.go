package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// Digests holds the SHA-256 of the four arrays of a workload in lower-case hex. Each is over the little-endian words of
// the array; where a scene has several meshes, over their arrays one after the other in mesh order, faces with the
// indices of their own mesh.
type Digests struct {
	Vertices, Faces, Origins, Directions string
}

// digestBlock is the number of words that are encoded at a time.
const digestBlock = 1 << 14

// DigestFloats returns the SHA-256 of the little-endian words of the arrays, one after the other.
func DigestFloats(arrays ...[]float32) string { return digest(math.Float32bits, arrays) }

// DigestInts returns the SHA-256 of the little-endian words of the arrays, one after the other.
func DigestInts(arrays ...[]int32) string {
	return digest(func(v int32) uint32 { return uint32(v) }, arrays)
}

func digest[T any](word func(T) uint32, arrays [][]T) string {
	h := sha256.New()
	block := make([]byte, 0, 4*digestBlock)
	for _, a := range arrays {
		for len(a) > 0 {
			n := min(len(a), digestBlock)
			block = block[:0]
			for _, v := range a[:n] {
				block = binary.LittleEndian.AppendUint32(block, word(v))
			}
			h.Write(block) // a hash never returns an error
			a = a[n:]
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
