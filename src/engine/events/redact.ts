import { mapStrings } from "./clean.ts";
import type { RunEventBody } from "./event.ts";

const MASK = "***";
/** Shorter ones would mask half of every text and protect nothing. */
const SHORTEST = 4;

/** Masks the values of known secrets in everything that leaves a run's process, whatever made the text (S-7). */
export interface Redactor {
  /** From now on this value is masked, in its plain, base64, URI-encoded and JSON-escaped forms. */
  add(value: string): void;
  /**
   * The events to pass on for this one. A tail of output that may be the start of a secret is kept back until the
   * step's next output, or comes first when the step or its node has something else to say.
   */
  pass(event: RunEventBody): RunEventBody[];
  /** All output that is still kept back. */
  flush(): RunEventBody[];
  text(text: string): string;
}

type Output = Extract<RunEventBody, { type: "step.output" | "action.output" }>;

/** Makes a redactor that knows the given values and, asked at each event, those in the set that `more` gives. */
export function createRedactor(
  values: Iterable<string> = [],
  more: () => ReadonlySet<string> = () => new Set(),
): Redactor {
  const known = new Set<string>();
  let forms: readonly string[] = [];
  let pattern: RegExp | undefined;
  /** The same for bytes, a character each. */
  let byteForms: readonly string[] = [];
  let bytePattern: RegExp | undefined;
  const kept = new Map<string, Output>();

  let asked = 0;
  const learnMore = () => {
    const all = more();
    if (all.size === asked) return;
    asked = all.size;
    learn(all);
  };
  const learn = (candidates: Iterable<string>) => {
    let grew = false;
    for (const value of candidates)
      if (!known.has(value)) {
        known.add(value);
        grew = true;
      }
    if (!grew) return;
    // The longest first, so that a secret which contains another is masked whole.
    forms = [...new Set([...known].flatMap(formsOf))].sort((a, b) => b.length - a.length);
    pattern = patternOf(forms);
    byteForms = forms.map(utf8);
    bytePattern = patternOf(byteForms);
  };
  const text = (value: string) => mask(value, pattern);
  learn(values);

  const output = (event: Output): Output[] => {
    const key = JSON.stringify([...workOf(event), event.stream]);
    const before = kept.get(key);
    kept.delete(key);
    const [now, later] = atSuspectTail(text((before?.text ?? "") + event.text), forms);
    const [bytesNow, bytesLater] =
      bytesOf(event) === undefined && bytesOf(before) === undefined
        ? []
        : atSuspectTail(mask(latin1Of(before) + latin1Of(event), bytePattern), byteForms);
    if (later !== "" || bytesLater) kept.set(key, { ...event, text: later, ...inBase64(bytesLater) });
    return now !== "" || bytesNow || event.skipped !== undefined
      ? [{ ...event, text: now, ...inBase64(bytesNow) }]
      : [];
  };
  const release = (concerns: (event: Output) => boolean): Output[] => {
    const released: Output[] = [];
    for (const [key, event] of kept)
      if (concerns(event)) {
        kept.delete(key);
        const { skipped: _, ...rest } = event;
        released.push(rest);
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
        return pattern === undefined ? [event] : output(event);
      const concerned = kept.size === 0 ? [] : workOf(event);
      const before =
        concerned.length === 0
          ? []
          : release((waiting) => concerned.every((part, index) => part === workOf(waiting)[index]));
      return [...before, pattern === undefined ? event : mapStrings(event, text)];
    },
    flush: () => release(() => true),
  };
}

/** What an event speaks of, from the whole to its part: a node and its step, or an action; nothing for any other. */
function workOf(event: RunEventBody): readonly (string | undefined)[] {
  if ("action" in event) return ["", event.stage, event.action, event.item];
  if (!("node" in event)) return [];
  return ["node", event.node, ...("step" in event ? [event.step] : [])];
}

/** A value as it may turn up in texts. Lines of a long one (a PEM key) count on their own. */
function formsOf(value: string): string[] {
  if (value.length < SHORTEST) return [];
  const lines = value.includes("\n")
    ? value.split("\n").filter((line) => line.length >= 16 && !line.startsWith("-----"))
    : [];
  return [value, ...lines].flatMap((text) => {
    const json = JSON.stringify(text).slice(1, -1);
    return [
      text,
      json,
      JSON.stringify(json).slice(1, -1),
      encode(text),
      encode(text).replaceAll("%20", "+"),
      ...base64Forms(text),
    ];
  });
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** The characters of base64 that depend on the value alone, for each of the three ways it may lie in a longer text. */
function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((lead) => {
    const encoded = Buffer.concat([Buffer.alloc(lead), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    const start = Math.ceil((lead * 4) / 3);
    const end = Math.floor(((lead + bytes.length) * 8) / 6);
    const sure = encoded.slice(start, end);
    return sure.length >= 6 ? [sure, sure.replaceAll("+", "-").replaceAll("/", "_")] : [];
  });
}

/** What of a text is sure, and the end of it that is the start of some form. */
function atSuspectTail(text: string, forms: readonly string[]): readonly [string, string] {
  const cut = text.length - suspectTail(text, forms);
  return [text.slice(0, cut), text.slice(cut)];
}

/** How many characters at the end are the start of some form. */
function suspectTail(text: string, forms: readonly string[]): number {
  let longest = 0;
  for (const form of forms)
    for (let length = Math.min(form.length - 1, text.length); length > longest; length--)
      if (text.charCodeAt(text.length - length) === form.charCodeAt(0) && text.endsWith(form.slice(0, length)))
        longest = length;
  return longest;
}

function mask(text: string, pattern: RegExp | undefined): string {
  return pattern === undefined ? text : text.replace(pattern, MASK);
}

function patternOf(forms: readonly string[]): RegExp | undefined {
  return forms.length > 0 ? new RegExp(forms.map(escapePattern).join("|"), "g") : undefined;
}

/** What was printed, a character for each byte. */
function latin1Of(event: Output | undefined): string {
  if (event === undefined) return "";
  const bytes = bytesOf(event);
  return bytes === undefined ? utf8(event.text) : Buffer.from(bytes, "base64").toString("latin1");
}

function bytesOf(event: Output | undefined): string | undefined {
  return event?.type === "step.output" ? event.bytes : undefined;
}

function utf8(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function inBase64(latin1: string | undefined): { readonly bytes?: string } {
  return latin1 === undefined ? {} : { bytes: Buffer.from(latin1, "latin1").toString("base64") };
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
