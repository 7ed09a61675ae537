import { readFileSync } from "node:fs";
import { join } from "node:path";
import semver from "semver";
import { parse } from "yaml";

// Fails when package-lock.json holds a version that advisories.yaml names and does not accept (S-26). No server is asked:
// the result changes only with one of the two files, or on the day when an acceptance ends.

export interface Advisory {
  readonly package: string;
  readonly id: string;
  /** A range of semver. */
  readonly affected: string;
  readonly what: string;
  readonly accepted?: { readonly reason: string; readonly until: string };
}

export interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

export interface Locked {
  /** The real name of an alias (`npm:NAME@…`); absent: the name of its folder. */
  readonly name?: string;
  readonly version?: string;
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
}

/** The name under which a package is published. */
export function nameOf(path: string, { name }: Locked): string {
  return name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/**
 * Whether a package comes from the registry, where a version fixes the content; from git, a file or a URL the version
 * can be any number.
 */
export function isPublished({ version, resolved }: Locked): boolean {
  const isRegistry = resolved === undefined || resolved.startsWith("https://registry.npmjs.org/");
  return isRegistry && semver.valid(version) !== null;
}

/** A line for each package and each advisory that the package meets, unless accepted until `today` (YYYY-MM-DD) or later. */
export function affected(lock: Lock, advisories: readonly Advisory[], today: string): readonly string[] {
  return Object.entries(lock.packages).flatMap(([path, locked]) => {
    if (path === "") return [];
    const { version = locked.resolved ?? "" } = locked;
    const isMet = (range: string): boolean =>
      !isPublished(locked) || semver.satisfies(version, range, { includePrerelease: true });
    return advisories
      .filter((each) => each.package === nameOf(path, locked) && isMet(each.affected))
      .filter(({ accepted }) => accepted === undefined || accepted.until < today)
      .map(({ id, what, accepted }) => {
        const late = accepted ? ` (accepted until ${accepted.until}: ${accepted.reason})` : "";
        return `${path} ${version}: ${id}, ${what}${late}`;
      });
  });
}

const root = join(import.meta.dirname, "..");

export function readAdvisories(): { readonly reviewed: string; readonly advisories: readonly Advisory[] } {
  return parse(readFileSync(join(root, "advisories.yaml"), "utf8")) as ReturnType<typeof readAdvisories>;
}

export function readLock(): Lock {
  return JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
}

if (import.meta.filename === process.argv[1]) {
  const { reviewed, advisories } = readAdvisories();
  const lock = readLock();
  const found = affected(lock, advisories, new Date().toISOString().slice(0, 10));
  for (const line of found) console.error(line);
  const packages = Object.keys(lock.packages).length - 1;
  console.log(
    `advisories: ${packages} packages, ${advisories.length} known flaws (reviewed ${reviewed}), ${found.length} met`,
  );
  process.exitCode = found.length > 0 ? 1 : 0;
}
