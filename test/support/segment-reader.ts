/** A step as a segment's text describes it, read back. */
export interface SentStep {
  readonly key: string;
  readonly title: string;
  readonly quick: boolean;
  readonly blobs: readonly string[];
  /** The keys of steps whose change restarts it. */
  readonly restartOn: readonly string[];
  /** The keys of steps whose change makes it run. */
  readonly onChanges: readonly string[];
  /** The keys of steps whose failure makes it run. */
  readonly onFailure: readonly string[];
  readonly milestone: string;
  readonly registers: boolean;
  readonly milliseconds: number;
  /** `NAME=VALUE`, escaped as in the segment's text. */
  readonly want: readonly string[];
  readonly applies: boolean;
  readonly always: boolean;
}

/** Reads a text of `segmentText`: the steps in order, and whether the node reports facts after them. */
export function readSegment(text: string): { readonly steps: readonly SentStep[]; readonly facts: boolean } {
  const steps: SentStep[] = [];
  const shared = new Map<string, string>();
  let values = new Map<string, string>();
  let facts = false;
  for (const statement of statementsOf(text)) {
    const assignment = /^([A-Za-z_]\w*)=([^]*)$/.exec(statement);
    const skeleton = /^kx_(\d+)=([^]*)$/.exec(statement);
    if (skeleton?.[1] !== undefined) shared.set(skeleton[1], unquote(skeleton[2] ?? ""));
    else if (assignment?.[1] !== undefined) values.set(assignment[1], unquote(assignment[2] ?? ""));
    else if (statement === "k_add") {
      steps.push(stepOf(values, shared));
      values = new Map();
    } else if (statement.startsWith("k_data ")) {
      const [, title = "", data = ""] = /^k_data ('(?:[^']|'\\'')*'|\S+) ([^]*)$/.exec(statement) ?? [];
      steps.push(stepOf(values.set("title", unquote(title)).set("d", data), shared));
      values = new Map();
    } else if (statement.startsWith("k_facts ")) facts = true;
  }
  return { steps, facts };
}

/** The value of an assignment in a sh text of assignments; undefined if there is none of that name. */
export function readValue(text: string, name: string): string | undefined {
  const found = statementsOf(text).find((statement) => statement.startsWith(`${name}=`));
  return found === undefined ? undefined : unquote(found.slice(name.length + 1));
}

/** The letters of batch.ts. */
const kinds: Readonly<Record<string, string>> = { d: "directory", f: "file", l: "symlink", a: "absent" };

function stepOf(values: ReadonlyMap<string, string>, shared: ReadonlyMap<string, string>): SentStep {
  const words = (name: string) => (values.get(name) ?? "").split(" ").filter(Boolean);
  const own = `${shared.get(values.get("sk") ?? "") ?? ""}\n${values.get("tx") ?? ""}`;
  const [kind = "", , , seconds = values.get("to") ?? "60", , , ...rest] = words("d");
  const data =
    kind === "" ? undefined : { want: `kind=${kinds[kind] ?? ""}`, blobs: kind === "f" ? rest.slice(4, 5) : [] };
  const want = data?.want ?? readValue(own, "k_want") ?? "";
  return {
    key: words("d")[2] ?? values.get("i") ?? "",
    title: values.get("title") ?? "",
    quick: data !== undefined || (values.get("q") ?? "") !== "",
    blobs: data?.blobs ?? [...words("early"), ...words("late")],
    restartOn: words("rs"),
    onChanges: words("ch"),
    onFailure: words("fo"),
    milestone: values.get("ms") ?? "",
    registers: values.get("rg") === "1",
    // Behind a slash stands the longest time without progress.
    milliseconds: Number.parseInt(seconds, 10) * 1000,
    want: want === "" ? [] : want.split("\n"),
    applies: data !== undefined || (readValue(own, "kt_apply") ?? "") !== "",
    always: readValue(own, "k_always") === "1",
  };
}

/** The statements of a sh text, one a line; a line break inside single quotes ends none. */
function statementsOf(text: string): readonly string[] {
  const statements: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "'") quoted = !quoted;
    else if (character === "\\" && !quoted) at += 1;
    else if (character === "\n" && !quoted) {
      statements.push(text.slice(start, at));
      start = at + 1;
    }
  }
  if (start < text.length) statements.push(text.slice(start));
  return statements;
}

/** The inverse of `quote`. */
function unquote(word: string): string {
  return word.startsWith("'") ? word.slice(1, -1).replaceAll(String.raw`'\''`, "'") : word;
}
