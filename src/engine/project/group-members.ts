import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The members of a group, who may write the files that the group may write. */
export interface Group {
  readonly name: string;
  /** The users that the group lists, and the users with this primary group. */
  readonly members: readonly { readonly name: string; readonly uid: number | undefined }[];
}

const cache = new Map<number, Group | undefined>();

/** The group of this number in the machine's databases (`getent`); undefined if they have none. Read once. */
export function groupOf(gid: number): Group | undefined {
  if (!cache.has(gid)) cache.set(gid, readGroup(gid, entriesOf("group", gid), entriesOf("passwd")));
  return cache.get(gid);
}

/** The group of this number in lines of group(5) and passwd(5); undefined if they have none. */
export function readGroup(gid: number, groups: string, users: string): Group | undefined {
  const rows = (text: string) => text.split("\n").map((line) => line.split(":"));
  const people = rows(users).map(([name = "", , uid, own]) => ({ name, uid: Number(uid), gid: Number(own) }));
  const found = rows(groups).filter(([, , number]) => number === String(gid));
  const [first] = found;
  if (!first) return undefined;
  const listed = found.flatMap(([, , , members = ""]) => members.split(",").filter(Boolean));
  const own = people.filter((user) => user.gid === gid).map(({ name }) => name);
  const members = [...new Set([...listed, ...own])].map((name) => ({
    name,
    uid: people.find((user) => user.name === name)?.uid,
  }));
  return { name: first[0] ?? "", members };
}

function entriesOf(database: "group" | "passwd", ...keys: readonly number[]): string {
  try {
    return execFileSync("getent", [database, ...keys.map(String)], {
      encoding: "utf8",
      timeout: 5_000,
      maxBuffer: 64 << 20,
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch {
    // A small system has no getent, and then no other database than its files.
    return readFileSync(`/etc/${database}`, "utf8");
  }
}
