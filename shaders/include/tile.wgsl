{{define "tile_memory"}}
// Two tiles, each of {{.Tile}} rows and {{mul .Quads 4}} columns, one after the other. 16 x 16 lanes compute
// the products of their rows: lane (tx, ty) multiplies rows ty + 16 i of the first tile by rows tx + 16 j of
// the second.
var<workgroup> tiles: array<vec4<f32>, {{mul 2 (mul .Tile .Quads)}}>;
const second = {{mul .Tile .Quads}}u;
{{template "tile_places" .}}
{{- end}}

{{define "tile_places"}}
// A tile consists of vectors of four columns. The order of the vectors in a row differs from row to row, so
// that lanes use different memory banks when they read one column of eight rows, or write eight vectors of a
// row.

// Returns the mask that determines the order of the vectors in a row.
fn tile_mask(row: u32) -> u32 {
  return {{if eq .Quads 8}}row & 7u{{else}}(row >> 1u) & 3u{{end}};
}

// Returns the index in a tile of vector quad of a row.
fn tile_place(row: u32, quad: u32) -> u32 {
  return row * {{.Quads}}u + (quad ^ tile_mask(row));
}
{{end}}

{{define "tile_sums"}}
{{- $n := div .Tile 16}}
{{- range $i := $n}}
{{- range $j := $n}}
  var sum{{$i}}_{{$j}} = 0.0;
{{- end}}
{{- end}}
  let row_a = ty * {{.Quads}}u;
  let row_b = second + tx * {{.Quads}}u;
  let mask_a = tile_mask(ty);
  let mask_b = tile_mask(tx);
{{- end}}

{{define "tile_product"}}
{{- $n := div .Tile 16}}
{{- $stride := mul 16 .Quads}}
{{- range $q := .Quads}}
    {
{{- range $i := $n}}
      let a{{$i}} = tiles[row_a + {{mul $i $stride}}u + ({{$q}}u ^ mask_a)];
{{- end}}
{{- range $j := $n}}
      let b{{$j}} = tiles[row_b + {{mul $j $stride}}u + ({{$q}}u ^ mask_b)];
{{- range $i := $n}}
      sum{{$i}}_{{$j}} = fma(a{{$i}}.w, b{{$j}}.w,
        fma(a{{$i}}.z, b{{$j}}.z, fma(a{{$i}}.y, b{{$j}}.y, fma(a{{$i}}.x, b{{$j}}.x, sum{{$i}}_{{$j}}))));
{{- end}}
{{- end}}
    }
{{- end}}
{{- end}}
