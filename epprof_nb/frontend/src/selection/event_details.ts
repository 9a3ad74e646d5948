// Details of one event, for the panel below the timeline.

import { copyText } from "../base/clipboard.ts";
import { h, on, signButton } from "../base/dom.ts";
import { count, shorten } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import type { Fields, Hit } from "../data/events.ts";
import { memberCount, type Related, rangeOf, refOf, sameRef } from "../data/selection_queries.ts";
import type { EventRef } from "../data/wire_types.ts";
import { type Field, type Group, groups } from "./event_fields.ts";
import { membersText, NO_NAME } from "./event_tooltip.ts";

const COPIED_MS = 900;
/** Below this number of flow lines the panel does not mention omitted ones. */
const MANY = 200;
/** Actions of an event's panel. */
interface Actions {
  select(ref: EventRef): void;
  /** Show a time range. */
  show(range: Range): void;
}

/**
 * Content of the panel: enclosing ops as links, buttons to its neighbours, `note`, and all fields by
 * group. The parts that need `related`, which may take long to load, are omitted without it.
 */
export function panel(
  at: EventRef,
  fields: Fields,
  related: Related | null,
  note: HTMLElement,
  actions: Actions,
): HTMLElement[] {
  const known = groups(at.prefix, fields, related?.delay ?? null);
  const list = h("div", { class: "ep-groups" }, ...known.map((group) => section(group)));
  if (!related) return [heading(at), note, list];
  const launch = launchSection(at, related, actions);
  if (launch) list.append(launch);
  return [chain(at, related, actions), neighbours(at, related, actions), note, list];
}

function heading(at: EventRef): HTMLElement {
  return h(
    "div",
    { class: "ep-chain" },
    h("span", { class: "ep-leaf" }, shorten(at.name || NO_NAME, 90)),
  );
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

function neighbours(at: EventRef, { before, after, same }: Related, actions: Actions): HTMLElement {
  const place = at.prefix === "act" ? "in the stream" : "in the row";
  const bar = h("div", { class: "ep-seek-bar" });
  const to = (ref: EventRef | null, sign: string, label: string): HTMLElement =>
    signButton(sign, label, () => ref && actions.select(ref), { disabled: ref === null });
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
        { class: "ep-seek" },
        to(same.before, "‹", "Previous of the same name"),
        same.number === null
          ? `one of ${count(same.count)} of this name`
          : `${count(same.number)} of ${count(same.count)} of this name`,
        to(same.after, "›", "Next of the same name"),
      ),
    );
  }
  return bar;
}

/** Parts of the note on a merged rectangle; none if it is one event, or not drawn. */
export function mergedNote(hit: Hit | null, actions: Actions): (Node | string)[] {
  const members = hit ? memberCount(hit.set, hit.event) : 1;
  if (!hit || members === 1) return [];
  const word = hit.set.prefix === "op" ? "ops" : hit.set.prefix === "api" ? "calls" : "activities";
  const button = h(
    "button",
    { type: "button", class: "ep-link" },
    `zoom to these ${count(members)} ${word}`,
  );
  on(button, "click", () => actions.show(rangeOf(refOf(hit))));
  return [`Drawn as one rectangle: ${membersText(hit, word)}; this is the longest · `, button];
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
