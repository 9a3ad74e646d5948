// Which events belong together: an op's subtree and what it launched, an activity and its ops.

import type { Hit } from "./hit.ts";
import type { Events } from "./model.ts";
import type { Lit } from "./renderer.ts";

function marks(events: Events): Omit<Lit, "chosen"> {
  return {
    op: new Uint8Array(events.op.length),
    api: new Uint8Array(events.api.length),
    act: new Uint8Array(events.act.length),
  };
}

/** Lights the ops' subtrees and all that they launched; ancestors stay dim. */
export function lightOps(events: Events, ops: Iterable<number>): Lit {
  const lit = marks(events);
  const tree = events.subtree(ops);
  for (const op of tree) lit.op[op] = 1;
  for (const set of [events.api, events.act]) {
    for (let i = 0; i < set.length; i++) if (tree.has(set.op[i])) lit[set.prefix][i] = 1;
  }
  return { ...lit, chosen: null };
}

/** Lights what belongs to the event under the pointer. */
export function light(events: Events, at: Hit): Lit {
  const { prefix } = at.set;
  const chosen = { prefix, event: at.event };
  if (prefix === "op") return { ...lightOps(events, [at.event]), chosen };
  const lit = marks(events);
  lit[prefix][at.event] = 1;
  for (const op of events.chain(at.set.op[at.event])) lit.op[op] = 1;
  // The call and the activities that it launched share a correlation id.
  const id = at.set.number("correlation_id", at.event);
  if (id !== undefined && Number(id) >= 0) {
    for (const set of [events.api, events.act]) {
      for (let i = 0; i < set.length; i++) {
        if (set.number("correlation_id", i) === id) lit[set.prefix][i] = 1;
      }
    }
  }
  return { ...lit, chosen };
}

/** Lights every activity for which `wanted` holds, with the ops above it. */
export function lightActivities(events: Events, wanted: (i: number) => boolean): Lit {
  const lit = marks(events);
  for (let i = 0; i < events.act.length; i++) {
    if (!wanted(i)) continue;
    lit.act[i] = 1;
    for (let op = events.act.op[i]; op >= 0 && !lit.op[op]; op = events.op.op[op]) lit.op[op] = 1;
  }
  return { ...lit, chosen: null };
}
