import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isMap, isNode, isSeq, LineCounter, parseDocument, type Document, type YAMLMap } from "yaml";
import { z } from "zod";
import type { ErrorCode } from "#errors/codes.ts";
import { Secret } from "#engine/step/secret.ts";
import { ExactMap, HasParts, isPlain, Matches, InOrder, ShText } from "./expected.ts";

/** The folder test/fixtures: `$FIXTURES` in tables. */
export const fixtures = join(import.meta.dirname, "../../fixtures");

const textOf = (names: readonly string[]): string =>
  names.map((name) => readFileSync(join(fixtures, name), "utf8")).join("");

const mark = "!all";
const tag = (name: string, resolve: (text: string) => object) => ({ tag: `!${name}`, resolve });
const listTag = (name: string, make: (items: unknown[]) => object) => ({
  tag: `!${name}`,
  collection: "seq" as const,
  resolve: (node: unknown) => make((node as { toJSON(): unknown[] }).toJSON()),
});

/**
 * Expected: `!has TEXT` and `!has [TEXT, …]` contain these, `!lacks TEXT` does not, `!like ERE` matches, `!order [TEXT, …]` contains these in
 * order, `!all MAP` has no other keys. Given: `!secret` a secret, `!sh` a sh text, `!base64` bytes, `!fixture NAME` the text of a file or of
 * several.
 */
const tags = [
  tag("has", (text) => new HasParts([text])),
  listTag("has", (items) => new HasParts(items)),
  listTag("order", (items) => new InOrder(items as string[])),
  tag("lacks", (text) => new HasParts([], [text])),
  tag("like", (text) => new Matches(new RegExp(text))),
  tag("secret", (text) => new Secret(text)),
  tag("base64", (text) => Buffer.from(text, "base64")),
  tag("sh", (text) => new ShText(text)),
  // The type of a tag's result is object, though a string is accepted, too.
  tag("fixture", (name) => textOf([name]) as unknown as object),
  listTag("fixture", (names) => textOf(names as string[]) as unknown as object),
  {
    tag: "!all",
    collection: "map" as const,
    // Marks the map; `marked` reads the mark once aliases are replaced by their values.
    resolve: (node: unknown) => {
      (node as YAMLMap).set(mark, true);
      return node;
    },
  },
];

const Args = z.record(z.string(), z.unknown());
const Text = z.union([z.string(), z.instanceof(HasParts), z.instanceof(Matches), z.instanceof(InOrder)]);
const FactValues = z.union([z.record(z.string(), Text), z.instanceof(ExactMap)]);
const Code = z.string().transform((code) => code as ErrorCode);
const Files = z.record(z.string(), z.string());
const Found = z.union([Args, z.instanceof(ExactMap)]);
/** Context of the step, as an orchestration gives it. */
const Context = z.strictObject({
  sensitive: z.literal(true).optional(),
  runAs: z.string().optional(),
  nodeId: z.string().optional(),
  onTrial: z.literal(true).optional(),
});

/** Expectations of a step that is made, but not run. */
const Expectation = z.strictObject({
  args: Args.optional(),
  context: Context.optional(),
  want: Found.optional(),
  data: Found.nullable().optional(),
  shown: Text.nullable().optional(),
  apply: Text.nullable().optional(),
  probe: Text.optional(),
  guard: Text.optional(),
  keep: Text.optional(),
  retry: Found.optional(),
  is: Args.optional(),
  /** The code with which the module refuses to make the step. */
  refused: z.string().optional(),
  /** A text that the step must not contain. */
  hides: z.string().optional(),
});

const Outcome = z.enum(["ok", "changed", "would-change", "skipped", "unknown", "failed", "converges"]);

const StandInAnswer = z.union([
  z.string(),
  z.strictObject({
    sh: z.string().optional(),
    prints: z.string().optional(),
    fails: z.string().optional(),
    code: z.number().optional(),
  }),
]);

const Commands = z.record(
  z.string(),
  z.union([z.literal("systemd"), z.instanceof(ShText), z.record(z.string(), StandInAnswer), z.null()]),
);

/** One move of a case: changes to the machine, a run of the step, and the expected result. */
const Move = z.strictObject({
  write: Files.optional(),
  sh: z.string().optional(),
  /** Stand-ins beside those of the table. */
  commands: Commands.optional(),
  /** The case ends before this move on these shells, which prefer their own applets to stand-ins. */
  skips: z.array(z.string()).optional(),
  run: Args.nullable().optional(),
  dry: Args.nullable().optional(),
  /** A dry run and then a real run, with the same expectations. */
  both: Args.nullable().optional(),
  due: z.literal(true).optional(),
  unsure: z.literal(true).optional(),
  granted: z.array(z.string()).optional(),
  env: Files.optional(),
  plan: Args.optional(),
  context: Context.optional(),
  ends: Outcome.optional(),
  refused: z
    .union([z.string(), z.strictObject({ code: z.string(), message: Text.optional(), detail: Text.optional() })])
    .optional(),
  have: FactValues.optional(),
  now: FactValues.optional(),
  stdout: Text.optional(),
  stderr: Text.optional(),
  shown: Text.optional(),
  rc: z.string().optional(),
  status: z.number().optional(),
  notes: z.array(Text).optional(),
  /** The calls of stand-ins in this move, a line each. */
  calls: Text.optional(),
  /** The texts of files afterwards; null: the file is absent. */
  leaves: z.record(z.string(), Text.nullable()).optional(),
  /** A sh text that must exit 0. */
  holds: z.string().optional(),
});

/** A step that a lab tries, in the order of test/lab/catalogue: see {@link Sample}, without the module. */
const LabSample = z.strictObject({
  /** A word behind the module's name, if it has several samples. */
  id: z.string().optional(),
  /** `machine`: the sample needs a virtual machine, for a kernel of its own. */
  on: z.literal("machine").optional(),
  helps: z.literal(true).optional(),
  args: Args,
  busybox: z.union([z.literal("converges"), z.strictObject({ refuses: Code, forWantOf: z.string() })]).optional(),
  /** The texts of a list are joined. */
  before: z.union([z.string(), z.array(z.string())]).optional(),
  keys: Args.optional(),
  isCheck: z.literal(true).optional(),
  drift: z
    .strictObject({ by: z.string(), finds: z.record(z.string(), z.union([z.string(), z.instanceof(Matches)])) })
    .optional(),
  refusal: z
    .strictObject({ args: Args, code: Code, before: z.string().optional(), after: z.string().optional() })
    .optional(),
});

/** The cases of one module (`test/modules/NAME.yaml`). In texts `$DIR` is the case's own folder, in which sh texts run, and `$FIXTURES` test/fixtures. */
const Table = z.strictObject({
  /** Default arguments of each case. */
  args: Args.default({}),
  /** Each case has a root folder and a network of its own; otherwise only $DIR. */
  machine: z.literal("own").optional(),
  /** The environment of each run. */
  env: Files.default({}),
  /** The command of a server at `$PORT`, which runs until the case ends. */
  server: z.string().optional(),
  /** The node's state folder is $DIR, and stays from run to run. */
  state: z.literal("kept").optional(),
  /** Files of the project. */
  project: z.record(z.string(), z.union([z.string(), z.instanceof(Buffer)])).default({}),
  before: z.strictObject({ write: Files.optional(), sh: z.string().optional() }).default({}),
  commands: Commands.default({}),
  step: z.record(z.string(), z.union([Expectation, z.array(Expectation)])).default({}),
  arguments: z
    .record(
      z.string(),
      z.strictObject({
        takes: z.array(Args).optional(),
        refuses: z.array(z.union([Args, z.tuple([Args, z.string()])])).optional(),
      }),
    )
    .default({}),
  cases: z.record(z.string(), z.array(Move)).default({}),
  lab: z.array(LabSample).default([]),
});

export type Table = z.infer<typeof Table>;
export type Move = z.infer<typeof Move>;
export type Expectation = z.infer<typeof Expectation>;
export type StandInAnswer = z.infer<typeof StandInAnswer>;

/** Reads a table. @throws Error with file and line of each mistake */
export function readTable(path: string, name = path): Table {
  return parseTable(readFileSync(path, "utf8"), name);
}

export function parseTable(text: string, name: string): Table {
  const lines = new LineCounter();
  const document = parseDocument(text, { merge: true, customTags: tags, lineCounter: lines, prettyErrors: false });
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  const wrong = [...document.errors, ...document.warnings].map(
    ({ pos: [at], message }) => `${name}:${lineAt(at)}: ${message}`,
  );
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
  const read = Table.safeParse(marked(document.toJS({ maxAliasCount: 1000 })));
  if (read.success) return read.data;
  const found = flat(read.error.issues).map(
    ({ path, message }) => `${name}:${lineAt(offsetOf(document, path))}: ${message}`,
  );
  throw new Error(found.join("\n"));
}

/** Replaces each map that has the mark by an {@link ExactMap}. */
function marked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(marked);
  if (!isPlain(value)) return value;
  const made = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, marked(item)]));
  if (!(mark in made)) return made;
  const { [mark]: _, ...entries } = made;
  return new ExactMap(entries);
}

/** All issues: of a union only those of its nearest option, and one for each unknown key. */
function flat(
  issues: readonly z.core.$ZodIssue[],
  above: readonly PropertyKey[] = [],
): { path: readonly PropertyKey[]; message: string }[] {
  return issues.flatMap((issue) => {
    const path = [...above, ...issue.path];
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ path: [...path, key], message: `“${key}” is no key here` }));
    if (issue.code !== "invalid_union") return [{ path, message: `${path.map(String).join(".")}: ${issue.message}` }];
    const ways = issue.errors.filter((way) =>
      way.some(({ code, path: own }) => code !== "invalid_type" || own.length > 0),
    );
    const [way] = ways;
    return way === undefined ? [{ path, message: `${path.map(String).join(".")}: ${issue.message}` }] : flat(way, path);
  });
}

/** The offset of the key or item at the end of a path, or of its nearest parent in the text. */
function offsetOf(document: Document, path: readonly PropertyKey[]): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isNode(key) && String(key) === String(part));
      if (pair === undefined) break;
      offset = (pair.key as { range?: number[] }).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}
