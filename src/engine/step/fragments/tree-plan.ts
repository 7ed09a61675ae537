import { createHash } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { Blob, blobName, blobOf } from "../blob.ts";
import type { FolderEntry } from "../define.ts";
import { tarHeader, tarPadding } from "../tar.ts";

/** Bytes of an archive at most, unless one file is larger: a large archive where many of its files differ, else small ones. */
const [largeArchive, smallArchive] = [4 << 20, 64 << 10];

/** A folder of the project as nodes get it. */
export interface TreePlan {
  /**
   * A line for each entry: SHA-256 or `-`, `o`, raw mode in hex, size or `-`, name; for each link `L`, the entry's number, and
   * name -> target; for each archive `G` (large) or `g` (a small one of its parts), first and last entry, blob, size.
   */
  readonly list: Blob;
  /** Pieces of tar files, without the end mark. */
  readonly archives: readonly Blob[];
  /** Names of all entries, and of the folders among them, one a line. */
  readonly names: string;
  readonly folders: string;
  /** SHA-256 of the sorted entries without hashes; and of the files' hashes in that order, with the sorted links. */
  readonly namesSum: string;
  readonly contentsSum: string;
  readonly hasLinks: boolean;
}

/** Modes of folders and files; without `fileMode` 0755 for a program and 0644 for other files. */
interface Modes {
  readonly mode: number;
  readonly fileMode: number | undefined;
}

interface Member {
  readonly entry: FolderEntry;
  readonly header: Buffer;
  /** The entry as nodes list it: `o MODE SIZE NAME`. */
  readonly line: string;
  /** Bytes in an archive. */
  readonly size: number;
}

/** The plan of a folder. `label` is the name that views show while an archive is sent. */
export function planTree(entries: readonly FolderEntry[], modes: Modes, label: string): TreePlan {
  const members = entries.map((entry) => memberOf(entry, modes));
  const archives = new Map<string, Blob>();
  const archiveLine = (kind: "G" | "g", [from, to]: readonly [number, number]): string => {
    const place = `${from + 1} ${to}`;
    const blob = archives.get(place) ?? archiveOf(members.slice(from, to), label);
    archives.set(place, blob);
    return `${kind} ${place} ${blobName(blob)} ${blob.size}`;
  };
  const links = entries.flatMap((entry, at) =>
    entry.kind === "link" ? [{ at: at + 1, key: `./${entry.name} -> ${entry.target}` }] : [],
  );
  const list = [
    ...members.map(({ entry, line }) => `${entry.kind === "file" ? entry.sha256 : "-"} ${line}`),
    ...links.map(({ at, key }) => `L ${at} ${key}`),
    ...portions(members, [0, members.length], largeArchive).flatMap((all) => [
      archiveLine("G", all),
      ...portions(members, all, smallArchive).map((part) => archiveLine("g", part)),
    ]),
  ];
  const sorted = members.toSorted((one, other) => Buffer.compare(Buffer.from(one.line), Buffer.from(other.line)));
  const keys = links.map(({ key }) => Buffer.from(key)).toSorted(Buffer.compare);
  const sums = [...sorted.flatMap(({ entry }) => (entry.kind === "file" ? entry.sha256 : [])), ...keys.map(String)];
  const namesOf = (some: readonly FolderEntry[]): string => some.map(({ name }) => `./${name}`).join("\n");
  return {
    list: blobOf(`${list.join("\n")}\n`),
    archives: [...archives.values()],
    names: namesOf(entries),
    folders: namesOf(entries.filter(({ kind }) => kind === "folder")),
    namesSum: sha256Of([`${sorted.map(({ line }) => line).join("\n")}\n`]),
    contentsSum: sha256Of(sums.map((line) => `${line}\n`)),
    hasLinks: links.length > 0,
  };
}

function memberOf(entry: FolderEntry, { mode, fileMode }: Modes): Member {
  const { kind: type, name } = entry;
  const target = entry.kind === "link" ? entry.target : "";
  const size = entry.kind === "file" ? entry.size : 0;
  const bits =
    type === "folder" ? mode : entry.kind === "file" ? (fileMode ?? (entry.isProgram ? 0o755 : 0o644)) : 0o777;
  const kindBits = { file: 0o100000, folder: 0o40000, link: 0o120000 }[type];
  const header = tarHeader({ name, type, mode: bits, size, target });
  const shownSize = type === "folder" ? "-" : size + Buffer.byteLength(target);
  const line = `o ${(kindBits | bits).toString(16)} ${shownSize} ./${name}`;
  return { entry, header, line, size: header.length + size + tarPadding(size).length };
}

/** Parts of `members` between two places, each of at most `limit` bytes or of one member. */
function portions(
  members: readonly Member[],
  [from, to]: readonly [number, number],
  limit: number,
): [number, number][] {
  const parts: [number, number][] = [];
  let bytes = 0;
  for (const [at, { size }] of members.slice(from, to).entries()) {
    const last = parts.at(-1);
    const fits = last !== undefined && bytes + size <= limit;
    bytes = fits ? bytes + size : size;
    if (fits) last[1] = from + at + 1;
    else parts.push([from + at, from + at + 1]);
  }
  return parts;
}

function archiveOf(members: readonly Member[], label: string): Blob {
  const pieces = (): Uint8Array[] =>
    members.flatMap(({ entry, header }) =>
      entry.kind === "file" ? [header, entry.read(), tarPadding(entry.size)] : [header],
    );
  const sha256 = sha256Of(pieces());
  const read = (): Promise<Uint8Array> => {
    const bytes = Buffer.concat(pieces());
    if (sha256Of([bytes]) === sha256) return Promise.resolve(bytes);
    const message = `${label} changed while the run went on`;
    throw new KcoreError({ code: "FILE_UNREADABLE", message, hint: "run again" });
  };
  return new Blob({ sha256, size: members.reduce((sum, { size }) => sum + size, 0), sensitive: false, read, label });
}

function sha256Of(pieces: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}
