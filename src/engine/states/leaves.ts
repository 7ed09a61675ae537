import type { Step } from "#engine/step/define.ts";
import type { PublicKey } from "#engine/step/fragments/public-keys.ts";

/** What stays on a node when its step has left the state. */
export interface Leaving {
  /** As messages name it: `file /etc/motd`. */
  readonly what: string;
  /** Whoever names the same place keeps the same thing: a path, else `what`. */
  readonly place: string;
  /** The step that takes it away. */
  readonly by: string;
  /** The step that names it is that one. */
  readonly isGone?: true;
}

/** By module, the arguments that name what it keeps: each of a list, one of those with `|` between them. Of others the name. */
const naming: ReadonlyMap<string, string> = new Map([
  ["authorized_key.present", "user keys"],
  ["file.block", "path name"],
  ["file.line", "path match|line"],
  ["firewall.rules", "table"],
  ["hosts.entry", "names"],
  ["mount.mounted", "path"],
  ["sysctl.set", "file|name"],
  ["unit.managed", "name dropin"],
]);

/** What `file.absent` takes away, and what of the others is a file of its own: its path says whether it is the same. */
const byPath = new Set(
  "directory.managed file.absent file.downloaded file.managed git.cloned symlink.managed".split(" "),
);
const ownFile = new Set(
  "cron.managed limits.set logrotate.managed sudoers.managed sysctl.set unit.managed".split(" ").concat(...byPath),
);
const takesAway = new Set(["file.absent", "service.stopped"]);

/** What a step leaves; nothing where no step could take it away, or where its name may be a secret. */
export function leavesOf(
  module: string,
  { args, step, sensitive }: { readonly args: unknown; readonly step: Step; readonly sensitive: boolean },
): readonly Leaving[] {
  const given = args as Readonly<Record<string, unknown>>;
  const state = given["state"];
  const hasAbsent = ["present", "latest", "loaded", "mounted", "absent"].includes(String(state));
  const by = byPath.has(module) ? "file.absent" : module.startsWith("service.") ? "service.stopped" : module;
  if ((by === module && !hasAbsent && !takesAway.has(module)) || (sensitive && !ownFile.has(module))) return [];
  const isGone = state === "absent" || takesAway.has(module);
  const path = ownFile.has(module) ? pathOf(step) : undefined;
  const all =
    module === "package.installed"
      ? Object.keys(step.want).map((name) => ({ name }))
      : namesIn(given, naming.get(module) ?? (byPath.has(module) ? "path" : "name"));
  return all.map((named) => {
    const what = [module.replace(/\..*/, ""), ...Object.values(named)].join(" ");
    const words = Object.entries({ ...named, ...(by === module && hasAbsent && { state: "absent" }) }).map(
      ([key, value]) => `${key}: ${/^[\w./][\w./@:+-]*$/.test(value) ? value : JSON.stringify(value)}`,
    );
    return { what, place: path ?? what, by: `${by}: { ${words.join(", ")} }`, ...(isGone && { isGone }) };
  });
}

function pathOf({ data, reach }: Step): string | undefined {
  const [first] = reach?.changes ?? [];
  return data?.path ?? (first && "path" in first ? first.path : undefined);
}

/** One for each item of a list; none where an argument is no plain text. */
function namesIn(args: Readonly<Record<string, unknown>>, naming: string): readonly Record<string, string>[] {
  let found: readonly Record<string, string>[] = [{}];
  for (const keys of naming.split(" ")) {
    const key = keys.split("|").find((one) => args[one] !== undefined);
    if (key === undefined) continue;
    const texts = [args[key]].flat().flatMap((value) => textOf(value) ?? []);
    found = found.flatMap((named) => texts.map((text) => ({ ...named, [key]: text })));
  }
  return found.filter((named) => Object.keys(named).length > 0);
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const { type, base64 } = (value ?? {}) as Partial<PublicKey>;
  return base64 === undefined ? undefined : `${type} ${base64}`;
}
