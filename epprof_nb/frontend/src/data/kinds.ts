// Kinds of activity. The payload's header lists their names by the payload's codes; the viewer
// translates these once (EventSet) to the codes below, by which it looks up shapes and colours.

export const KINDS = [
  "other",
  "kernel",
  "memcpy",
  "memset",
  "synchronization",
  "graph_launch",
] as const;

type KindName = (typeof KINDS)[number];
export type Kind = 0 | 1 | 2 | 3 | 4 | 5;

/** Code of each kind: its position in `KINDS`. */
export const KIND = {
  other: 0,
  kernel: 1,
  memcpy: 2,
  memset: 3,
  synchronization: 4,
  graph_launch: 5,
} as const satisfies Record<KindName, Kind>;

/** Kinds that keep a device busy. */
export const BUSY_KINDS: KindName[] = ["kernel", "memcpy", "memset"];

/** Whether activities of a kind are drawn as work of the device, not in the foot of its lane. */
export function isDeviceWork(kind: number): boolean {
  return kind !== KIND.synchronization && kind !== KIND.graph_launch;
}

/** Code of a kind by name; kinds that the viewer does not know are "other". */
export function kindCode(name: string): Kind {
  return Object.hasOwn(KIND, name) ? KIND[name as KindName] : KIND.other;
}

/** Name of a kind as shown to users. */
export function kindLabel(name: string): string {
  return name.replaceAll("_", " ");
}
