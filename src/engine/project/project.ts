import { statSync, type Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { groupOf, type Group } from "./group-members.ts";

/** The users whose files are trusted (S-20). */
export interface Trust {
  /** The process's user, root, and the user behind sudo. */
  readonly uids: readonly number[];
  /** The users' own groups, which may write if they have no other members. */
  readonly gids: readonly number[];
  /** Reads a group and its members; from the machine's databases unless given. */
  readonly groupOf?: (gid: number) => Group | undefined;
}

/** Trusts the user of this process, root, and under sudo the user who called it (`SUDO_UID`). */
export function trustOfProcess(env: Readonly<Record<string, string | undefined>>): Trust {
  const uid = process.geteuid?.() ?? 0;
  const gid = process.getegid?.() ?? 0;
  const behind = (name: string): number[] => (uid === 0 && /^\d+$/.test(env[name] ?? "") ? [Number(env[name])] : []);
  return { uids: [uid, 0, ...behind("SUDO_UID")], gids: [gid, 0, ...behind("SUDO_GID")] };
}

/**
 * The project: the nearest folder upwards from `cwd` that holds `roster/` and `orchestrate/`, or the named one.
 * The project, the folders above it and kcore's folders in it must be trusted. Returns the absolute path.
 * @throws KcoreError PROJECT_NOT_FOUND, PROJECT_NOT_TRUSTED
 */
export function projectOf({
  cwd,
  project,
  trust,
}: {
  readonly cwd: string;
  /** `--project DIR`, relative to `cwd`. */
  readonly project?: string;
  readonly trust: Trust;
}): string {
  const found = project === undefined ? nearest(cwd) : resolve(cwd, project);
  if (found === undefined || !isProject(found))
    throw new KcoreError({
      code: "PROJECT_NOT_FOUND",
      message:
        project === undefined
          ? `neither ${cwd} nor a folder above it holds roster/ and orchestrate/`
          : `${project} does not hold roster/ and orchestrate/`,
      hint: "go to your project, name it with --project DIR, or make one: kcore init DIR",
    });
  for (const path of foldersAbove(found)) assertTrusted(path, statSync(path), trust, { isAncestor: path !== found });
  for (const name of ["roster", "orchestrate", "states", "templates", "modules", "packs"]) {
    const stats = statSync(join(found, name), { throwIfNoEntry: false });
    if (stats !== undefined) assertTrusted(join(found, name), stats, trust);
  }
  return found;
}

/**
 * Refuses a file or folder that another user owns or may write. An ancestor may be writable by others if it is
 * sticky, as /tmp is: no other user can replace its entries then.
 * @throws KcoreError PROJECT_NOT_TRUSTED
 */
export function assertTrusted(
  path: string,
  stats: Stats,
  trust: Trust,
  { isAncestor = false }: { readonly isAncestor?: boolean } = {},
): void {
  const mode = (stats.mode & 0o7777).toString(8).padStart(4, "0");
  const { uids, gids } = trust;
  if (!uids.includes(stats.uid))
    throw untrusted(
      `${path} belongs to the user ${stats.uid}, neither to you nor to root`,
      `chown it, or work as that user`,
    );
  if (isAncestor && (stats.mode & 0o1000) !== 0) return;
  const isGroupWritable = (stats.mode & 0o020) !== 0;
  if ((stats.mode & 0o002) !== 0 || (isGroupWritable && !gids.includes(stats.gid)))
    throw untrusted(`${path} can be written by others (mode ${mode})`, `chmod go-w ${path}`);
  if (!isGroupWritable) return;
  const group = (trust.groupOf ?? groupOf)(stats.gid);
  const others = group?.members.filter(({ uid }) => uid === undefined || !uids.includes(uid)) ?? [];
  if (group && others.length === 0) return;
  const names = others.slice(0, 3).map(({ name }) => name);
  const who = `${names.join(", ")}${others.length > 3 ? ` and ${others.length - 3} more` : ""}`;
  throw untrusted(
    group
      ? `${path} can be written by the group “${group.name}”, in which is not only you: ${who} (mode ${mode})`
      : `${path} can be written by the group ${stats.gid}, of which this machine does not know who is in it (mode ${mode})`,
    `chmod g-w ${path}, or give it to a group that only you are in`,
  );
}

/** A check for {@link ReadOptions}: looks at the opened file itself. */
export function checkOf(trust: Trust): (name: string, stats: Stats) => void {
  return (name, stats) => {
    assertTrusted(name, stats, trust);
  };
}

function untrusted(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "PROJECT_NOT_TRUSTED", message, hint });
}

function nearest(cwd: string): string | undefined {
  return foldersAbove(resolve(cwd)).find(isProject);
}

/** The folder itself and all folders above it, / last. */
function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...foldersAbove(above)];
}

function isProject(path: string): boolean {
  return ["roster", "orchestrate"].every(
    (name) => statSync(join(path, name), { throwIfNoEntry: false })?.isDirectory() === true,
  );
}
