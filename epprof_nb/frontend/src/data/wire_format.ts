// Layout of the payload: uint32 header length, JSON header, then the columns, plain or as byte
// planes. Must match Python's encoder.

type Tag = "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "f64" | "i64";
type Entry = [tag: Tag, offset: number, length: number, first: number | null];

const BYTES: Record<Tag, number> = { u8: 1, i8: 1, u16: 2, i16: 2, u32: 4, i32: 4, f64: 8, i64: 8 };
const ARRAYS = {
  u8: Uint8Array,
  i8: Int8Array,
  u16: Uint16Array,
  i16: Int16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f64: Float64Array,
  i64: BigInt64Array,
};

/** Columns with a header, wherever they come from. */
export interface ColumnBundle<Header> {
  readonly header: Header;
  names(): string[];
  column(name: string): Float64Array | BigInt64Array | undefined;
}

/** Decoded buffer: the header, and columns that are decoded on first use. */
export class Bundle<Header> implements ColumnBundle<Header> {
  readonly header: Header;
  readonly #index: Record<string, Entry>;
  readonly #body: Uint8Array;
  readonly #plain: boolean;
  readonly #ready = new Map<string, Float64Array | BigInt64Array>();

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const length = view.getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    this.#index = header.columns;
    this.#plain = header.plain === true;
    this.#body = bytes.subarray(4 + length);
    this.header = header;
  }

  names(): string[] {
    return Object.keys(this.#index);
  }

  /** Values of a column; BigInt only if a double cannot hold them. */
  column(name: string): Float64Array | BigInt64Array | undefined {
    const known = this.#ready.get(name);
    if (known) return known;
    const entry = this.#index[name];
    if (!entry) return undefined;
    const values = this.#plain ? plainColumn(this.#body, entry) : decodeColumn(this.#body, entry);
    this.#ready.set(name, values);
    return values;
  }
}

/** Decode plain values, and add the entry's last number if there is one. */
function plainColumn(body: Uint8Array, entry: Entry): Float64Array | BigInt64Array {
  const [tag, offset, length, base] = entry;
  // Copy, because a view must be aligned to the values' width.
  const raw = body.slice(offset, offset + length * BYTES[tag]);
  const stored = new ARRAYS[tag](raw.buffer);
  if (stored instanceof BigInt64Array || stored instanceof Float64Array) return stored;
  const values = new Float64Array(stored);
  if (base !== null) for (let i = 0; i < length; i++) values[i] += base;
  return values;
}

function decodeColumn(body: Uint8Array, entry: Entry): Float64Array | BigInt64Array {
  const [tag, offset, length, first] = entry;
  const width = BYTES[tag];
  const raw = new Uint8Array(length * width);
  for (let plane = 0; plane < width; plane++) {
    const from = offset + plane * length;
    for (let i = 0; i < length; i++) raw[i * width + plane] = body[from + i];
  }
  const stored = new ARRAYS[tag](raw.buffer);
  if (stored instanceof BigInt64Array) return stored;
  const values = Float64Array.from(stored);
  if (first !== null && length > 0) {
    values[0] += first;
    for (let i = 1; i < length; i++) values[i] += values[i - 1];
  }
  return values;
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Decompress zlib data with the browser's built-in decoder. */
export async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
