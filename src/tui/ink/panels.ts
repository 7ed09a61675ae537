import { shortDuration } from "#base/units.ts";
import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { nodeRows } from "../node-row.ts";
import { maxSpeed, type PlayerState } from "../player.ts";
import { titled } from "./blocks.ts";
import { takeColumns, widthOf } from "#base/text.ts";
import { span, wrapParts, wrapWords, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/**
 * A question, and the answer as typed so far; not even the length of a secret answer is shown. `follows`: lines on the run after a
 * confirmation.
 */
export function questionLines(
  question: Question,
  open: number,
  typed: string,
  theme: Theme,
  width: number,
  follows: readonly string[] = [],
): readonly Line[] {
  const { glyphs } = theme;
  const { node, text, kind, secret } = question;
  const title = `waiting for you: ${kind}${open > 1 ? `, 1 of ${open} questions` : ""}`;
  const asked = wrapWords(node === undefined ? text : `${node}: ${text}`, width - 4).slice(0, 6);
  const head = [
    panelRule(`${glyphs.unknown} ${title}`, theme, width),
    ...asked.map((line): Line => [span("  "), span(line, "strong")]),
  ];
  if (kind === "confirm")
    return [
      ...head,
      ...follows.flatMap((one) => wrapWords(one, width - 4)).map((line): Line => [span("  "), span(line, "muted")]),
      yesNoKeys,
    ];
  const shown = secret ? (typed === "" ? "" : "(typed, not shown)") : tailColumns(typed, width - 16);
  const label = secret ? "not shown" : "answer";
  return [...head, [span(`  ${label}: `, "muted"), span(shown), span(theme.unicode ? "█" : "_", "accent")]];
}

const yesNoKeys: Line = [
  span("  "),
  span("y", "strong"),
  span(" yes", "muted"),
  span("   "),
  span("n", "strong"),
  span(" no", "muted"),
];

/** The first four names, and the number of the others. */
function fewNames(names: readonly string[]): string {
  return names.slice(0, 4).join(", ") + (names.length > 4 ? ` and ${names.length - 4} more` : "");
}

/** The text, or of a text longer than its field the end. */
function tailColumns(text: string, width: number): string {
  let shown = text;
  while (widthOf(shown) > Math.max(1, width)) shown = shown.slice(takeColumns(shown, 1).length || 1);
  return shown;
}

/** The panel after a Ctrl-C: the running steps, and the choices. */
export function stopLines(model: RunModel, theme: Theme, width: number): readonly Line[] {
  const isAborting = model.stopping !== undefined && model.stopping.how !== "stop";
  const running = nodeRows(model).flatMap(({ name, items }) =>
    items.filter(({ outcome }) => outcome === undefined).map(({ title }) => `${name} ${title}`),
  );
  const work = running.length === 0 ? "Nothing runs at the moment." : `Running: ${fewNames(running)}.`;
  const text = isAborting ? `The running steps get TERM, after 5 s KILL. ${work}` : `No new step starts. ${work}`;
  const keys: readonly (readonly [string, string])[] = isAborting
    ? [
        ["d", "detach: the run goes on"],
        ["Ctrl-C", "leave at once"],
      ]
    : [
        ["w", "wait for them"],
        ["a", "abort them"],
        ["d", "detach: the run goes on"],
        ["Ctrl-C", "abort"],
      ];
  const choices = wrapParts(
    keys.map(([key, does]) => [span(key, "strong"), span(` ${does}`, "muted")]),
    { indent: 2, gap: 3, width },
  );
  return [
    panelRule(`${theme.glyphs.warning} ${isAborting ? "aborting" : "stopping"}`, theme, width),
    ...wrapWords(text, width - 4)
      .slice(0, 3)
      .map((line): Line => [span("  "), span(line)]),
    ...choices,
  ];
}

/** The question before a run is resumed, with the nodes that continue. */
export function resumeLines({ runId, nodes }: RunModel, theme: Theme, width: number): readonly Line[] {
  const left = [...nodes.values()].filter(({ outcome }) => outcome !== "done").map(({ name }) => name);
  const text = `Resume run ${runId}? It goes on where it stopped${left.length > 0 ? `, on ${fewNames(left)}` : ""}.`;
  return [
    panelRule(`${theme.glyphs.unknown} resume`, theme, width),
    ...wrapWords(text, width - 4).map((line): Line => [span("  "), span(line, "strong")]),
    yesNoKeys,
  ];
}

export function panelRule(title: string, { glyphs }: Theme, width: number): Line {
  return titled([span(title, "warning")], width, glyphs, "warning");
}

/** The state of a replay: playing or paused, speed, position. */
export function playerLine(state: PlayerState, { glyphs }: Theme, width: number): Line {
  const { playing, speed, at, from, to } = state;
  const whole = Math.max(1, to - from);
  const gone = Math.max(0, Math.min(whole, at - from));
  const left = ` ${playing ? glyphs.play : glyphs.pause} ${speed >= maxSpeed ? "max" : `${speed}x`}  `;
  const right = `  ${shortDuration(gone)} / ${shortDuration(whole)} `;
  const room = Math.max(0, width - widthOf(left) - widthOf(right));
  const done = Math.round((gone / whole) * room);
  return [
    span(left, "strong"),
    span(glyphs.barDone.repeat(done), "accent"),
    span(glyphs.barLeft.repeat(room - done), "muted"),
    span(right, "muted"),
  ];
}
