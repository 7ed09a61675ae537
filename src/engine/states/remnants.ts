import type { Step } from "#engine/step/define.ts";
import type { SshPublicKey } from "#engine/step/fragments/public-keys.ts";

/** A thing that remains on a node after its step was removed from the state. */
export interface ManagedRemnant {
  /** As messages name it: `file /etc/motd`. */
  readonly what: string;
  /** Paths, or names as in `what`: another step with one of them manages the same thing. */
  readonly places: readonly string[];
  /** The file or user whose removal removes the thing. */
  readonly within?: string;
  /** The thing is a part of the file `within`; other steps may manage other parts. */
  readonly isPart?: true;
  /** A step, as YAML, that removes the thing. Absent: only a note that a step changes the file `within`. */
  readonly by?: string;
  /** The step itself removes the thing. */
  readonly isGone?: true;
}

/**
 * By module, the arguments that name the managed thing; for any other module `path` if it is in `byPath`, else `name`. `|` separates
 * alternatives; each item of a list is a thing.
 */
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
/** Modules that manage a part of a file. */
const inParts = new Set("authorized_key.present file.block file.line hosts.entry mount.mounted".split(" "));
/** Modules that remove their thing. */
const removing = new Set(["file.absent", "service.stopped"]);

/** The things that would remain of a step, and the files that it changes; if the names may be secret, the files alone. */
export function remnantsOf(
  module: string,
  { args, step, sensitive }: { readonly args: unknown; readonly step: Step; readonly sensitive: boolean },
): readonly ManagedRemnant[] {
  const given = args as Readonly<Record<string, unknown>>;
  const changes = step.effects?.writes ?? [];
  const paths = changes.flatMap((one) => ("path" in one && one.is !== "parents" ? one.path : []));
  const isPart = inParts.has(module) && { isPart: true as const };
  const files = paths.map((path): ManagedRemnant => ({ what: path, places: [], within: path, ...isPart }));
  const state = given["state"];
  const hasAbsent = ["present", "latest", "loaded", "mounted", "absent"].includes(String(state));
  const by = byPath.has(module) ? "file.absent" : module.startsWith("service.") ? "service.stopped" : module;
  if ((by === module && !hasAbsent && !removing.has(module)) || (sensitive && !byPath.has(module))) return files;
  const isGone = (state === "absent" || removing.has(module)) && { isGone: true as const };
  const [first] = changes;
  const user = isPart && first?.is === "user" ? `user ${first.name}` : undefined;
  const within = first && "path" in first ? first.path : user;
  const [all = [], ...more] =
    module === "package.installed"
      ? [Object.keys(step.want).map((name) => ({ name }))]
      : namesIn(given, naming.get(module) ?? (byPath.has(module) ? "path" : "name"));
  const noun = module.replace(/\.(?:absent|present|running|set|\w+ed)$/, "");
  const whatOf = (named: Readonly<Record<string, string>>) => [noun, ...Object.values(named)].join(" ");
  const things = all.map((named): ManagedRemnant => {
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

/** The things' names, a list for each alternative of `naming` whose last argument is given. */
function namesIn(args: Readonly<Record<string, unknown>>, naming: string): Readonly<Record<string, string>>[][] {
  return naming.split("|").flatMap((keys) => {
    let found: Readonly<Record<string, string>>[] = [{}];
    const given = keys.split(" ").filter((key) => args[key] !== undefined);
    if (naming.includes("|") && !keys.endsWith(given.at(-1) ?? " ")) return [];
    for (const key of given) {
      const texts = [args[key]].flat().flatMap((value) => nameIn(value) ?? []);
      found = found.flatMap((named) => texts.map((text) => ({ ...named, [key]: text })));
    }
    return given.length > 0 ? [found] : [];
  });
}

function nameIn(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const { type, base64 } = (value ?? {}) as Partial<SshPublicKey>;
  return base64 === undefined ? undefined : `${type} ${base64}`;
}
