import type { Step } from "#engine/step/define.ts";
import type { PublicKey } from "#engine/step/fragments/public-keys.ts";

/** A thing that stays on a node when its step has left the state. */
export interface Leaving {
  /** As messages name it: `file /etc/motd`. */
  readonly what: string;
  /** A step that names one of these keeps the same thing: a path, else a name as in `what`. */
  readonly places: readonly string[];
  /** The file, or the user, with which it goes. */
  readonly within?: string;
  /** Other steps keep other parts of that file. */
  readonly isPart?: true;
  /** The step that takes it away. Absent: this is only a note that a step changes the file `within`. */
  readonly by?: string;
  /** The step that names it takes it away. */
  readonly isGone?: true;
}

/** By module, the arguments that name the kept thing; each item of a list is a thing. `|` stands between two ways to name it. Default: `name`. */
const naming: ReadonlyMap<string, string> = new Map([
  ["authorized_key.present", "user keys"],
  ["file.block", "path name"],
  ["file.line", "path match|path line"],
  ["firewall.rules", "table"],
  ["hosts.entry", "names"],
  ["mount.mounted", "path"],
  ["sysctl.set", "file|name"],
  ["unit.managed", "name dropin"],
]);

/** Modules whose thing is a path, which `file.absent` removes. */
const byPath = new Set(
  "directory.managed file.absent file.downloaded file.managed git.cloned symlink.managed".split(" "),
);
const inParts = new Set("authorized_key.present file.block file.line hosts.entry mount.mounted".split(" "));
const takesAway = new Set(["file.absent", "service.stopped"]);

/** The things that a step leaves, and the files that it changes; of a step whose names may be secret the files alone. */
export function leavesOf(
  module: string,
  { args, step, sensitive }: { readonly args: unknown; readonly step: Step; readonly sensitive: boolean },
): readonly Leaving[] {
  const given = args as Readonly<Record<string, unknown>>;
  const changes = step.effects?.writes ?? [];
  const paths = changes.flatMap((one) => ("path" in one && one.is !== "parents" ? one.path : []));
  const isPart = inParts.has(module) && { isPart: true as const };
  const files = paths.map((path): Leaving => ({ what: path, places: [], within: path, ...isPart }));
  const state = given["state"];
  const hasAbsent = ["present", "latest", "loaded", "mounted", "absent"].includes(String(state));
  const by = byPath.has(module) ? "file.absent" : module.startsWith("service.") ? "service.stopped" : module;
  if ((by === module && !hasAbsent && !takesAway.has(module)) || (sensitive && !byPath.has(module))) return files;
  const isGone = (state === "absent" || takesAway.has(module)) && { isGone: true as const };
  const [first] = changes;
  const user = isPart && first?.is === "user" ? `user ${first.name}` : undefined;
  const within = first && "path" in first ? first.path : user;
  const [all = [], ...more] =
    module === "package.installed"
      ? [Object.keys(step.want).map((name) => ({ name }))]
      : namesIn(given, naming.get(module) ?? (byPath.has(module) ? "path" : "name"));
  const noun = module.replace(/\.(?:absent|present|running|set|\w+ed)$/, "");
  const whatOf = (named: Readonly<Record<string, string>>) => [noun, ...Object.values(named)].join(" ");
  const things = all.map((named): Leaving => {
    const taking = by === module ? hasAbsent && { state: "absent" } : module === "git.cloned" && { recurse: "true" };
    const words = Object.entries({ ...named, ...taking }).map(
      ([key, value]) => `${key}: ${/^[\w./][\w./@:+-]*$/.test(value) ? value : JSON.stringify(value)}`,
    );
    return {
      what: whatOf(named),
      places: byPath.has(module) ? paths.slice(0, 1) : [named, ...more.flat()].map(whatOf),
      ...(within !== undefined && { within }),
      ...isPart,
      by: `${by}: { ${words.join(", ")} }`,
      ...isGone,
    };
  });
  return things.length > 0 ? [...things, ...files.filter(({ what }) => what !== within)] : files;
}

/** The names by each way for which all arguments are given; none where an argument is no plain text. */
function namesIn(args: Readonly<Record<string, unknown>>, naming: string): Readonly<Record<string, string>>[][] {
  return naming.split("|").flatMap((keys) => {
    let found: Readonly<Record<string, string>>[] = [{}];
    const given = keys.split(" ").filter((key) => args[key] !== undefined);
    if (naming.includes("|") && !keys.endsWith(given.at(-1) ?? " ")) return [];
    for (const key of given) {
      const texts = [args[key]].flat().flatMap((value) => textOf(value) ?? []);
      found = found.flatMap((named) => texts.map((text) => ({ ...named, [key]: text })));
    }
    return given.length > 0 ? [found] : [];
  });
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const { type, base64 } = (value ?? {}) as Partial<PublicKey>;
  return base64 === undefined ? undefined : `${type} ${base64}`;
}
