package scene

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/raymux/raymux/cuda"
)

// Materials says what the surfaces of a scene are made of, on the host: one row per
// medium. All columns have the same length.
//
// At the angular frequency w a medium has the permittivity EtaR - j Sigma/(w eps0), in
// units of vacuum, and the permeability MuR. A perfect conductor has Sigma = +Inf.
type Materials struct {
	EtaR  []float32 // relative permittivity, more than 0
	Sigma []float32 // conductivity in S/m, 0 to +Inf
	MuR   []float32 // relative permeability, more than 0
	Gain  []float32 // factor on reflected fields, 0 or more
	// Valid is false for media that absorb whatever meets them. Nil: none does.
	Valid []bool
	// Index is the row of each face of the scene. Nil: row i is for face i.
	Index []int32
}

// MaterialTable is Materials on the device: what the operations on fields take. Make it
// with Scene.UploadMaterials; close it when no call needs it any more.
type MaterialTable struct {
	deviceTable
	count, faces int
	indexed      bool
}

// Count is the number of media.
func (t *MaterialTable) Count() int { return t.count }

// Close returns the memory of all copies. It waits for all work of their devices, so that
// no query still reads them. Close is idempotent, and of nil it does nothing.
func (t *MaterialTable) Close() error {
	if t == nil {
		return nil
	}
	return t.close()
}

// UploadMaterials brings the media of the scene's surfaces to its device. It copies them:
// later changes of the columns do not matter. The table fits the scene until meshes are
// added.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError for columns of unequal length, without
// Index for any but one row per face, for numbers outside of their range and for an Index
// without a row; the error of ctx, and those of cuda. Cost: it waits for the upload of 17
// bytes per medium, and 4 per face with Index.
func (s *Scene) UploadMaterials(ctx context.Context, m Materials) (*MaterialTable, error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	faces := s.tables.faceCount
	if err := m.check("UploadMaterials", faces); err != nil {
		return nil, err
	}
	t := &MaterialTable{count: len(m.EtaR), faces: faces, indexed: m.Index != nil}
	if err := t.fill(ctx, s, "Materials", m.pack()); err != nil {
		return nil, err
	}
	return t, nil
}

func (m *Materials) check(op string, faces int) error {
	n := len(m.EtaR)
	for _, c := range [...]struct {
		name string
		have int
	}{{"Sigma", len(m.Sigma)}, {"MuR", len(m.MuR)}, {"Gain", len(m.Gain)}, {"Valid", len(m.Valid)}} {
		if c.have != n && (c.name != "Valid" || m.Valid != nil) {
			return badArg(op, c.name, "has %d values, want %d, as EtaR", c.have, n)
		}
	}
	if m.Index == nil && n != faces {
		return badArg(op, "EtaR", "has %d rows, want one for each of the %d faces, or an Index", n, faces)
	}
	if m.Index != nil && len(m.Index) != faces {
		return badArg(op, "Index", "has %d values, want one for each of the %d faces", len(m.Index), faces)
	}
	for i := range n {
		for _, c := range [...]struct {
			name  string
			value float32
			ok    bool
			want  string
		}{
			{"EtaR", m.EtaR[i], m.EtaR[i] > 0 && finite(m.EtaR[i]), "a finite number above 0"},
			{"Sigma", m.Sigma[i], m.Sigma[i] >= 0, "0 or more, +Inf for a perfect conductor"},
			{"MuR", m.MuR[i], m.MuR[i] > 0 && finite(m.MuR[i]), "a finite number above 0"},
			{"Gain", m.Gain[i], m.Gain[i] >= 0 && finite(m.Gain[i]), "a finite number, 0 or more"},
		} {
			if !c.ok {
				return badArg(op, fmt.Sprintf("%s[%d]", c.name, i), "is %v, want %s", c.value, c.want)
			}
		}
	}
	for f, i := range m.Index {
		if i < 0 || int(i) >= n {
			return badArg(op, fmt.Sprintf("Index[%d]", f), "is %d, want one of %d rows", i, n)
		}
	}
	return nil
}

func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

// mediumBytes is the size of a row of Media.rows of medium.cuh.
const mediumBytes = 16

// pack is rows, index and valid flags, one after the other.
func (m *Materials) pack() []uint8 {
	out := make([]uint8, 0, (mediumBytes+1)*len(m.EtaR)+4*len(m.Index))
	for i := range m.EtaR {
		for _, v := range [...]float32{m.EtaR[i], m.Sigma[i], m.MuR[i], m.Gain[i]} {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	for _, i := range m.Index {
		out = binary.LittleEndian.AppendUint32(out, uint32(i))
	}
	for i := range m.EtaR {
		valid := uint8(1)
		if m.Valid != nil && !m.Valid[i] {
			valid = 0
		}
		out = append(out, valid)
	}
	return out
}

// media is Media of medium.cuh.
type media struct {
	Rows  uint64
	Valid uint64
	Index uint64
	Count int32
	Faces int32
}

// media is the table as kernels on the device of s read it. Nothing is enqueued.
func (t *MaterialTable) media(op string, s *Scene) (media, error) {
	if t == nil {
		return media{}, badArg(op, "Materials", "is nil, want a table from UploadMaterials; there is no default medium")
	}
	memory, err := t.on(op, s)
	if err != nil {
		return media{}, err
	}
	if have := s.tables.faceCount; have != t.faces {
		return media{}, badArg(op, "Materials", "is for %d faces, the scene has %d: upload it again", t.faces, have)
	}
	m := media{Rows: memory.Addr(), Count: int32(t.count), Faces: int32(t.faces)}
	m.Valid = m.Rows + uint64(t.count)*mediumBytes
	if t.indexed {
		m.Index = m.Valid
		m.Valid += uint64(t.faces) * 4
	}
	return m, nil
}

// Physical constants in SI units.
const (
	lightSpeed         = 299792458.0
	vacuumPermittivity = 8.8541878128e-12
)

// lossPerSigma is 1/(w eps0): the loss of a medium per S/m.
func lossPerSigma(wavelength float64) float64 {
	return wavelength / (2 * math.Pi * lightSpeed * vacuumPermittivity)
}

// checkWavelength requires a wavelength in metres.
func checkWavelength(op string, wavelength float64) error {
	if !(wavelength > 0) || math.IsInf(wavelength, 0) {
		return badArg(op, "Wavelength", "is %v, want a finite number of metres above 0", wavelength)
	}
	return nil
}

// checkColumn requires a column of n rows of width values on the device of s.
func checkColumn[T cuda.Scalar](s *Scene, op, arg string, v cuda.Slice[T], n, width int64) error {
	if int64(v.Len()) != n*width {
		return badArg(op, arg, "has %d values, want %d for %d rows", v.Len(), n*width, n)
	}
	return checkMemory(s, op, arg, v)
}
