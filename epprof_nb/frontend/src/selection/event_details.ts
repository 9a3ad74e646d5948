// Details of one event, for the tooltip and for the panel below the timeline.

import { copyText } from "../base/clipboard.ts";
import { h, on } from "../base/dom.ts";
import { count, shorten } from "../base/format.ts";
import type { EventRef, Fields, Hit } from "../data/model.ts";
import { fieldsOf, memberCount, type Related, refOf, sameRef } from "../data/queries.ts";
import { type Field, type Group, groups } from "./event_fields.ts";

const COPIED_MS = 900;
/** Below this number of flow lines the panel does not mention omitted ones. */
const MANY = 200;
const NO_NAME = "(no name)";
const TOOLTIP_FIELDS = new Set([
  "duration",
  "in total",
  "start",
  "device time",
  "launched",
  "size",
  "stream",
  "grid",
]);

/** Actions of an event's panel. */
interface Actions {
  select(ref: EventRef): void;
  /** Show the time range of all events behind a rectangle. */
  show(ref: EventRef): void;
}

export function tooltip(at: Hit, fields = fieldsOf(at.set, at.event)): HTMLElement[] {
  const ref = refOf(at);
  const members = memberCount(at.set, at.event);
  const shown = groups(ref, fields, null, members)
    .flatMap((group) => group.fields)
    .filter(({ label }) => TOOLTIP_FIELDS.has(label));
  const head = h("div", { class: "ep-tip-title" }, shorten(ref.name || NO_NAME, 240));
  const list = h(
    "dl",
    {},
    ...shown.map(({ label, value }) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
  );
  if (members === 1) return [head, list];
  const many = h("p", { class: "ep-faint" }, `${count(members)} events; the longest is`);
  return [many, head, list];
}

/** Content of the panel while the event's fields are loading. */
export function heading(at: EventRef): HTMLElement {
  return h(
    "div",
    { class: "ep-chain" },
    h("span", { class: "ep-leaf" }, shorten(at.name || NO_NAME, 90)),
  );
}

/**
 * Content of the panel: enclosing ops as links, buttons to its neighbours, and all fields by group.
 */
export function panel(
  at: EventRef,
  hit: Hit | null,
  fields: Fields,
  related: Related,
  actions: Actions,
): HTMLElement[] {
  const parts = [chain(at, related, actions), steps(at, related, actions)];
  const members = hit ? memberCount(hit.set, hit.event) : 1;
  if (hit && members > 1) parts.push(mergedNote(hit, members, actions));
  const known = groups(
    at,
    fields,
    members > 1 && fields.start_ns === undefined ? null : related.delay,
    members,
  );
  const list = h("div", { class: "ep-groups" }, ...known.map((group) => section(group)));
  const launch = launchSection(at, related, actions);
  if (launch) list.append(launch);
  parts.push(list);
  return parts;
}

function link(ref: EventRef, text: string, actions: Actions, current = false): HTMLElement {
  const button = h(
    "button",
    { class: "ep-link", type: "button", title: ref.name, "aria-current": current },
    text,
  );
  on(button, "click", () => actions.select(ref));
  return button;
}

function chain(at: EventRef, related: Related, actions: Actions): HTMLElement {
  const links = related.chain.map((op) =>
    link(op, shorten(op.name || NO_NAME, 44), actions, sameRef(op, at)),
  );
  const path = h("nav", { class: "ep-chain", "aria-label": "Enclosing ops, outermost first" });
  path.append(...links);
  if (at.prefix === "op") return path;
  path.append(h("span", { class: "ep-leaf", title: at.name }, shorten(at.name || NO_NAME, 110)));
  if (related.chain.length === 0)
    path.append(h("span", { class: "ep-faint" }, "not attributed to an op"));
  return path;
}

function steps(at: EventRef, { before, after, same }: Related, actions: Actions): HTMLElement {
  const place = at.prefix === "act" ? "in the stream" : "in the row";
  const bar = h("div", { class: "ep-steps" });
  const step = (ref: EventRef | null, sign: string, label: string): HTMLElement => {
    const button = h("button", { type: "button", "aria-label": label, title: label }, sign);
    button.disabled = ref === null;
    if (ref) on(button, "click", () => actions.select(ref));
    return button;
  };
  bar.append(
    h(
      "span",
      { class: "ep-seek" },
      to(before, "‹", `Previous ${place}`),
      place,
      to(after, "›", `Next ${place}`),
    ),
  );
  if (same.count > 1) {
    bar.append(
      h(
        "span",
        { class: "ep-step" },
        step(same.before, "‹", "Previous of the same name"),
        `${count(same.number)} of ${count(same.count)} of this name`,
        step(same.after, "›", "Next of the same name"),
      ),
    );
  }
  return bar;
}

function mergedNote(hit: Hit, members: number, actions: Actions): HTMLElement {
  const word = hit.set.prefix === "op" ? "ops" : hit.set.prefix === "api" ? "calls" : "activities";
  const button = h(
    "button",
    { type: "button", class: "ep-link" },
    `zoom to these ${count(members)} ${word}`,
  );
  on(button, "click", () => actions.show(refOf(hit)));
  return h(
    "p",
    { class: "ep-note" },
    `Drawn as one rectangle: ${count(members)} ${word}; this is the longest · `,
    button,
  );
}

function section({ title, fields }: Group): HTMLElement {
  return h(
    "section",
    { class: "ep-group" },
    h("h4", {}, title),
    h("dl", {}, ...fields.map((field) => row(field))),
  );
}

function row({ label, value, raw }: Field): HTMLElement {
  const title = value === raw ? value : `${value} (${raw})`;
  const button = h("button", { type: "button", class: "ep-value", title: `${title}: copy` }, value);
  on(button, "click", async () => {
    const home = button.closest<HTMLElement>(".ep-viewer");
    if (!home || !(await copyText(raw, home))) return;
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, COPIED_MS);
  });
  return h("div", {}, h("dt", {}, label), h("dd", {}, button));
}

/** Section with the launch, the launched activities and the source line. */
function launchSection(at: EventRef, related: Related, actions: Actions): HTMLElement | null {
  const rows: HTMLElement[] = [];
  const add = (label: string, ...value: (Node | string)[]): number =>
    rows.push(h("div", {}, h("dt", {}, label), h("dd", {}, ...value)));
  const { call, line, launched: total } = related;
  if (call) add("launched by", link(call, shorten(call.name || NO_NAME, 40), actions));
  else if (at.prefix === "act")
    add("launched by", h("span", { class: "ep-faint" }, "an API call that was not recorded"));
  if (at.prefix !== "act" && total) {
    const [longest] = related.flows;
    const drawn = related.flows.length;
    const some =
      drawn >= MANY && drawn < total ? `; flow lines are drawn to ${count(drawn)} of them` : "";
    add("launched", `${count(total)}${some}`);
    if (longest) add("longest", link(longest[1], shorten(longest[1].name || NO_NAME, 40), actions));
  }
  if (line) {
    const where = `${line.cell} line ${line.line}`;
    add("source", line.text ? h("code", { title: where }, shorten(line.text, 60)) : where);
    if (line.text) add("", h("span", { class: "ep-faint" }, where));
  }
  if (rows.length === 0) return null;
  return h(
    "section",
    { class: "ep-group ep-group-links" },
    h("h4", {}, "linked"),
    h("dl", {}, ...rows),
  );
}
