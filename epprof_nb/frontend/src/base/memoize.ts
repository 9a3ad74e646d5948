// Values computed once per key.

const KEPT = 4000;

/** Value of a key, made on first use. A full map is cleared first. */
export function memoize<Key, Value>(
  known: Map<Key, Value>,
  key: Key,
  make: () => Value,
  kept = KEPT,
): Value {
  let value = known.get(key);
  if (value === undefined) {
    if (known.size >= kept) known.clear();
    value = make();
    known.set(key, value);
  }
  return value;
}
