// Writes pipelines.json: random tokenizer.json pipelines, and what Hugging Face's tokenizers makes of texts with them.
//
//	npm install tokenizers@0.23.2
//	node make.js [seed [count]] > pipelines.json
//
// The file has each vocabulary once. A pipeline is a tokenizer.json whose "model" is the name of a vocabulary
// with the fields that differ. "cases" are [text, ids] or, where the pipeline has a decoder, [text, ids, decoded].
'use strict'
const { spawnSync } = require('child_process')
const { readFileSync } = require('fs')
const { Tokenizer } = require('tokenizers')

const [seed = '2', count = '100'] = process.argv.slice(2)
let state = Number(seed) >>> 0
function random() { // mulberry32
  state = (state + 0x6d2b79f5) >>> 0
  let t = state
  t = Math.imul(t ^ (t >>> 15), t | 1)
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}
const below = n => Math.floor(random() * n)
const chance = p => random() < p
const pick = list => list[below(list.length)]
const some = (least, most, make) => Array.from({ length: least + below(most - least + 1) }, make)

const texts = [
  '', ' ', 'a', 'ü', '<x>\n\na', '  Hello,   World!  ', 'Héllo Wörld éà', 'HTTPServer2024 v1.2.3', "I'm can'T DON'T we'LL",
  '1234567 12 ٣٤ Ⅷ½²', 'a\tb\r\n\r\n c\n', '中文かなカナー한국어', 'Привет МИР', 'ß SS ss ſ K İ ı', 'e\u0301 o\u0308\u0323 \u0301',
  '👍🏿 👩🏽‍🚀 🇩🇪🇫', 'क्षि नमस्ते', '\u00a0\u2003\u3000x\u200b\ufeffy\u00ad', 'foo_bar-baz.qux/abc', '<|im_start|>user\nhi<|im_end|>',
  '[MASK] [MASK]the[MASK]', 'foo Foo FOO food', 'a  <x>  b<x>\tc <x>', '\n\n\n\n', '    indented\n\tcode {\n  }', '$5.00 + 3% = <5>',
  '“quoted” — text…', 'aaaa bbbb abab', 'x\u0000y\u0007z\u007f\u008f', 'naïve café résumé', '▁▁a ▁b', 'ﬁ ﬀ ﬆ Å ① ㎏', 'abc123def456', '日本語123テスト',
  'the quick brown fox jumps over the lazy dog', 'C:\\path\\file.txt', 'a&&b||c', '\u2028line\u2029para\u0085', '١٢٣ שלום عربي،', 'Ġ Ċ ü',
]
const words = ['a', 'b', 'ab', 'The', 'foo', ' ', '  ', '\n', '\n\n', '\t', '1', '22', 'é', 'ü', '中', 'か', '👍', '<x>', '<y>', '.', ',', '-', '_', '!', "'s", "'LL", 'e\u0301', '½', '\r\n', '▁', 'Ж', 'ſ', 'x']
const text = () => chance(0.6) ? pick(texts) : some(1, 14, () => pick(words)).join('')

// Vocabularies: bytes with merges, the same with gaps, and characters with byte tokens or without.
const byteRunes = (() => {
  const runes = []
  for (let b = 0, next = 256; b < 256; b++) {
    runes[b] = b <= 32 || (b >= 127 && b <= 160) || b === 173 ? next++ : b
  }
  return runes.map(r => String.fromCodePoint(r))
})()
const inBytes = s => [...Buffer.from(s)].map(b => byteRunes[b])

function learn(symbols, split, size) {
  const vocab = {}
  symbols.forEach(s => { vocab[s] = Object.keys(vocab).length })
  let lists = texts.map(split)
  const merges = []
  while (merges.length < size) {
    const counts = new Map()
    for (const list of lists) {
      for (let i = 0; i + 1 < list.length; i++) {
        if (list[i] in vocab && list[i + 1] in vocab) {
          const key = list[i] + '\u0001' + list[i + 1]
          counts.set(key, (counts.get(key) || 0) + 1)
        }
      }
    }
    const best = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0]
    if (!best || best[1] < 2) break
    const [left, right] = best[0].split('\u0001')
    merges.push([left, right])
    if (!(left + right in vocab)) vocab[left + right] = Object.keys(vocab).length
    lists = lists.map(list => {
      const out = []
      for (let i = 0; i < list.length; i++) {
        if (list[i] === left && list[i + 1] === right) { out.push(left + right); i++ } else out.push(list[i])
      }
      return out
    })
  }
  return { type: 'BPE', vocab, merges }
}
const letters = [...new Set([...texts.join(''), ...'▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'])].filter(c => c < '\u0250' || c === '▁' || 'か中語'.includes(c))
const byteNames = byteRunes.map((_, b) => '<0x' + b.toString(16).toUpperCase().padStart(2, '0') + '>')
const marked = s => [...s.replace(/ /g, '▁')]
const models = {
  bytes: learn(byteRunes, inBytes, 120),
  gaps: learn(byteRunes.filter((_, b) => b !== 7 && b !== 0xcc && b !== 0x84), inBytes, 60),
  fallback: learn(['<unk>', ...byteNames, ...letters], marked, 100),
  characters: learn(['<unk>', ...letters.filter(c => c !== 'z' && c !== '!')], marked, 80),
}

const classItems = ['a-z', 'A-Z', '0-9', '\\w', '\\s', '\\d', '\\h', '\\p{L}', '\\p{N}', '\\p{Lu}', '\\p{Ll}', '\\p{P}', '\\p{S}', '\\p{M}', '\\p{Han}', '\\p{^L}', '\\P{N}', '[:alpha:]', '[:punct:]',
  '[:^space:]', '[:upper:]', '[:alnum:]', '[:word:]', '.', ',', '_', '!', 'é', '\\n', '\\r', ' ', 'aeiou', '\\x{4e00}-\\x{9fff}', '\\u00e0-\\u00ff', '\\p{Latin}', '\\S', '\\W', '\\H', '(', '|', '-']
function characterClass(depth) {
  const list = some(1, 3, () => depth > 0 && chance(0.3) ? characterClass(depth - 1) : pick(classItems.slice(0, -1)))
  let inside = list.map(i => i.startsWith('[:') ? '[' + i + ']' : i).join('').replace(/^-/, '')
  if (depth > 0 && chance(0.3)) inside += '&&' + characterClass(depth - 1)
  return '[' + (chance(0.3) ? '^' : '') + inside + ']'
}
const quantifier = () => pick(['', '', '+', '*', '?', '+', '++', '?+', '*+', '{2}', '{1,3}', '{2,}', '{,2}', '{3}+', '{1,2}+', '+?', '??'])
function atom(depth) {
  const kind = below(12)
  if (kind < 5) return characterClass(2)
  if (kind < 7) return pick(['\\w', '\\s', '\\d', '\\p{L}', '\\p{N}', '\\p{Lu}', '\\S', '\\h', '\\H', '\\R', '\\X', '.', '\\p{^L}', '\\P{L}'])
  if (kind < 9) return pick(['a', 'b', ' ', 'foo', 'e', '-', '\\.', '\\n', 'é', '中'])
  if (depth > 0 && kind === 9) return pick(['(?:', '(?>', '(', '(?i:', '(?<n>']) + pattern(depth - 1) + ')'
  return pick(["(?i:'s|'t|'ll|re)", '(?=\\s)', '(?!\\S)', '(?<=a)', '(?<!\\s)', '^', '$', '\\b', '\\B', '\\A', '\\z'])
}
const anchor = /^(\(\?<?[=!].*|\^|\$|\\[bBAz])$/s
const sequence = depth => some(1, 3, () => { const a = atom(depth); return a + (anchor.test(a) ? '' : a.length === 1 || /^[[(\\]/.test(a) ? quantifier() : '') }).join('')
const pattern = depth => some(1, 3, () => sequence(depth)).join('|')
const published = [
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  '[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|\\s++', ' ?[^(\\s|[.,!?…。，、।۔،])]+', '[\\p{Han}]+|[\\p{L}&&[^\\p{Han}]]+',
  '[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+|\\p{N}{1,3}|\\s+', '\\d{1,3}(?=(?:\\d{3})*\\b)', '(?=(\\d{3})+(?!\\d))',
  '(?<=\\p{Ll})(?=\\p{Lu})', '[[:punct:]]|[[:space:]]+', '\\X', '\\R+| +', '(?x) \\p{L}+ # words\n | \\p{N}', 'a(?i)b|c', '(?m:a.)|.', '', '(?:\\p{L}\\p{M}*)+', '\\h{2}', '[^\\S\\n]+',
]
const regex = () => chance(0.45) ? pick(published) : pattern(2)
const behavior = () => pick(['Isolated', 'Removed', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'])

const preTokenizer = {
  Split: () => ({ type: 'Split', pattern: chance(0.85) ? { Regex: regex() } : { String: pick([' ', 'a', '\n\n', '.', 'ab', '']) }, behavior: chance(0.5) ? 'Isolated' : behavior(), invert: chance(0.25) }),
  Digits: () => ({ type: 'Digits', individual_digits: chance(0.5) }),
  Punctuation: () => ({ type: 'Punctuation', behavior: behavior() }),
  Whitespace: () => ({ type: 'Whitespace' }),
  WhitespaceSplit: () => ({ type: 'WhitespaceSplit' }),
  BertPreTokenizer: () => ({ type: 'BertPreTokenizer' }),
  UnicodeScripts: () => ({ type: 'UnicodeScripts' }),
  CharDelimiterSplit: () => ({ type: 'CharDelimiterSplit', delimiter: pick([' ', 'a', '-', '中', 'Ġ']) }),
  FixedLength: () => ({ type: 'FixedLength', length: 1 + below(5) }),
  Metaspace: () => ({ type: 'Metaspace', replacement: chance(0.9) ? '▁' : '_', prepend_scheme: pick(['always', 'first', 'never']), split: chance(0.7) }),
  ByteLevel: () => ({ type: 'ByteLevel', add_prefix_space: chance(0.3), trim_offsets: true, use_regex: chance(0.6) }),
}
const normalizer = {
  NFC: () => ({ type: 'NFC' }), NFD: () => ({ type: 'NFD' }), NFKC: () => ({ type: 'NFKC' }), NFKD: () => ({ type: 'NFKD' }),
  Lowercase: () => ({ type: 'Lowercase' }), StripAccents: () => ({ type: 'StripAccents' }), Nmt: () => ({ type: 'Nmt' }),
  Strip: () => ({ type: 'Strip', strip_left: chance(0.5), strip_right: chance(0.7) }),
  Replace: () => ({ type: 'Replace', pattern: chance(0.6) ? { Regex: pick([' {2,}', '\\s+', '[[:punct:]]', '\\p{Lu}', '\\R', 'a*', "[‘’]|''", '(?=b)', '[^\\p{L}\\s]++']) } : { String: pick([' ', 'a', '``', 'é', '']) }, content: pick([' ', '▁', '', 'x', '"']) }),
  Prepend: () => ({ type: 'Prepend', prepend: pick(['▁', ' ', 'x']) }),
  BertNormalizer: () => ({ type: 'BertNormalizer', clean_text: chance(0.7), handle_chinese_chars: chance(0.7), strip_accents: pick([true, false, null]), lowercase: chance(0.5) }),
  ByteLevel: () => ({ type: 'ByteLevel' }),
}
const any = (kinds, but = []) => kinds.Split && chance(0.3) ? kinds.Split() : kinds[pick(Object.keys(kinds).filter(k => !but.includes(k)))]()

function addedTokens(vocab, byteLevel) {
  const contents = [...new Set(some(0, 6, () => pick(['<x>', '<y>', '\n\n', '  ', ' ', '<|im_end|>', '<|im', '<|im_start|>', 'foo', 'Foo', 'é', 'ab', 'a b', '[MASK]', '日本', 'the', 'e', '\n', '<x><y>', 'ÀB', '12'])))]
  let next = Object.keys(vocab).length
  return contents.map(content => ({
    id: content in vocab ? vocab[content] : next++, content, single_word: chance(0.2), lstrip: chance(0.2), rstrip: chance(0.25),
    normalized: chance(0.35), special: chance(0.6),
  }))
}

function pipeline() {
  const model = pick(['bytes', 'bytes', 'bytes', 'gaps', 'fallback', 'fallback', 'characters'])
  const byteLevel = model === 'bytes' || model === 'gaps'
  const many = (kinds, list) => list.length === 0 ? null : list.length === 1 ? list[0] : { type: 'Sequence', [kinds]: list }
  const normals = chance(0.55) ? some(1, 3, () => any(normalizer, byteLevel ? ['Prepend'] : ['ByteLevel'])) : []
  let cuts
  if (byteLevel) {
    const inNormalizer = normals.some(n => n.type === 'ByteLevel')
    cuts = [...some(0, 2, () => any(preTokenizer, ['ByteLevel', 'Metaspace'])), ...(inNormalizer ? [] : [preTokenizer.ByteLevel()]), ...(chance(0.5) ? some(1, 2, () => any(preTokenizer)) : [])]
  } else {
    if (chance(0.4)) normals.push({ type: 'Replace', pattern: { String: ' ' }, content: '▁' })
    cuts = some(0, 3, () => any(preTokenizer, ['ByteLevel']))
    if (chance(0.5)) cuts.splice(below(cuts.length + 1), 0, preTokenizer.Metaspace())
  }
  const decoder = chance(0.25) ? null : byteLevel ? { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true }
    : chance(0.5) ? { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }] }
      : null
  const fields = { unk_token: byteLevel ? null : '<unk>', fuse_unk: chance(0.5), byte_fallback: model === 'fallback', ignore_merges: chance(0.3) }
  const added = addedTokens(models[model].vocab, byteLevel)
  const special = added.find(a => a.special)
  const post = special && chance(0.3) ? { type: 'TemplateProcessing', single: [{ SpecialToken: { id: special.content, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }], pair: [], special_tokens: { [special.content]: { id: special.content, ids: [special.id], tokens: [special.content] } } } : null
  return { model, fields, file: { version: '1.0', truncation: null, padding: null, added_tokens: added, normalizer: many('normalizers', normals), pre_tokenizer: many('pretokenizers', cuts), post_processor: post, decoder } }
}

// A token that the decoder or the normalizer writes in another way than the file does is decoded as written by
// gpuscope, so that nothing is compared there.
function decodes(file, tokenizer) {
  if (!file.decoder) return false
  return file.added_tokens.every(a => {
    if (file.decoder.type === 'ByteLevel' && /[^\0-\x7f]/.test(a.content) && [...a.content].every(c => byteRunes.includes(c))) return false
    return !a.normalized || !file.normalizer || tokenizer.getNormalizer().normalizeString(a.content) === a.content
  })
}

// The library ends the process where it panics, so that each pipeline is answered by a process of its own.
async function answer({ file, model, fields, asked }) {
  const tokenizer = Tokenizer.fromString(JSON.stringify({ ...file, model: { ...models[model], ...fields } }))
  const withDecoder = decodes(file, tokenizer)
  const cases = []
  for (const t of asked) {
    const ids = (await tokenizer.encode(t, null, { addSpecialTokens: false })).getIds()
    cases.push(withDecoder ? [t, ids, await tokenizer.decode(ids, false)] : [t, ids])
  }
  console.log(JSON.stringify(cases))
}

function main() {
  const out = []
  while (out.length < Number(count)) {
    const p = pipeline()
    const asked = [...new Set(some(8, 8, text))]
    const child = spawnSync(process.execPath, [__filename, '--answer'], { input: JSON.stringify({ ...p, asked }), encoding: 'utf8' })
    if (child.status !== 0) { // refused, or a panic
      process.stderr.write(child.stderr.split('\n').filter(l => /rror:|panicked/.test(l)).join(' ').slice(0, 160) + '\n')
      continue
    }
    out.push({ model: p.model, fields: p.fields, file: p.file, cases: JSON.parse(child.stdout) })
  }
  const line = v => JSON.stringify(v).replace(/[\u007f-\u00a0\u00ad\u0300-\u036f\u200b-\u200f\u2028-\u202f\ufeff]/g, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
  console.log('{"models": {\n' + Object.entries(models).map(([k, v]) => JSON.stringify(k) + ': ' + line(v)).join(',\n') + '\n}, "pipelines": [\n' + out.map(line).join(',\n') + '\n]}')
}

if (process.argv[2] === '--answer') answer(JSON.parse(readFileSync(0, 'utf8'))).catch(e => { console.error(String(e)); process.exit(1) })
else main()
