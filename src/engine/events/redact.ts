import { mapStrings } from "./clean.ts";
import type { RunEventBody } from "./event.ts";
import { type Held, FormMask, NOTHING_HELD } from "./find-forms.ts";
import { formsOf } from "./secret-forms.ts";

const MASK = "***";

/** Masks the values of known secrets in all events that leave a run's process (S-7). */
export interface Redactor {
  /** Masks this value from now on, in the forms in which the usual tools print it (secret-forms.ts). */
  add(value: string): void;
  /**
   * The events to pass on in place of this event. A tail of output that may be the start of a secret is held. The tail
   * comes with the stream's next output, or before the next event of the step, its node or the action.
   */
  pass(event: RunEventBody): RunEventBody[];
  /** All output that is still held. */
  flush(): RunEventBody[];
  /** Masks a whole text. */
  text(text: string): string;
}

type Output = Extract<RunEventBody, { type: "step.output" | "action.output" }>;

/**
 * Makes a redactor that masks the given values, and those in the set that `laterSecrets` returns at each event. That set only grows, so its
 * size tells whether it changed.
 */
export function createRedactor(
  values: Iterable<string> = [],
  laterSecrets: () => ReadonlySet<string> = () => new Set(),
): Redactor {
  const known = new Set<string>();
  const forms = new FormMask();
  /** As `forms`, for output in bytes: a character stands for each byte. */
  const byteForms = new FormMask();
  /** The held end of each output, with the output's last event. */
  const heldOutputs = new Map<
    string,
    { readonly event: Output; readonly text: Held; readonly bytes: Held | undefined }
  >();

  let knownCount = 0;
  const learnMore = () => {
    const all = laterSecrets();
    if (all.size === knownCount) return;
    knownCount = all.size;
    learn(all);
  };
  const learn = (candidates: Iterable<string>) => {
    for (const value of candidates) {
      if (known.has(value)) continue;
      known.add(value);
      const { plain, wrapped } = formsOf(value);
      forms.add(plain, wrapped);
      byteForms.add(plain.map(utf8AsLatin1), wrapped);
    }
  };
  const text = (value: string) => forms.mask(value, MASK);
  learn(values);

  const output = (event: Output): Output[] => {
    const key = JSON.stringify([...workOf(event), event.stream]);
    const before = heldOutputs.get(key);
    heldOutputs.delete(key);
    const [now, later] = forms.take(before?.text ?? NOTHING_HELD, event.text, MASK);
    const [bytesNow, bytesLater] =
      base64Of(event) === undefined && before?.bytes === undefined
        ? []
        : byteForms.take(before?.bytes ?? heldAsLatin1(before?.text ?? NOTHING_HELD), latin1Of(event), MASK);
    if (later.text !== "" || bytesLater?.text) heldOutputs.set(key, { event, text: later, bytes: bytesLater });
    return now !== "" || bytesNow || event.skipped !== undefined
      ? [{ ...event, text: now, ...bytesField(bytesNow) }]
      : [];
  };
  const release = (concerns: (event: Output) => boolean): Output[] => {
    const released: Output[] = [];
    for (const [key, { event, text: held, bytes }] of heldOutputs)
      if (concerns(event)) {
        heldOutputs.delete(key);
        const { skipped: _, ...rest } = event;
        const last = forms.mask(held.text, MASK, held.covered);
        const lastBytes = bytes && byteForms.mask(bytes.text, MASK, bytes.covered);
        if (last !== "" || lastBytes) released.push({ ...rest, text: last, ...bytesField(lastBytes) });
      }
    return released;
  };

  return {
    add: (value) => learn([value]),
    text: (value) => {
      learnMore();
      return text(value);
    },
    pass: (event) => {
      learnMore();
      if (event.type === "step.output" || event.type === "action.output")
        return forms.isEmpty ? [event] : output(event);
      const concerned = heldOutputs.size === 0 ? [] : workOf(event);
      const before =
        concerned.length === 0
          ? []
          : release((waiting) => concerned.every((part, index) => part === workOf(waiting)[index]));
      return [...before, forms.isEmpty ? event : mapStrings(event, text)];
    },
    flush: () => release(() => true),
  };
}

/** The names of an event's node and step, or of its action, from the whole to its part; none for any other event. */
function workOf(event: RunEventBody): readonly (string | undefined)[] {
  if ("action" in event) return ["", event.stage, event.action, event.item];
  if (!("node" in event)) return [];
  return ["node", event.node, ...("step" in event ? [event.step] : [])];
}

/** The output as text with a character for each byte. */
function latin1Of(event: Output): string {
  const bytes = base64Of(event);
  return bytes === undefined ? utf8AsLatin1(event.text) : Buffer.from(bytes, "base64").toString("latin1");
}

function base64Of(event: Output): string | undefined {
  return event.type === "step.output" ? event.bytes : undefined;
}

function utf8AsLatin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function heldAsLatin1({ text, covered, seen }: Held): Held {
  return { text: utf8AsLatin1(text), covered: utf8AsLatin1(text.slice(0, covered)).length, seen };
}

function bytesField(latin1: string | undefined): { readonly bytes?: string } {
  return latin1 === undefined ? {} : { bytes: Buffer.from(latin1, "latin1").toString("base64") };
}
