package audit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/raymux/raymux/ptx/manifest"
)

// The compiler states the layout of parameter structs in data of a second
// program: the module's own source, followed by one array per kernel with the
// struct's size and each field's offset, size and kind. A last word tells a
// complete array from a shortened one.

const (
	layoutName = "raymux_layout_"
	layoutEnd  = 0x7261796d7578
)

const layoutPrelude = `
template <class T> struct raymux_kind { static const int value = 0; };
template <class T> struct raymux_kind<const T> : raymux_kind<T> {};
template <class T, unsigned long long N> struct raymux_kind<T[N]> : raymux_kind<T> {};
template <class T, unsigned long long N> struct raymux_kind<const T[N]> : raymux_kind<T> {};
template <class T> struct raymux_kind<T *> { static const int value = 4; };
#define RAYMUX_KIND(T, V) template <> struct raymux_kind<T> { static const int value = V; };
RAYMUX_KIND(float, 1) RAYMUX_KIND(double, 1)
RAYMUX_KIND(signed char, 2) RAYMUX_KIND(short, 2) RAYMUX_KIND(int, 2) RAYMUX_KIND(long, 2) RAYMUX_KIND(long long, 2)
RAYMUX_KIND(unsigned char, 3) RAYMUX_KIND(unsigned short, 3) RAYMUX_KIND(unsigned, 3)
RAYMUX_KIND(unsigned long, 3) RAYMUX_KIND(unsigned long long, 3)
#define RAYMUX_FIELD(T, F) (unsigned long long)&((T *)0)->F, sizeof(((T *)0)->F), raymux_kind<decltype(((T *)0)->F)>::value
`

var kinds = []string{"", "float", "int", "uint", "pointer"}

// layoutProgram asks for the layout of the structs in params, whose field
// names are set.
func layoutProgram(source string, params []manifest.Params) string {
	var b strings.Builder
	b.WriteString(source)
	b.WriteString(layoutPrelude)
	for i, p := range params {
		if p.Struct == "" {
			continue
		}
		fmt.Fprintf(&b, "extern \"C\" __device__ unsigned long long %s%d[] = {sizeof(%s)", layoutName, i, p.Struct)
		for _, f := range p.Fields {
			fmt.Fprintf(&b, ",\n\tRAYMUX_FIELD(%s, %s)", p.Struct, f.Name)
		}
		fmt.Fprintf(&b, ", %#xull};\n", uint64(layoutEnd))
	}
	return b.String()
}

// The compiler writes the array as 64-bit words or, where a word came from an
// address computation, as bytes.
var layoutTag = regexp.MustCompile(`\.(u64|b8) ` + layoutName + `(\d+)\[\d+\] = \{([^}]*)\}`)

func layoutWords(form, list string) ([]int, error) {
	var words []int
	for i, w := range strings.Split(list, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(w))
		if err != nil {
			return nil, fmt.Errorf("layout word %q: %w", w, err)
		}
		if form == "u64" || i%8 == 0 {
			words = append(words, v)
		} else {
			words[i/8] |= v << (i % 8 * 8)
		}
	}
	return words, nil
}

// readLayout fills sizes, offsets and kinds from the compiled layout program.
func readLayout(ptx string, params []manifest.Params) error {
	found := map[int][]int{}
	for _, m := range layoutTag.FindAllStringSubmatch(ptx, -1) {
		i, err := strconv.Atoi(m[2])
		if err != nil {
			return err
		}
		if found[i], err = layoutWords(m[1], m[3]); err != nil {
			return err
		}
	}
	for i := range params {
		p := &params[i]
		if p.Struct == "" {
			continue
		}
		words := found[i]
		if len(words) != 3*len(p.Fields)+2 || words[len(words)-1] != layoutEnd {
			return fmt.Errorf("the compiler did not state the layout of struct %s", p.Struct)
		}
		p.Bytes = words[0]
		for k := range p.Fields {
			w := words[1+3*k:]
			f := &p.Fields[k]
			f.Offset, f.Bytes, f.Kind = w[0], w[1], kinds[w[2]]
			if f.Kind == "" {
				return fmt.Errorf("struct %s: field %s is no number, pointer or array of them", p.Struct, f.Name)
			}
		}
	}
	return nil
}
