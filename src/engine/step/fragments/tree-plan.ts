import { createHash } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { Blob, blobName, blobOf } from "../blob.ts";
import type { FolderEntry } from "../define.ts";
import { tarHeader, tarPadding } from "../tar.ts";

/** Bytes of an archive at most, unless one file is larger: a large archive where many of its files differ, else small ones. */
const [largeArchive, smallArchive] = [4 << 20, 64 << 10];
const kinds = {
  file: { bits: 0o100000, flag: "0" },
  folder: { bits: 0o40000, flag: "5" },
  link: { bits: 0o120000, flag: "2" },
};

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

interface Member {
  readonly entry: FolderEntry;
  readonly header: Buffer;
  /** The entry as nodes list it: `o MODE SIZE NAME`. */
  readonly line: string;
  /** Bytes in an archive. */
  readonly size: number;
}

/** The plan of a folder with the mode of each entry. `label` is the name that views show while an archive is sent. */
export function planTree(
  entries: readonly FolderEntry[],
  modeOf: (entry: FolderEntry) => number,
  label: string,
): TreePlan {
  const members = entries.map((entry): Member => {
    const { bits, flag } = kinds[entry.kind];
    const { name, size, target } = entry;
    const header = tarHeader({ name, flag, mode: modeOf(entry), size, target });
    const shownSize = entry.kind === "folder" ? "-" : size + Buffer.byteLength(target);
    const line = `o ${(bits | modeOf(entry)).toString(16)} ${shownSize} ./${name}`;
    return { entry, header, line, size: header.length + size + tarPadding(size).length };
  });
  const archives = new Map<string, Blob>();
  const archiveLine = (kind: "G" | "g", [from, to]: readonly [number, number]): string => {
    const place = `${from + 1} ${to}`;
    const blob = archives.get(place) ?? archiveOf(members.slice(from, to), label);
    archives.set(place, blob);
    return `${kind} ${place} ${blobName(blob)} ${blob.size}`;
  };
  const linkOf = ({ kind, name, target }: FolderEntry): string[] => (kind === "link" ? [`./${name} -> ${target}`] : []);
  const list = [
    ...members.map(({ entry, line }) => `${entry.sha256} ${line}`),
    ...entries.flatMap((entry, at) => linkOf(entry).map((key) => `L ${at + 1} ${key}`)),
    ...portions(members, [0, members.length], largeArchive).flatMap((all) => [
      archiveLine("G", all),
      ...portions(members, all, smallArchive).map((part) => archiveLine("g", part)),
    ]),
  ];
  const sorted = members.toSorted((one, other) => byBytes(one.line, other.line));
  const hashes = sorted.flatMap(({ entry }) => (entry.kind === "file" ? entry.sha256 : []));
  const links = entries.flatMap(linkOf).toSorted(byBytes);
  const namesOf = (some: readonly FolderEntry[]): string => some.map(({ name }) => `./${name}`).join("\n");
  return {
    list: blobOf(`${list.join("\n")}\n`),
    archives: [...archives.values()],
    names: namesOf(entries),
    folders: namesOf(entries.filter(({ kind }) => kind === "folder")),
    namesSum: sha256Of([`${sorted.map(({ line }) => line).join("\n")}\n`]),
    contentsSum: sha256Of([...hashes, ...links].map((line) => `${line}\n`)),
    hasLinks: links.length > 0,
  };
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
    members.flatMap(({ entry, header }) => [header, entry.read(), tarPadding(entry.size)]);
  const sha256 = sha256Of(pieces());
  const read = (): Promise<Uint8Array> => {
    const bytes = Buffer.concat(pieces());
    if (sha256Of([bytes]) === sha256) return Promise.resolve(bytes);
    const message = `${label} changed while the run went on`;
    throw new KcoreError({ code: "FILE_UNREADABLE", message, hint: "run again" });
  };
  return new Blob({ sha256, size: members.reduce((sum, { size }) => sum + size, 0), sensitive: false, read, label });
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function sha256Of(pieces: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}
